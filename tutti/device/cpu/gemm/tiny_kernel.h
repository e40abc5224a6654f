// Products with a result of at most four columns, as in models of a few units: packing, and vectors along the columns, would cost more than
// the arithmetic. Compiled per Highway target, like panel_kernel.h.
#pragma once

#include <cstdint>

namespace tutti::cpu {

// C [rows, columns] = A [rows, depth] B [depth, columns].
struct TinyCall {
  int64_t rows, depth;
  const float* a;
  int64_t a_stride;  // floats from row to row; of A by columns, from column to column
  const float* b;
  int64_t b_stride;  // floats from row to row
  float* c;
  int64_t c_stride;
};

struct TinyKernels {
  static constexpr int64_t most_columns = 4, most_floats = 64;  // of B, by rows: it stays in registers

  // An element is summed in one order, whatever the number of rows.
  void (*rows[most_columns + 1])(const TinyCall&);     // [columns]: any number of rows; B without gaps
  void (*columns[most_columns + 1])(const TinyCall&);  // [columns]: A by columns, any depth; null where vectors have no parts
};

const TinyKernels& tiny_kernels();

}  // namespace tutti::cpu
