// Static shapes: row-major extents, outermost first. Products are checked, so a hostile shape is an error and not a small number.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace tutti {

using Ints = std::vector<int64_t>;

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> extents) : Shape(Ints(extents)) {}
  Shape(Ints extents);  // NOLINT(google-explicit-constructor): a list of extents is a shape. Throws when negative or beyond 2^48 elements.

  int64_t rank() const { return static_cast<int64_t>(extents_.size()); }
  int64_t operator[](int64_t axis) const { return extents_[static_cast<size_t>(axis)]; }
  int64_t elements() const { return elements_; }
  const Ints& extents() const { return extents_; }
  auto begin() const { return extents_.begin(); }
  auto end() const { return extents_.end(); }

  // Elements to step over for one step along each axis.
  Ints strides() const;
  bool operator==(const Shape& other) const { return extents_ == other.extents_; }

 private:
  Ints extents_;
  int64_t elements_ = 1;
};

std::string to_string(const Shape& shape);  // "[1, 32]"
std::string to_string(const Ints& ints);    // the same for any list
bool includes(const Ints& list, int64_t item);

// NumPy's rule; throws InvalidArgument when they do not fit.
Shape broadcast(const Shape& a, const Shape& b);

}  // namespace tutti
