#include "tutti/graph/build.h"

#include <numeric>

#include "tutti/base/error.h"

namespace tutti {

namespace {

Value one(Graph& graph, Op op, const std::vector<Value>& operands, Attributes attributes = {}) {
  return graph.add(op, operands, std::move(attributes))[0];
}

Value like(Value x, double value) { return scalar(x.graph(), x.dtype(), value); }

Ints or_all(Ints list, int64_t rank, int64_t value) { return list.empty() ? Ints(static_cast<size_t>(rank), value) : list; }

constexpr const char* direction_names[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};

}  // namespace

int64_t wrap_axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) fail<InvalidArgument>("graph", "axis {} is outside of rank {}", axis, rank);
  return axis < 0 ? axis + rank : axis;
}

Ints wrap_axes(Ints axes, int64_t rank) {
  for (int64_t& axis : axes) axis = wrap_axis(axis, rank);
  return axes;
}

Value scalar(Graph& graph, DType dtype, double value) {
  return dispatch(dtype, [&](auto zero) { return graph.constant(Tensor::scalar(convert_element<decltype(zero)>(value))); });
}

Value full(Graph& graph, Type type, double value) { return broadcast_in_dim(scalar(graph, type.dtype, value), type.shape, {}); }
Value full_like(Value x, double value) { return full(x.graph(), x.type(), value); }
Value iota(Graph& graph, Type type, int64_t axis) {
  int64_t rank = type.shape.rank();
  return graph.iota(std::move(type), wrap_axis(axis, rank));
}

Value unary(Op op, Value x) { return one(x.graph(), op, {x}); }

Value binary(Op op, Value a, Value b) {
  Shape shape = broadcast(a.shape(), b.shape());
  return one(a.graph(), op, {broadcast_to(a, shape), broadcast_to(b, shape)});
}

Value operator+(Value a, Value b) { return binary(Op::add, a, b); }
Value operator-(Value a, Value b) { return binary(Op::subtract, a, b); }
Value operator*(Value a, Value b) { return binary(Op::multiply, a, b); }
Value operator/(Value a, Value b) { return binary(Op::divide, a, b); }
Value operator-(Value a) { return unary(Op::negate, a); }
Value operator+(Value a, double b) { return a + like(a, b); }
Value operator-(Value a, double b) { return a - like(a, b); }
Value operator*(Value a, double b) { return a * like(a, b); }
Value operator/(Value a, double b) { return a / like(a, b); }
Value operator+(double a, Value b) { return like(b, a) + b; }
Value operator-(double a, Value b) { return like(b, a) - b; }
Value operator*(double a, Value b) { return like(b, a) * b; }
Value operator/(double a, Value b) { return like(b, a) / b; }

Value abs(Value x) { return unary(Op::abs, x); }
Value exponential(Value x) { return unary(Op::exponential, x); }
Value exponential_minus_one(Value x) { return unary(Op::exponential_minus_one, x); }
Value log(Value x) { return unary(Op::log, x); }
Value log_plus_one(Value x) { return unary(Op::log_plus_one, x); }
Value logistic(Value x) { return unary(Op::logistic, x); }
Value tanh(Value x) { return unary(Op::tanh, x); }
Value sqrt(Value x) { return unary(Op::sqrt, x); }
Value rsqrt(Value x) { return unary(Op::rsqrt, x); }
Value erf(Value x) { return unary(Op::erf, x); }
Value floor(Value x) { return unary(Op::floor, x); }
Value sign(Value x) { return unary(Op::sign, x); }
Value logical_not(Value x) { return unary(Op::not_, x); }
Value logical_and(Value a, Value b) { return binary(Op::and_, a, b); }
Value logical_or(Value a, Value b) { return binary(Op::or_, a, b); }
Value maximum(Value a, Value b) { return binary(Op::maximum, a, b); }
Value minimum(Value a, Value b) { return binary(Op::minimum, a, b); }
Value maximum(Value a, double b) { return maximum(a, like(a, b)); }
Value minimum(Value a, double b) { return minimum(a, like(a, b)); }
Value power(Value a, Value b) { return binary(Op::power, a, b); }
Value power(Value a, double b) { return power(a, like(a, b)); }
Value remainder(Value a, Value b) { return binary(Op::remainder, a, b); }
Value clamp(Value x, double low, double high) { return minimum(maximum(x, low), high); }

Value compare(Value a, Value b, Direction direction) {
  Shape shape = broadcast(a.shape(), b.shape());
  return one(a.graph(), Op::compare, {broadcast_to(a, shape), broadcast_to(b, shape)},
             {{"direction", std::string(direction_names[static_cast<size_t>(direction)])}});
}
Value compare(Value a, double b, Direction direction) { return compare(a, like(a, b), direction); }

