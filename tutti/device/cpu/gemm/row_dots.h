// Products with one column, C = epilogue(A b): a dense layer with one unit. Each row is a dot product of its own.
#pragma once

#include <cstdint>
#include <memory>

#include "tutti/device/cpu/gemm/epilogue.h"

namespace tutti::cpu {

// The column, filled up with zeros to whole vectors.
class PaddedColumn {
 public:
  PaddedColumn(const float* from, int64_t depth, int64_t stride);
  const float* data() const { return storage_.get(); }
  int64_t depth() const { return depth_; }

 private:
  std::shared_ptr<float[]> storage_;
  int64_t depth_;
};

// a: [rows, b.depth()], a_stride floats from row to row; c: [rows]. The epilogue's bias is one number, its residual one a row.
void row_dots(int64_t rows, const float* a, int64_t a_stride, const PaddedColumn& b, const Epilogue& epilogue, float* c, int threads);

}  // namespace tutti::cpu
