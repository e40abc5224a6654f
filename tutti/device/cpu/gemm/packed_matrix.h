// The right-hand matrix of a product, [depth, columns], packed into column panels of 1 to 3 vectors of the machine at hand, so that a
// kernel reads it as one stream. One packing serves any number of rows on the left.
#pragma once

#include <cstdint>
#include <memory>

#include "tutti/device/cpu/gemm/panel_kernel.h"

namespace tutti::cpu {

// An element of the matrix to pack is data[k * row_stride + n * column_stride]: row-major, transposed, or a part of something larger.
struct Matrix {
  const float* data;
  int64_t depth, columns;
  int64_t row_stride, column_stride;
};

// How many rows a product may have on the left: any number, or always several of them for each sample (the pixels of an image), or several
// that lie in runs of an even number of floats. A narrow matrix sums in another order for one row, so that order is taken for any number.
enum class LeftRows { any, several, several_even };

// Packed panels that someone else owns: wide ones (3 vectors), then those of 2, then one of 1; of a narrow matrix one as wide as it is,
// which is read as one stream. Panel p is [depth, its width] from column(p) on; the last one is filled up with zeros. If that leaves half
// of its last vector empty and rows are even, this vector holds two rows: column by column the one, then the other. Its sums are those of
// even rows and those of odd rows, added in the end.
struct Panels {
  const PanelKernels* kernels;
  const float* data;
  int64_t depth, columns;
  int64_t count[5];  // [vectors]: panels that wide
  bool narrow;       // one panel, whose sums are split into sets: panel_kernel.h
  bool in_pairs;     // the last panel's last vector holds two rows

  int64_t size() const { return count[1] + count[2] + count[3] + count[4]; }
  int64_t vectors(int64_t panel) const { return panel < count[3] ? 3 : panel < count[3] + count[2] ? 2 : count[4] > 0 ? 4 : 1; }
  int64_t column(int64_t panel) const {
    const int64_t wide = panel < count[3] ? panel : count[3];
    return (2 * panel + wide) * kernels->lanes;  // no other panel stands behind one of 1 or of 4
  }
  bool in_pairs_at(int64_t panel) const { return in_pairs && panel + 1 == size(); }
  int64_t width(int64_t panel) const {  // floats of a row
    return vectors(panel) * kernels->lanes - (in_pairs_at(panel) ? kernels->lanes / 2 : 0);
  }
  const float* begin(int64_t panel) const { return data + column(panel) * depth; }
};

// Floats that packing takes; the place must be 64-byte aligned.
int64_t packed_size(int64_t depth, int64_t columns);
Panels pack(const Matrix& matrix, LeftRows left, float* place);
void pack(const Matrix& matrix, const Panels& panels, float* place);  // the same, for panels that are known already
// What pack() left at a place.
Panels panels_at(const float* place, int64_t depth, int64_t columns, LeftRows left);

class PackedMatrix {
 public:
  explicit PackedMatrix(const Matrix& matrix, LeftRows left = LeftRows::any) : PackedMatrix(matrix, 1, 0, left) {}
  // So many of one size, one behind the other, as they are `step` floats apart in the first one's data. panels() are the first one's.
  PackedMatrix(const Matrix& first, int64_t count, int64_t step, LeftRows left);
  // To be filled row by row before it is used.
  PackedMatrix(int64_t depth, int64_t columns, LeftRows left);
  void set_row(int64_t k, const float* row);
  const Panels& panels() const { return panels_; }
  int64_t bytes() const { return count_ * packed_size(panels_.depth, panels_.columns) * static_cast<int64_t>(sizeof(float)); }

 private:
  std::shared_ptr<float[]> storage_;  // shared by the programs of one model
  int64_t count_ = 1;                 // matrices
  Panels panels_;
};

}  // namespace tutti::cpu
