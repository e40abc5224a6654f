// Many products of one size, a matrix times another for each place of a batch: attention, training, stacked models. Nothing is allocated.
#pragma once

#include <cstdint>

#include "tutti/device/cpu/gemm/packed_matrix.h"

namespace tutti::cpu {

// Product i reads a + i * a_step and so on. A B that is not known before the run is packed product by product into the workspace, or all of
// it where it stays the same for a while. Small ones read both sides where they lie.
struct BatchedMatmul {
  int64_t batch, rows, depth, columns;
  int64_t a_stride, a_step;  // floats from row to row, from product to product
  int64_t b_row_stride, b_column_stride, b_step;
  int64_t c_stride, c_step;
  int64_t bias_step = 0;
  int64_t a_column_stride = 1;  // floats from element to element of a row; other than 1 only of what is_near()

  bool is_near() const;                  // B is row-major and stays in the first-level cache: neither side is moved
  bool is_column() const;                // B is one: each row is a dot product of its own
  bool is_tiny() const;                  // arithmetic of a few registers, where an epilogue would cost more than it saves
  int64_t workspace(int threads) const;  // floats, 64-byte aligned
  void run(const float* a, const float* b, const Epilogue& epilogue, float* c, float* workspace, int threads) const;

  int64_t packed_size() const;  // floats of all of B, 64-byte aligned
  void pack(const float* b, float* packed) const;
  void run_packed(const float* a, const float* packed, const Epilogue& epilogue, float* c, int threads) const;
  // With a B that is known before the run: samples are rows, and sum alike however many there are.
  PackedMatrix packed(const float* b) const { return {matrix(b, 0), batch, b_step, LeftRows::any}; }
  void run_packed(const float* a, const PackedMatrix& packed, const Epilogue& epilogue, float* c, int threads, bool backwards) const {
    run_panels(a, packed.panels(), epilogue, c, threads, backwards);
  }

 private:
  void run_column(const float* a, const float* b, const Epilogue& epilogue, float* c, float* workspace, int threads) const;
  bool is_tiny_by_columns() const;
  void run_tiny(const float* a, const float* b, float* c, int threads) const;
  void run_tiny_by_columns(const float* a, const float* b, float* c, int threads) const;
  LeftRows left() const { return rows > 1 ? LeftRows::several : LeftRows::any; }
  Matrix matrix(const float* b, int64_t i) const { return {b + i * b_step, depth, columns, b_row_stride, b_column_stride}; }
  void run_panels(const float* a, const Panels& first, const Epilogue& epilogue, float* c, int threads, bool backwards) const;
  Epilogue of_product(int64_t i, const Epilogue& all) const { return all.moved(i * bias_step, i * c_step); }
  bool is_near_turned() const;
  void run_near_turned(int64_t i, const float* a, const float* b, float* c) const;
  struct Part {  // rows of a product
    int64_t product, first, last;
  };
  Part whole(int64_t i) const { return {i, 0, rows}; }
  template <class Body>
  void each_part(int threads, const Body& body) const;
  void run_near(const Part& part, const float* a, const float* b, const Epilogue& all, float* c) const;
  void multiply(const Part& part, const float* a, const Panels& panels, const Epilogue& all, float* c, int threads = 1) const;
};

}  // namespace tutti::cpu
