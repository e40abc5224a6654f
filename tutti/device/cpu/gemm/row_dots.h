// Products with one column, C = epilogue(A b): a dense layer with one unit. Each row is a dot product of its own.
#pragma once

#include <cstdint>
#include <memory>

#include "tutti/device/cpu/gemm/epilogue.h"

namespace tutti::cpu {

// The column, or the columns of as many products, each filled up with zeros to whole vectors.
class PaddedColumns {
 public:
  // An element is from[i * step + k * stride].
  PaddedColumns(const float* from, int64_t depth, int64_t stride, int64_t count = 1, int64_t step = 0);
  const float* data(int64_t i = 0) const { return storage_.get() + i * padded_; }
  int64_t depth() const { return depth_; }
  int64_t count() const { return count_; }

 private:
  std::shared_ptr<float[]> storage_;
  int64_t depth_, count_, padded_;
};

// Floats of one such column, and how it is filled; the place must be 64-byte aligned.
int64_t padded_size(int64_t depth);
void pad_column(const float* from, int64_t depth, int64_t stride, float* place);

// a: [rows, depth], a_stride floats from row to row; b: a column that is filled up; c: [rows]. On the calling thread. The epilogue's bias
// is one number, its residual one a row.
void row_dots(int64_t rows, const float* a, int64_t a_stride, const float* b, int64_t depth, const Epilogue& epilogue, float* c);
// a: [rows, b.depth()], a_stride floats from row to row; c: [rows].
void row_dots(int64_t rows, const float* a, int64_t a_stride, const PaddedColumns& b, const Epilogue& epilogue, float* c, int threads);
// Of all columns: a product's rows are a_step floats behind those of the one before, c and the residual are [count, rows], bias is [count].
void row_dots(int64_t rows, const float* a, int64_t a_stride, int64_t a_step, const PaddedColumns& b, const Epilogue& epilogue, float* c,
              int threads);

}  // namespace tutti::cpu