Value select(Value predicate, Value on_true, Value on_false) {
  Shape shape = broadcast(predicate.shape(), broadcast(on_true.shape(), on_false.shape()));
  return one(predicate.graph(), Op::select, {broadcast_to(predicate, shape), broadcast_to(on_true, shape), broadcast_to(on_false, shape)});
}

Value convert(Value x, DType dtype) {
  return x.dtype() == dtype ? x : one(x.graph(), Op::convert, {x}, {{"dtype", std::string(name(dtype))}});
}
Value bitcast_convert(Value x, DType dtype) { return one(x.graph(), Op::bitcast_convert, {x}, {{"dtype", std::string(name(dtype))}}); }

Value broadcast_in_dim(Value x, Shape shape, Ints dimensions) {
  return one(x.graph(), Op::broadcast_in_dim, {x}, {{"shape", shape.extents()}, {"dimensions", std::move(dimensions)}});
}

Value broadcast_to(Value x, const Shape& shape) {
  if (x.shape() == shape) return x;
  if (x.rank() > shape.rank()) fail<InvalidArgument>("graph", "{} does not broadcast to {}", to_string(x.shape()), to_string(shape));
  Ints dimensions(static_cast<size_t>(x.rank()));
  std::iota(dimensions.begin(), dimensions.end(), shape.rank() - x.rank());
  return broadcast_in_dim(x, shape, std::move(dimensions));
}

Value reshape(Value x, Shape shape) { return x.shape() == shape ? x : one(x.graph(), Op::reshape, {x}, {{"shape", shape.extents()}}); }

Value transpose(Value x, Ints permutation) {
  permutation = wrap_axes(std::move(permutation), x.rank());
  if (static_cast<int64_t>(permutation.size()) == x.rank() && std::is_sorted(permutation.begin(), permutation.end())) return x;
  return one(x.graph(), Op::transpose, {x}, {{"permutation", std::move(permutation)}});
}

Value slice(Value x, Ints start, Ints limit, Ints strides) {
  strides = or_all(std::move(strides), x.rank(), 1);
  return one(x.graph(), Op::slice, {x}, {{"start", std::move(start)}, {"limit", std::move(limit)}, {"strides", std::move(strides)}});
}

Value pad(Value x, double value, Ints low, Ints high, Ints interior) {
  interior = or_all(std::move(interior), x.rank(), 0);
  return one(x.graph(), Op::pad, {x, like(x, value)},
             {{"low", std::move(low)}, {"high", std::move(high)}, {"interior", std::move(interior)}});
}

Value concatenate(const std::vector<Value>& parts, int64_t axis) {
  if (parts.empty()) fail<InvalidArgument>("graph", "nothing to concatenate");
  if (parts.size() == 1) return parts[0];
  return one(parts[0].graph(), Op::concatenate, parts, {{"dimension", wrap_axis(axis, parts[0].rank())}});
}

Value reverse(Value x, Ints axes) { return one(x.graph(), Op::reverse, {x}, {{"dimensions", wrap_axes(std::move(axes), x.rank())}}); }

Value dynamic_slice(Value x, const std::vector<Value>& starts, Ints sizes) {
  std::vector<Value> operands{x};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return one(x.graph(), Op::dynamic_slice, operands, {{"sizes", std::move(sizes)}});
}

Value dynamic_update_slice(Value x, Value update, const std::vector<Value>& starts) {
  std::vector<Value> operands{x, update};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return one(x.graph(), Op::dynamic_update_slice, operands);
}

std::vector<Value> sort(const std::vector<Value>& operands, int64_t axis, bool descending) {
  return operands.at(0).graph().add(Op::sort, operands,
                                    {{"dimension", wrap_axis(axis, operands[0].rank())}, {"descending", int64_t{descending}}});
}

Value gather(Value operand, Value indices, const GatherDims& d, Ints slice_sizes) {
  return one(operand.graph(), Op::gather, {operand, indices},
             {{"offset_dims", d.offset_dims},
              {"collapsed_slice_dims", d.collapsed_slice_dims},
              {"operand_batching_dims", d.operand_batching_dims},
              {"start_indices_batching_dims", d.start_indices_batching_dims},
              {"start_index_map", d.start_index_map},
              {"index_vector_dim", d.index_vector_dim},
              {"slice_sizes", std::move(slice_sizes)}});
}

