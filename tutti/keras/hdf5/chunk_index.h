// Where the chunks of a data set are: six ways of storing one list.
#pragma once

#include <functional>

#include "tutti/keras/hdf5/dataset.h"

namespace tutti::keras::hdf5 {

// A data set cut into chunks; those at the far edges reach over it.
struct ChunkGrid {
  std::vector<uint64_t> counts;      // chunks along each axis
  std::vector<uint64_t> max_counts;  // the same if the data set had grown to its maximum; `undefined`: unlimited
  uint64_t cells = 1;                // all chunks
  uint64_t chunk_bytes = 0;          // of one, unfiltered
};
ChunkGrid chunk_grid(const Dataset& dataset);

struct Chunk {
  uint64_t cell = 0;  // its place in the grid, row-major
  uint64_t address = undefined, size = 0;
  uint32_t skipped_filters = 0;
};

// The chunks that are stored, by cell, no cell twice.
std::vector<Chunk> read_chunk_index(Storage& storage, const Dataset& dataset, const ChunkGrid& grid);

// The two arrays, whose elements are the chunks' addresses; with filters each element also has the stored size and the filter mask.
using EachElement = std::function<void(uint64_t index, std::span<const std::byte> element)>;
void walk_fixed_array(Storage& storage, uint64_t address, bool filtered, const EachElement& each);
void walk_extensible_array(Storage& storage, uint64_t address, bool filtered, const EachElement& each);

}  // namespace tutti::keras::hdf5
