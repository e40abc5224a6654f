// What a group contains, in all three ways the format stores it.
#pragma once

#include <string>

#include "tutti/keras/hdf5/object_header.h"

namespace tutti::keras::hdf5 {

struct Link {
  enum class Kind { hard, soft, external, other };
  std::string name;
  Kind kind = Kind::hard;
  uint64_t address = undefined;  // of a hard link's object
  uint64_t creation_order = 0;
};

// In creation order if the group tracks it, else by name. Names are unique, not empty, and have no '/'.
std::vector<Link> read_links(Storage& storage, const ObjectHeader& group);

}  // namespace tutti::keras::hdf5
