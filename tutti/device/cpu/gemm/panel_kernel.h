// The one family of microkernels behind matmul and convolution: rows of A times a panel of B. A panel is 1, 2 or 3 vectors wide; sums stay
// in registers for a tile of rows, as many as the target has registers for. Compiled per Highway target; the table is chosen once per
// process.
#pragma once

#include <cstdint>

#include "tutti/device/cpu/gemm/epilogue.h"

namespace tutti::cpu {

// Row i of A starts at data + (offsets ? offsets[i] : i * stride). A row is `taps` runs of `depth` contiguous floats, run t starting
// tap_offsets[t] floats after the row's start: one run for a matrix, one per kernel row for a convolution.
struct RowsOfA {
  const float* data = nullptr;
  const int32_t* offsets = nullptr;
  int64_t stride = 0;
  int64_t count = 0;
  int64_t taps = 1;
  const int32_t* tap_offsets = nullptr;
  int64_t depth = 0;

  // Some of them, of those that lie `stride` apart.
  RowsOfA part(int64_t first, int64_t some) const {
    RowsOfA out = *this;
    out.data += first * stride;
    out.count = some;
    return out;
  }
};

// Rows of A, and the rows of a panel that they meet.
struct PanelPart {
  const RowsOfA* a = nullptr;  // not a copy: to load vectors of what was just stored one by one waits for all stores before it
  const float* b = nullptr;    // [taps * depth, width] packed, 64-byte aligned
  int64_t b_depth = 0;         // rows of a panel, which the next one stands behind
  int64_t ahead = 0;           // floats behind this part of B that the next call reads, to be fetched on the way; as long as this part
};

// One call: all rows of A times one panel, or one row times neighbouring panels.
struct PanelCall {
  PanelPart part[2];      // the second of two_products alone, which has as many rows and columns as the first
  bool in_pairs = false;  // the last vector of B is made of pairs of rows: packed_matrix.h
  int64_t columns = 0;    // that exist; the rest of the last panel's width is zeros in B and is not stored
  float* c = nullptr;     // [rows, columns]
  int64_t c_stride = 0;
  bool accumulate = false;             // c holds partial sums over the earlier depth, bias included
  bool residual_first = false;         // sums begin with the residual instead of the bias
  const float* bias = nullptr;         // [columns] or none; read unless accumulate
  const Epilogue* epilogue = nullptr;  // none: store partial sums. Its bias and residual are not read here, those of the call are
  const float* residual = nullptr;     // at the rows and columns of this call
  int64_t residual_stride = 0;
};

// An element of the result is bias + a0 b0 + a1 b1 ..., one after the other, whatever the number of rows: a sample's results do not depend
// on the others of its batch. One row times a narrow matrix would wait for each sum, so sums of narrow matrices are split into `sets`: set
// s has the products s, s + sets, ..., and they are added in the end; again for any number of rows. So are the sums of even and of odd rows
// where a vector of B holds both.
struct PanelKernels {
  int64_t lanes;                              // floats in a vector
  bool has_pairs;                             // vectors of pairs of rows
  int64_t depth[5];                           // [vectors of a panel]: rows of it that stay in the first-level cache
  void (*rows[4])(const PanelCall&);          // [vectors of the panel]: any number of rows, one panel, one set
  void (*two_products[4])(const PanelCall&);  // the same, and each sum goes on with the second part's products
  // One row, so many panels of 3 vectors, then of 2, one set; from the last panel on if backwards. Leaves the call as it was.
  void (*one_row)(PanelCall&, int64_t threes, int64_t twos, bool backwards);
  void (*narrow[5])(const PanelCall&);  // [vectors of the panel]: any number of rows, a narrow matrix, sets
};

const PanelKernels& panel_kernels();

}  // namespace tutti::cpu
