// Bodies that come compressed, within bounds.
#pragma once

#include <string>
#include <string_view>

#include "tutti/serve/protocol/memory_budget.h"

namespace tutti::serve {

// Of Content-Encoding "gzip" or "deflate" (zlib's format, as HTTP means it, or raw). Throws a bad_request when the stream is corrupt, cut
// short, followed by other bytes, or would be larger than `most_bytes`: memory grows with what comes out, never beyond that,
// and is claimed first.
std::string decompressed(std::string_view body, std::string_view encoding, size_t most_bytes, MemoryClaim& claim);

}  // namespace tutti::serve
