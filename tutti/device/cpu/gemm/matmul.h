// Products of matrices: C = epilogue(A B), rows of A and C contiguous, B packed. One row (a dense layer on one sample) up to thousands.
// Nothing is allocated; threads == 1 stays on the calling thread.
#pragma once

#include <cstdint>

#include "tutti/device/cpu/gemm/packed_matrix.h"

namespace tutti::cpu {

// Rows of a thread's piece that make up for reading all of B from beyond the second-level cache. Of fewer, the columns are divided.
constexpr int64_t kManyRows = 32;
constexpr int64_t kFewRows = 12;     // the same where B is near
constexpr int64_t kRowsOfTiles = 8;  // whole tiles of every target's kernels

// a: [rows, b.depth], a_stride floats from row to row; c: [rows, b.columns], c_stride likewise. backwards: of one row, the last columns
// first.
void matmul(int64_t rows, const float* a, int64_t a_stride, const Panels& b, const Epilogue& epilogue, float* c, int64_t c_stride,
            int threads, bool backwards = false);

// A product that is added to another one of as many rows and columns, both wide: each sum goes on with its products, so that nothing has to
// be written between the two.
struct AddedProduct {
  RowsOfA a;
  Panels b;
};

// The same of rows that are found one by one or lie in several runs, as those of A's that is no matrix.
void matmul(const RowsOfA& a, const Panels& b, const Epilogue& epilogue, float* c, int64_t c_stride, int threads, bool backwards = false,
            const AddedProduct* added = nullptr);

// Some panels of B, all of them if it is narrow, on the calling thread: what matmul and convolution are made of. multiply_blocks takes as
// many rows at a time as stay in the second-level cache; they lie a.stride apart.
void multiply_blocks(const RowsOfA& a, const Panels& b, int64_t first_panel, int64_t last_panel, const Epilogue& epilogue, float* c,
                     int64_t c_stride, bool backwards = false, const AddedProduct* added = nullptr);
void multiply_panels(const RowsOfA& a, const Panels& b, int64_t first_panel, int64_t last_panel, const Epilogue& epilogue, float* c,
                     int64_t c_stride, bool backwards = false, const AddedProduct* added = nullptr);

}  // namespace tutti::cpu
