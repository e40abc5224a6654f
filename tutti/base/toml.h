// TOML files (job files, manifests) as the same values that JSON gives.
#pragma once

#include <string>
#include <string_view>

#include "tutti/base/json.h"

namespace tutti {

// Members stand in the order of the file. Dates and times become text. Throws InvalidArgument("toml", ... with line and column) for what is
// no TOML, or longer than `limit` bytes.
Json parse_toml(std::string_view text, size_t limit = 16 << 20);

// The file at `path`; errors name it.
Json read_toml(const std::string& path, size_t limit = 16 << 20);

// A value as it is written in a TOML file: text in quotes, lists in brackets. No objects.
std::string toml_text(const Json& value);

}  // namespace tutti
