#include "tutti/device/cpu/loops/block_space.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace tutti::cpu {

namespace {

// `count` copies of the `bytes` bytes at `to`, the first of which stands there already.
void repeat(std::byte* to, int64_t bytes, int64_t count) {
  for (int64_t done = 1; done < count;) {
    int64_t more = std::min(done, count - done);
    std::memcpy(to + done * bytes, to, static_cast<size_t>(more * bytes));
    done += more;
  }
}

// Each of `count` elements `extent` times. Writes whole groups, up to 15 elements behind the last: the next copies go over them, and
// behind a block there is room (BlockSpace::slack).
template <class T>
void spread(const T* from, int64_t count, int64_t stride, int64_t extent, T* to) {
  constexpr int64_t group = 16;
  for (int64_t i = 0; i < count; ++i, from += stride, to += extent) {
    const T x = *from;
    for (int64_t k = 0; k < extent; k += group) std::fill_n(to + k, group, x);
  }
}

}  // namespace

BlockSpace::BlockSpace(const Shape& shape, std::vector<Ints> streams, int64_t block) : streams_(streams.size()) {
  if (shape.elements() == 0) {
    blocks_ = 0;
    extents_ = {0};
    for (Ints& strides : streams_) strides = {0};
    return;
  }
  for (int64_t axis = 0; axis < shape.rank(); ++axis) {
    const auto at = static_cast<size_t>(axis);
    const int64_t extent = shape[axis];
    if (extent == 1) continue;
    bool joined = !extents_.empty();
    for (size_t i = 0; i < streams.size() && joined; ++i) joined = streams_[i].back() == streams[i][at] * extent;
    if (joined) extents_.back() *= extent;
    if (!joined) extents_.push_back(extent);
    for (size_t i = 0; i < streams.size(); ++i) {
      if (joined) streams_[i].pop_back();
      streams_[i].push_back(streams[i][at]);
    }
  }
  if (extents_.empty()) {
    extents_ = {1};
    for (Ints& strides : streams_) strides = {0};
  }
  cut_ = extents_.size() - 1;
  // A row that is long enough is a block of its own if some stream's rows stand apart: they need not be copied together.
  constexpr int64_t long_enough = 128;
  const auto stand_apart = [&](size_t axis, int64_t row) {
    return std::any_of(streams_.begin(), streams_.end(), [&](const Ints& strides) { return strides[axis] != 0 && strides[axis] != row; });
  };
  for (; cut_ > 0 && inner_ * extents_[cut_] <= block; --cut_) {
    const int64_t row = inner_ * extents_[cut_];
    if (row >= long_enough && stand_apart(cut_ - 1, row)) break;
    inner_ = row;
  }
  const int64_t extent = extents_[cut_], most = std::max<int64_t>(1, block / inner_);
  const int64_t pieces = (extent + most - 1) / most;
  chunk_ = std::min(most, (extent + pieces - 1) / pieces);
  // Inside of one axis, blocks begin where vectors do.
  if (inner_ == 1 && chunk_ < extent) chunk_ = std::min(most, (chunk_ + 15) / 16 * 16);
  last_chunk_ = extent - (extent - 1) / chunk_ * chunk_;
  for (int64_t count : counts()) blocks_ *= count;
}

BlockSpace::Access BlockSpace::access(size_t stream) const {
  bool dense = true, one = true;
  for (int64_t axis = static_cast<int64_t>(extents_.size()) - 1, stride = 1; axis >= static_cast<int64_t>(cut_); --axis) {
    const auto at = static_cast<size_t>(axis);
    if (at == cut_ && chunk_ == 1) break;  // no step along it inside of a block
    one = one && strides(stream)[at] == 0;
    dense = dense && strides(stream)[at] == stride;
    stride *= extents_[at];
  }
  return dense ? Access::dense : one ? Access::one : Access::other;
}

Ints BlockSpace::steps(size_t stream) const {
  Ints steps(strides(stream).begin(), strides(stream).begin() + static_cast<std::ptrdiff_t>(cut_) + 1);
  steps.back() *= chunk_;
  return steps;
}

Ints BlockSpace::counts() const {
  Ints counts(extents_.begin(), extents_.begin() + static_cast<std::ptrdiff_t>(cut_) + 1);
  counts.back() = (counts.back() + chunk_ - 1) / chunk_;
  return counts;
}

void BlockSpace::expand(size_t stream, int64_t element_bytes, bool whole, const std::byte* from, std::byte* to) const {
  const auto walk = [&](const auto& self, size_t axis, const std::byte* source, std::byte* target) -> int64_t {
    if (axis == extents_.size()) {
      std::memcpy(target, source, static_cast<size_t>(element_bytes));
      return element_bytes;
    }
    const int64_t extent = axis != cut_ ? extents_[axis] : whole ? chunk_ : last_chunk_, stride = strides(stream)[axis];
    int64_t bytes = 0;
    if (stride == 0) {
      bytes = self(self, axis + 1, source, target);
      repeat(target, bytes, extent);
      return bytes * extent;
    }
    if (stride == 1 && axis + 1 == extents_.size()) {
      std::memcpy(target, source, static_cast<size_t>(extent * element_bytes));
      return extent * element_bytes;
    }
    if (axis + 2 == extents_.size() && strides(stream)[axis + 1] == 0 && element_bytes == sizeof(float)) {
      const int64_t copies = extents_[axis + 1];
      spread(reinterpret_cast<const uint32_t*>(source), extent, stride, copies, reinterpret_cast<uint32_t*>(target));
      return extent * copies * element_bytes;
    }
    for (int64_t i = 0; i < extent; ++i) bytes += self(self, axis + 1, source + i * stride * element_bytes, target + bytes);
    return bytes;
  };
  walk(walk, cut_, from, to);
}

}  // namespace tutti::cpu
