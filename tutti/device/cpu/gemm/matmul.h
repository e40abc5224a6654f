// Products of matrices: C = epilogue(A B), rows of A and C contiguous, B packed. One row (a dense layer on one sample) up to thousands.
// Nothing is allocated; threads == 1 stays on the calling thread.
#pragma once

#include <cstdint>

#include "tutti/device/cpu/gemm/packed_matrix.h"

namespace tutti::cpu {

// Rows of a thread's piece that make up for reading all of B from beyond the second-level cache. Of fewer, the columns are divided.
constexpr int64_t kManyRows = 32;

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

// Many products with a B that is not constant: attention, training. Product i reads a.data + i * a_step and so on; B is packed product by
// product into the workspace, or all of it where it stays the same for a while. Small ones read both sides where they lie.
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
