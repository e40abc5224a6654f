// Attributes, kept in the header or, when many or large, in a fractal heap; and the strings they and data sets hold.
#pragma once

#include <string>

#include "tutti/keras/hdf5/datatype.h"

namespace tutti::keras::hdf5 {

struct Attribute {
  std::string name;
  uint32_t creation_order = 0;
  Datatype type;
  Dataspace space;
  std::vector<std::byte> data;  // the elements as in the file
};

// In creation order if the object tracks it, else by name.
std::vector<Attribute> read_attributes(Storage& storage, const ObjectHeader& header);

// Elements of a fixed or variable-length string type.
std::vector<std::string> decode_strings(Storage& storage, const Datatype& type, std::span<const std::byte> elements);

}  // namespace tutti::keras::hdf5
