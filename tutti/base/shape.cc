#include "tutti/base/shape.h"

#include <algorithm>

#include "tutti/base/error.h"

namespace tutti {

namespace {
constexpr int64_t max_elements = int64_t{1} << 48;
}

Shape::Shape(Ints extents) : extents_(std::move(extents)) {
  if (extents_.size() > 32) fail<InvalidArgument>("shape", "at most 32 axes; got {}", extents_.size());
  int64_t size = 1;  // zeros left out, so that strides do not overflow either
  for (int64_t extent : extents_) {
    if (extent < 0) fail<InvalidArgument>("shape", "extents are not negative; got {}", to_string(extents_));
    if (extent == 0) elements_ = 0;
    if (extent > max_elements || (extent != 0 && size > max_elements / extent))
      fail<InvalidArgument>("shape", "at most 2^48 elements; got {}", to_string(extents_));
    size *= std::max<int64_t>(extent, 1);
  }
  elements_ *= size;
}

Ints Shape::strides() const {
  Ints out(extents_.size());
  int64_t step = 1;
  for (size_t i = extents_.size(); i-- > 0;) {
    out[i] = step;
    step *= extents_[i];
  }
  return out;
}

bool includes(const Ints& list, int64_t item) { return std::find(list.begin(), list.end(), item) != list.end(); }

std::string to_string(const Ints& ints) {
  std::string out = "[";
  for (size_t i = 0; i < ints.size(); ++i) out += (i ? ", " : "") + std::to_string(ints[i]);
  return out + "]";
}

std::string to_string(const Shape& shape) { return to_string(shape.extents()); }

Shape broadcast(const Shape& a, const Shape& b) {
  Ints out(static_cast<size_t>(std::max(a.rank(), b.rank())));
  for (int64_t i = 0; i < static_cast<int64_t>(out.size()); ++i) {
    int64_t x = i < a.rank() ? a[a.rank() - 1 - i] : 1, y = i < b.rank() ? b[b.rank() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) fail<InvalidArgument>("shape", "{} and {} do not broadcast together", to_string(a), to_string(b));
    out[out.size() - 1 - static_cast<size_t>(i)] = x == 1 ? y : x;
  }
  return out;
}

}  // namespace tutti
