// How graphs are written: a free function an op, and arithmetic on values. Elementwise functions broadcast their operands as NumPy does
// (one dtype: convert says it aloud); a plain number becomes a constant of the other operand's dtype. Axes may be negative.
#pragma once

#include <functional>

#include "tutti/graph/graph.h"

namespace tutti {

// A possibly negative axis as one of 0 ... rank - 1; throws InvalidArgument outside.
int64_t wrap_axis(int64_t axis, int64_t rank);
Ints wrap_axes(Ints axes, int64_t rank);

// Constants and simple leaves.
Value scalar(Graph& graph, DType dtype, double value);
Value full(Graph& graph, Type type, double value);
Value full_like(Value like, double value);
Value iota(Graph& graph, Type type, int64_t axis);
template <class T>
Value constant(Graph& graph, Shape shape, const std::vector<T>& values) {
  return graph.constant(Tensor::of<T>(std::move(shape), std::span<const T>(values)));
}

// Any one-operand elementwise op by name: unary(Op::exponential, x). The common ones have a name of their own below.
Value unary(Op op, Value x);
Value binary(Op op, Value a, Value b);  // broadcasts

Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
Value operator/(Value a, Value b);
Value operator-(Value a);
Value operator+(Value a, double b);
Value operator-(Value a, double b);
Value operator*(Value a, double b);
Value operator/(Value a, double b);
Value operator+(double a, Value b);
Value operator-(double a, Value b);
Value operator*(double a, Value b);
Value operator/(double a, Value b);

Value abs(Value x);
Value exponential(Value x);
Value exponential_minus_one(Value x);
Value log(Value x);
Value log_plus_one(Value x);
Value logistic(Value x);
Value tanh(Value x);
Value sqrt(Value x);
Value rsqrt(Value x);
Value erf(Value x);
Value floor(Value x);
Value sign(Value x);
Value logical_not(Value x);
Value logical_and(Value a, Value b);
Value logical_or(Value a, Value b);
Value maximum(Value a, Value b);
Value minimum(Value a, Value b);
Value maximum(Value a, double b);
Value minimum(Value a, double b);
Value power(Value a, Value b);
Value power(Value a, double b);
Value remainder(Value a, Value b);  // sign of the dividend, as C
Value clamp(Value x, double low, double high);

enum class Direction { EQ, NE, GE, GT, LE, LT };
Value compare(Value a, Value b, Direction direction);
Value compare(Value a, double b, Direction direction);
Value select(Value predicate, Value on_true, Value on_false);  // broadcasts all three

Value convert(Value x, DType dtype);  // x itself when it has that dtype
Value bitcast_convert(Value x, DType dtype);

// Moving data.
Value broadcast_in_dim(Value x, Shape shape, Ints dimensions);
Value broadcast_to(Value x, const Shape& shape);  // NumPy's rule
Value reshape(Value x, Shape shape);
Value transpose(Value x, Ints permutation);
Value slice(Value x, Ints start, Ints limit, Ints strides = {});
Value pad(Value x, double value, Ints low, Ints high, Ints interior = {});
Value concatenate(const std::vector<Value>& parts, int64_t axis);
Value reverse(Value x, Ints axes);
Value dynamic_slice(Value x, const std::vector<Value>& starts, Ints sizes);
Value dynamic_update_slice(Value x, Value update, const std::vector<Value>& starts);
std::vector<Value> sort(const std::vector<Value>& operands, int64_t axis, bool descending = false);

struct GatherDims {
  Ints offset_dims, collapsed_slice_dims, operand_batching_dims, start_indices_batching_dims, start_index_map;
  int64_t index_vector_dim = 0;
};
Value gather(Value operand, Value indices, const GatherDims& dims, Ints slice_sizes);

struct ScatterDims {
  Ints update_window_dims, inserted_window_dims, input_batching_dims, scatter_indices_batching_dims, scatter_dims_to_operand_dims;
  int64_t index_vector_dim = 0;
};
Value scatter(Value operand, Value indices, Value updates, const ScatterDims& dims, std::string kind);

// Keys u64[..., 2] of a seed and a counter: bits u32[..., shape...], the same for the same key.
Value random_bits(Value keys, Shape shape);
std::vector<Value> all_reduce(const std::vector<Value>& values, int64_t replicas);

// Contractions and windows.
Value reduce(Value x, std::string kind, Ints axes, bool keepdims = false);

struct DotDims {
  Ints lhs_batch, rhs_batch, lhs_contracting, rhs_contracting;
};
Value dot_general(Value lhs, Value rhs, const DotDims& dims);

struct Window {
  Ints size, strides, low, high;                  // one entry an axis
  Ints base_dilation = {}, window_dilation = {};  // empty: ones
};
Value reduce_window(Value x, std::string kind, const Window& window);

struct ConvolutionDims {
  Ints strides, low, high;                    // one entry a spatial axis
  Ints lhs_dilation = {}, rhs_dilation = {};  // empty: ones
  int64_t groups = 1;
};
Value convolution(Value input, Value kernel, const ConvolutionDims& dims);

// scan: see op_list.h. `body` gets handles on its parameters (carries, slices, whole values) and returns next carries and values to stack.
struct ScanStep {
  std::vector<Value> carries, stacked;
};
struct ScanResult {
  std::vector<Value> carries, stacked;
};
ScanResult scan(
    const std::vector<Value>& carries, const std::vector<Value>& slices, const std::vector<Value>& whole, int64_t length, bool reverse,
    const std::function<ScanStep(Graph& body, std::vector<Value> carries, std::vector<Value> slices, std::vector<Value> whole)>& step);

}  // namespace tutti