Value scatter(Value operand, Value indices, Value updates, const ScatterDims& d, std::string kind) {
  return one(operand.graph(), Op::scatter, {operand, indices, updates},
             {{"update_window_dims", d.update_window_dims},
              {"inserted_window_dims", d.inserted_window_dims},
              {"input_batching_dims", d.input_batching_dims},
              {"scatter_indices_batching_dims", d.scatter_indices_batching_dims},
              {"scatter_dims_to_operand_dims", d.scatter_dims_to_operand_dims},
              {"index_vector_dim", d.index_vector_dim},
              {"kind", std::move(kind)}});
}

std::vector<Value> all_reduce(const std::vector<Value>& values, int64_t replicas) {
  return values.empty() ? values : values[0].graph().add(Op::all_reduce, values, {{"replicas", replicas}});
}
Value random_bits(Value keys, Shape shape) { return one(keys.graph(), Op::random_bits, {keys}, {{"shape", shape.extents()}}); }

Value reduce(Value x, std::string kind, Ints axes, bool keepdims) {
  axes = wrap_axes(std::move(axes), x.rank());
  Ints kept = x.shape().extents();
  for (int64_t axis : axes) kept[static_cast<size_t>(axis)] = 1;
  Value out = one(x.graph(), Op::reduce, {x}, {{"kind", std::move(kind)}, {"dimensions", std::move(axes)}});
  return keepdims ? reshape(out, kept) : out;
}

Value dot_general(Value lhs, Value rhs, const DotDims& d) {
  return one(lhs.graph(), Op::dot_general, {lhs, rhs},
             {{"lhs_batch", d.lhs_batch},
              {"rhs_batch", d.rhs_batch},
              {"lhs_contracting", d.lhs_contracting},
              {"rhs_contracting", d.rhs_contracting}});
}

Value reduce_window(Value x, std::string kind, const Window& w) {
  return one(x.graph(), Op::reduce_window, {x},
             {{"kind", std::move(kind)},
              {"window", w.size},
              {"strides", w.strides},
              {"base_dilation", or_all(w.base_dilation, x.rank(), 1)},
              {"window_dilation", or_all(w.window_dilation, x.rank(), 1)},
              {"low", w.low},
              {"high", w.high}});
}

Value convolution(Value input, Value kernel, const ConvolutionDims& d) {
  int64_t spatial = input.rank() - 2;
  return one(input.graph(), Op::convolution, {input, kernel},
             {{"strides", d.strides},
              {"low", d.low},
              {"high", d.high},
              {"lhs_dilation", or_all(d.lhs_dilation, spatial, 1)},
              {"rhs_dilation", or_all(d.rhs_dilation, spatial, 1)},
              {"groups", d.groups}});
}

ScanResult scan(const std::vector<Value>& carries, const std::vector<Value>& slices, const std::vector<Value>& whole, int64_t length,
                bool reverse, const std::function<ScanStep(Graph&, std::vector<Value>, std::vector<Value>, std::vector<Value>)>& step) {
  auto body = std::make_shared<Graph>();
  std::vector<Value> operands, inner_carries, inner_slices, inner_whole;
  auto declare = [&](const std::vector<Value>& values, std::string_view prefix, bool sliced, std::vector<Value>& inner) {
    for (Value v : values) {
      Type type = v.type();
      if (sliced) {
        if (type.shape.rank() < 1) fail<InvalidArgument>("graph", "scan slices values along axis 0; got a scalar");
        type.shape = Ints(type.shape.begin() + 1, type.shape.end());
      }
      inner.push_back(body->input(fmt::format("{}{}", prefix, inner.size()), type));
      operands.push_back(v);
    }
  };
  declare(carries, "carry", false, inner_carries);
  declare(slices, "slice", true, inner_slices);
  declare(whole, "whole", false, inner_whole);
  if (operands.empty()) fail<InvalidArgument>("graph", "scan needs an operand");
  ScanStep next = step(*body, inner_carries, inner_slices, inner_whole);
  for (size_t i = 0; i < next.carries.size(); ++i) body->output(fmt::format("carry{}", i), next.carries[i]);
  for (size_t i = 0; i < next.stacked.size(); ++i) body->output(fmt::format("stacked{}", i), next.stacked[i]);
  auto results = operands[0].graph().add(Op::scan, operands,
                                         {{"carries", static_cast<int64_t>(carries.size())},
                                          {"slices", static_cast<int64_t>(slices.size())},
                                          {"length", length},
                                          {"reverse", int64_t{reverse}}},
                                         std::move(body));
  auto middle = results.begin() + static_cast<std::ptrdiff_t>(carries.size());
  return {{results.begin(), middle}, {middle, results.end()}};
}

}  // namespace tutti
