// Deflate within bounds: the caller knows how many bytes must come out, and more or fewer is an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace tutti {

enum class Packing { raw, zlib };  // zip members; HDF5 chunks

// Fills `out` with the whole stream that `next` delivers piece by piece (an empty piece: the end of the input).
// Returns false when the stream is corrupt, incomplete, longer than `out`, shorter than `out`, or followed by other bytes.
bool inflate_exactly(Packing packing, const std::function<std::span<const std::byte>()>& next, std::span<std::byte> out);

}  // namespace tutti
