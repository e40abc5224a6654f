// Products of matrices that are small enough to be read where they lie: B row-major and in the first-level cache, A by rows or by columns.
// Packing B, or turning A over, would take a good part of their time. Compiled per Highway target, like panel_kernel.h.
#pragma once

#include "tutti/device/cpu/gemm/panel_kernel.h"

namespace tutti::cpu {

// A is [rows, depth] with a_step floats from element to element of a row; B is [depth, columns] with b_stride floats from row to row.
struct NearCall {
  PanelCall panel;  // one tap; b where it lies
  int64_t a_step = 1;
  int64_t b_stride = 0;
};

// An element of the result is summed as by PanelKernels::rows, bit for bit.
struct NearKernels {
  bool part_of_vector;                  // whether columns need not be a multiple of the lanes
  void (*rows[4])(const NearCall&);     // [vectors of the panel]: any number of rows, A by rows; b at the panel's first column
  void (*columns[4])(const NearCall&);  // the same, A by columns: its rows are one float apart
};

const NearKernels& near_kernels();

}  // namespace tutti::cpu
