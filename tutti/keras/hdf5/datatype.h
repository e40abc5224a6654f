// What an element is and how many there are: the datatype and dataspace messages.
#pragma once

#include <string>

#include "tutti/base/dtype.h"
#include "tutti/base/shape.h"
#include "tutti/keras/hdf5/object_header.h"

namespace tutti::keras::hdf5 {

struct Datatype {
  enum class Class { number, fixed_string, variable_string, opaque, other };
  Class kind = Class::other;
  DType dtype = DType::f32;  // of numbers
  bool big_endian = false;
  enum class Padding { zero_terminated, zeros, spaces };
  Padding padding = Padding::zero_terminated;  // of fixed strings
  uint32_t size = 0;                           // bytes of an element in the file
  std::string description;                     // of what is not read: "compound", "reference"
};

Datatype parse_datatype(Storage& storage, std::span<const std::byte> bytes);
// The same from a message that may be shared: a named type.
Datatype parse_datatype(Storage& storage, const Message& message);

struct Dataspace {
  bool null = false;              // no elements at all, not even one
  std::vector<uint64_t> extents;  // none: a scalar
  std::vector<uint64_t> maxima;   // `undefined` is unlimited
  // A null space is one of no elements; corrupt beyond 2^48 elements.
  Shape shape() const;
};

Dataspace parse_dataspace(Storage& storage, std::span<const std::byte> bytes);

// Elements as the file has them into elements as the machine has them, in place: byte order, and bools that are 0 or 1.
void to_native(const Datatype& type, std::span<std::byte> elements);

}  // namespace tutti::keras::hdf5
