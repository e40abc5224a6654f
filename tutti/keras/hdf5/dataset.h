// A data set: what its header says, checked, and its elements wherever the layout keeps them.
#pragma once

#include "tutti/keras/hdf5/datatype.h"
#include "tutti/keras/hdf5/filters.h"

namespace tutti::keras::hdf5 {

struct Layout {
  enum class Class { compact, contiguous, chunked };
  enum class Index { tree_1, single, implicit, fixed_array, extensible_array, tree_2 };
  Class kind = Class::contiguous;
  std::span<const std::byte> compact;   // the data themselves
  uint64_t address = undefined;         // of the data or the chunk index; undefined: never written
  uint64_t size = undefined;            // of contiguous data, if the message says
  std::vector<uint64_t> chunk_extents;  // as many as the data set has axes
  uint32_t element_size = 0;            // as the chunked layout says
  Index index = Index::tree_1;
  bool plain_edges = false;  // chunks that reach over the edge are not filtered
  uint64_t single_size = 0;  // stored bytes of the single chunk, if filtered
  uint32_t single_mask = 0;
};

struct Dataset {
  Datatype type;
  Dataspace space;
  Layout layout;
  Filters filters;
  std::span<const std::byte> fill;  // one element, or empty: zeros
  uint64_t bytes() const { return product(static_cast<uint64_t>(space.shape().elements()), type.size); }
};

// The spans inside live as long as the header.
Dataset parse_dataset(Storage& storage, const ObjectHeader& header);

// All elements as in the file, row-major. out.size() is dataset.bytes(), and must be paid for with check_size before it is allocated.
void check_size(Storage& storage, const Dataset& dataset);
void read_elements(Storage& storage, const Dataset& dataset, std::span<std::byte> out);

// The chunked part of it.
void check_chunks(Storage& storage, const Dataset& dataset);
void read_chunks(Storage& storage, const Dataset& dataset, std::span<std::byte> out);

}  // namespace tutti::keras::hdf5
