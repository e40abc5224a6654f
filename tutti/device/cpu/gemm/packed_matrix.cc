#include "tutti/device/cpu/gemm/packed_matrix.h"

#include <algorithm>

#include "tutti/device/cpu/gemm/aligned.h"
#include "tutti/device/reference/strided_copy.h"

namespace tutti::cpu {
namespace {

// Whether so many vectors are too few to have enough sums under way. All rows on the left pass by all of a narrow matrix, so that one of 4
// vectors, which are nearly enough, is not taken for narrow where it does not stay in the first-level cache.
bool is_narrow(const PanelKernels& kernels, int64_t vectors, int64_t depth) {
  return vectors > 0 && (vectors <= 3 || (vectors == 4 && depth <= kernels.depth[4]));
}

Panels layout(int64_t depth, int64_t columns, LeftRows left) {
  Panels panels{&panel_kernels(), nullptr, depth, columns, {}, false, false};
  const int64_t lanes = panels.kernels->lanes, vectors = (columns + lanes - 1) / lanes;
  panels.narrow = left == LeftRows::any && is_narrow(*panels.kernels, vectors, depth);
  // As many panels of 3 as leave no panel of 1, which would load more than it multiplies.
  panels.count[1] = vectors == 1 ? 1 : 0;
  panels.count[4] = panels.narrow && vectors == 4 ? 1 : 0;
  panels.count[2] = vectors < 2 || panels.count[4] > 0 ? 0 : vectors % 3 == 0 ? 0 : vectors % 3 == 1 ? 2 : 1;
  panels.count[3] = (vectors - 2 * panels.count[2] - 4 * panels.count[4]) / 3;
  panels.in_pairs = left == LeftRows::several_even && panels.kernels->has_pairs && 2 * (vectors * lanes - columns) >= lanes;
  return panels;
}

int64_t padded_columns(const Panels& panels) {
  return (panels.count[1] + 2 * panels.count[2] + 3 * panels.count[3] + 4 * panels.count[4]) * panels.kernels->lanes;
}

// The columns of one panel that are present, then zeros.
void pack_row(const float* from, int64_t present, float* place, int64_t width) {
  std::copy_n(from, present, place);
  std::fill(place + present, place + width, 0.0f);
}

// The same for all rows of a panel that is one vector wide and not full, whatever the strides: small models have no others, and calls to
// copy and to fill a few floats would be most of their time.
template <int64_t width>
void pack_few_columns(const float* from, int64_t depth, int64_t present, int64_t row_stride, int64_t column_stride, float* place) {
  for (int64_t k = 0; k < depth; ++k, place += width, from += row_stride) {
    for (int64_t n = 0; n < width; ++n) place[n] = 0;
    for (int64_t n = 0; n < present; ++n) place[n] = from[n * column_stride];
  }
}

// A panel whose last vector holds two rows: those vectors of a row that are full, those of the next one, and what is left of both.
void pack_pairs(const float* from, const Matrix& matrix, int64_t present, int64_t lanes, float* place) {
  const int64_t full = present / lanes * lanes;
  for (int64_t k = 0; k < matrix.depth; k += 2, from += 2 * matrix.row_stride) {
    for (int64_t row = 0; row < 2; ++row, place += full)
      for (int64_t n = 0; n < full; ++n) place[n] = from[row * matrix.row_stride + n * matrix.column_stride];
    for (int64_t n = full; n < full + lanes / 2; ++n)
      for (int64_t row = 0; row < 2; ++row) *place++ = n < present ? from[row * matrix.row_stride + n * matrix.column_stride] : 0.0f;
  }
}

}  // namespace

int64_t packed_size(int64_t depth, int64_t columns) { return depth * padded_columns(layout(depth, columns, LeftRows::any)); }

Panels panels_at(const float* place, int64_t depth, int64_t columns, LeftRows left) {
  Panels panels = layout(depth, columns, left);
  panels.data = place;
  return panels;
}

Panels pack(const Matrix& matrix, LeftRows left, float* place) {
  const Panels panels = panels_at(place, matrix.depth, matrix.columns, left);
  pack(matrix, panels, place);
  return panels;
}

void pack(const Matrix& matrix, const Panels& panels, float* place) {
  for (int64_t panel = 0; panel < panels.size(); ++panel) {
    const int64_t width = panels.vectors(panel) * panels.kernels->lanes;
    const int64_t present = std::min(width, matrix.columns - panels.column(panel));
    const float* from = matrix.data + panels.column(panel) * matrix.column_stride;
    if (panels.in_pairs_at(panel)) {
      pack_pairs(from, matrix, present, panels.kernels->lanes, place);
    } else if (present < width && (width == 16 || width == 8)) {
      (width == 16 ? pack_few_columns<16> : pack_few_columns<8>)(from, matrix.depth, present, matrix.row_stride, matrix.column_stride,
                                                                 place);
      place += matrix.depth * width;
    } else if (matrix.column_stride == 1) {
      for (int64_t k = 0; k < matrix.depth; ++k, place += width) pack_row(from + k * matrix.row_stride, present, place, width);
    } else if (matrix.row_stride == 1) {
      reference::transpose_floats(from, matrix.column_stride, matrix.depth, present, place, width);
      for (int64_t k = 0; k < matrix.depth; ++k, place += width) std::fill(place + present, place + width, 0.0f);
    } else {
      for (int64_t k = 0; k < matrix.depth; ++k, place += width) {
        for (int64_t n = 0; n < present; ++n) place[n] = from[k * matrix.row_stride + n * matrix.column_stride];
        std::fill(place + present, place + width, 0.0f);
      }
    }
  }
}

PackedMatrix::PackedMatrix(const Matrix& first, int64_t count, int64_t step, LeftRows left)
    : storage_(aligned_floats(count * packed_size(first.depth, first.columns))),
      count_(count),
      panels_(layout(first.depth, first.columns, left)) {
  panels_.data = storage_.get();
  const int64_t size = packed_size(first.depth, first.columns);
  Matrix matrix = first;
  for (int64_t i = 0; i < count; ++i, matrix.data += step) pack(matrix, panels_, storage_.get() + i * size);
}

PackedMatrix::PackedMatrix(int64_t depth, int64_t columns, LeftRows left)
    : storage_(aligned_floats(packed_size(depth, columns))), panels_(layout(depth, columns, left)) {
  panels_.data = storage_.get();
}

void PackedMatrix::set_row(int64_t k, const float* row) {
  for (int64_t panel = 0; panel < panels_.size(); ++panel) {
    const int64_t column = panels_.column(panel), width = panels_.vectors(panel) * panels_.kernels->lanes;
    pack_row(row + column, std::min(width, panels_.columns - column), storage_.get() + column * panels_.depth + k * width, width);
  }
}

}  // namespace tutti::cpu
