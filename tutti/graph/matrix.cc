#include "tutti/graph/matrix.h"

namespace tutti {

std::optional<Run> as_one_axis(const Shape& shape, const Ints& axes) {
  const Ints strides = shape.strides();
  std::optional<Run> run;
  for (size_t i = axes.size(); i-- > 0;) {  // from the innermost
    const int64_t extent = shape[axes[i]], stride = strides[static_cast<size_t>(axes[i])];
    if (extent == 1) continue;
    if (!run) {
      run = {extent, stride};
    } else if (stride == run->stride * run->count) {
      run->count *= extent;
    } else {
      return {};
    }
  }
  return run ? *run : Run{};
}

Ints free_axes(int64_t rank, const Ints& batch, const Ints& contracting) {
  Ints out;
  for (int64_t axis = 0; axis < rank; ++axis)
    if (!includes(batch, axis) && !includes(contracting, axis)) out.push_back(axis);
  return out;
}

}  // namespace tutti
