// What verbs that take a MODEL share.
#pragma once

#include <memory>
#include <string>

#include "tutti/cli/verb.h"
#include "tutti/run/load_model.h"

namespace tutti::cli {

inline constexpr const char* model_help = "A .keras, .h5 or .hdf5 file, or an ensemble's .toml";

// load_model() with a bar, and the time it took with --verbose.
std::shared_ptr<const keras::AnyModel> load_with_progress(Console& console, const std::string& path);

// --ensemble-plan
void add_plan_option(Options& options, std::string& plan);

}  // namespace tutti::cli
