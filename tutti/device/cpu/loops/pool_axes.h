// The windows of pooling over channels-last floats, seen as at most three axes with a window between a batch and a row of channels.
#pragma once

#include <array>

#include "tutti/device/kernel.h"

namespace tutti::cpu {

// Where the window of each output position along an axis begins in the operand, and how many of its places are inside.
struct PoolAxis {
  struct Place {
    int64_t start, count;  // start in elements of the operand; count may be 0
  };
  std::vector<Place> places{{0, 1}};
  int64_t step = 0;  // elements between places of a window
};

struct PoolAxes {
  int64_t batch = 1, image = 1, channels = 1;  // image: elements of the operand for each of the batch
  std::array<PoolAxis, 3> axes;

  int64_t count(size_t axis) const { return static_cast<int64_t>(axes[axis].places.size()); }
  int64_t lines() const { return count(0) * count(1); }  // of one of the batch: positions on all axes but the last

  // A line: its windows are those of the last axis, `from` elements into the operand, `outer` times `middle` such rows high.
  struct Line {
    int64_t from, outer, middle;
  };
  Line line(int64_t index) const;  // counted through the batch
};

// What a node with windows, from an operand of this type to windows of this shape, must be: floats, at most three axes with a window, the
// last axis without one, operand and window not dilated along the same axis, not empty.
bool has_pool_axes(const Type& operand, const Shape& windows, const Attributes& attributes);
PoolAxes pool_axes(const Shape& operand, const Shape& windows, const Attributes& attributes);

}  // namespace tutti::cpu
