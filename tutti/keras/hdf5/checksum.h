// The two checksums of the HDF5 format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tutti::keras::hdf5 {

uint32_t lookup3(std::span<const std::byte> bytes);     // Bob Jenkins's hash, of metadata
uint32_t fletcher32(std::span<const std::byte> bytes);  // of chunks

}  // namespace tutti::keras::hdf5
