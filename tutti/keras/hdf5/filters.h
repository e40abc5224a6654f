// The filters a chunk went through when it was written, undone.
#pragma once

#include "tutti/keras/hdf5/object_header.h"

namespace tutti::keras::hdf5 {

struct Filter {
  enum Id : uint16_t { deflate = 1, shuffle = 2, fletcher = 3 };
  uint16_t id = 0;
  uint32_t element_size = 0;  // of shuffle
};
using Filters = std::vector<Filter>;

// Unsupported for any other filter, naming it.
Filters parse_filters(Storage& storage, std::span<const std::byte> bytes);

// `stored` as in the file becomes `out`, all of it, or corrupt. A set bit i of `skipped` says that filter i was not applied.
void undo_filters(const Filters& filters, uint32_t skipped, std::vector<std::byte> stored, std::span<std::byte> out);

}  // namespace tutti::keras::hdf5
