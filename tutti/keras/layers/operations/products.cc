// keras.ops that multiply and sum: matrix products and their kin.
#include <algorithm>

#include "tutti/graph/compose.h"
#include "tutti/graph/einsum.h"
#include "tutti/keras/layers/operations/rows.h"

namespace tutti::keras {

namespace {

using Product = Value (*)(Value, Value);

// In the promoted dtype; bytes are multiplied into 32 bits where `widen`, and bool is summed as "any".
template <Product f, bool widen>
Outputs promoted_product(Call& c) {
  auto v = promoted({operand(c, 0, "x1"), operand(c, 1, "x2")});
  if (v[0].dtype() == DType::boolean) return convert(f(convert(v[0], DType::i32), convert(v[1], DType::i32)), DType::boolean);
  if (widen && v[0].dtype() == DType::i8) return f(convert(v[0], DType::i32), convert(v[1], DType::i32));
  return f(v[0], v[1]);
}

Value dot(Value a, Value b) {
  if (a.rank() == 0 || b.rank() == 0) return a * b;
  return dot_general(a, b, {{}, {}, {a.rank() - 1}, {std::max<int64_t>(b.rank() - 2, 0)}});
}
Value inner(Value a, Value b) {
  if (a.rank() == 0 || b.rank() == 0) return a * b;
  return dot_general(a, b, {{}, {}, {a.rank() - 1}, {b.rank() - 1}});
}
Value outer(Value a, Value b) { return expand_dims(flatten(a), {1}) * expand_dims(flatten(b), {0}); }
Value vdot(Value a, Value b) { return dot_general(flatten(a), flatten(b), {{}, {}, {0}, {0}}); }

// Every element of a times the whole of b.
Value kron(Value a, Value b) {
  int64_t rank = std::max(a.rank(), b.rank());
  auto raised = [&](Value x, bool first) {
    Ints extents(static_cast<size_t>(rank - x.rank()), 1), wide;
    extents.insert(extents.end(), x.shape().begin(), x.shape().end());
    for (int64_t extent : extents) {
      wide.push_back(first ? extent : 1);
      wide.push_back(first ? 1 : extent);
    }
    return reshape(x, wide);
  };
  Value both = raised(a, true) * raised(b, false);
  Ints out;
  for (int64_t i = 0; i < rank; ++i) out.push_back(Shape({both.extent(2 * i), both.extent(2 * i + 1)}).elements());
  return reshape(both, out);
}

// "axes": how many of the last of x1 and first of x2, or which ones.
Outputs tensordot(Call& c) {
  auto v = promoted({operand(c, 0, "x1"), operand(c, 1, "x2")});
  Value a = v[0], b = v[1];
  const Json& axes = c.config.get("axes");
  Ints left, right;
  if (axes.is_null() || axes.is_int()) {
    int64_t count = axes.is_null() ? 2 : axes.as_int();
    if (count < 0 || count > a.rank() || count > b.rank()) c.config.invalid("'axes' is {} for ranks {} and {}", count, a.rank(), b.rank());
    for (int64_t i = 0; i < count; ++i) {
      left.push_back(a.rank() - count + i);
      right.push_back(i);
    }
  } else {
    if (!axes.is_list() || axes.size() != 2) c.config.invalid("'axes' is a number or two lists; got {}", axes.dump());
    auto read = [&](size_t side, Value x) {
      Json object = Json::object();
      object.set("axes", axes[side]);
      return reduction_axes(Config(object, c.config.where()), x.rank(), "axes");
    };
    left = read(0, a);
    right = read(1, b);
  }
  return dot_general(a, b, {{}, {}, left, right});
}

Outputs einsum_(Call& c) {
  std::vector<Operand> operands;
  for (const Argument& argument : c.arguments.in_order()) operands.push_back(to_operand(c, argument, "operands"));
  if (operands.empty()) c.config.invalid("is called without tensors");
  auto values = promoted(operands);
  if (values[0].dtype() == DType::i8)
    for (Value& v : values) v = convert(v, DType::i32);
  return einsum(c.config.text("subscripts"), values);
}

// Of vectors of 2 or 3 along an axis; a missing third component is 0, and the result of two planes is its third component alone.
Outputs cross(Call& c) {
  auto v = promoted({operand(c, 0, "x1"), operand(c, 1, "x2")});
  auto axis = [&](std::string_view key) { return c.config.has("axis") ? c.config.integer("axis") : c.config.integer(key, -1); };
  Value a = moveaxis(v[0], {axis("axisa")}, {-1}), b = moveaxis(v[1], {axis("axisb")}, {-1});
  for (Value x : {a, b})
    if (x.extent(-1) != 2 && x.extent(-1) != 3) c.config.invalid("takes vectors of 2 or 3; got {}", to_string(x.type()));
  auto part = [](Value x, int64_t i) { return i < x.extent(-1) ? index_axis(x, -1, i) : full_like(index_axis(x, -1, 0), 0); };
  auto component = [&](int64_t i, int64_t j) { return part(a, i) * part(b, j) - part(a, j) * part(b, i); };
  if (a.extent(-1) == 2 && b.extent(-1) == 2) return component(0, 1);
  return moveaxis(stack({component(1, 2), component(2, 0), component(0, 1)}, -1), {-1}, {axis("axisc")});
}

// A vector slides along another; the shorter one is the window.
Outputs correlate(Call& c) {
  Operand first = operand(c, 0, "x1"), second = operand(c, 1, "x2");
  DType dtype = result_type(first, second);
  dtype = dtype == DType::i64 ? DType::f64 : float_type(dtype);
  Value x = first.as(dtype), y = second.as(dtype);
  if (x.rank() != 1 || y.rank() != 1 || x.extent(0) == 0 || y.extent(0) == 0)
    c.config.invalid("takes two vectors; got {} and {}", to_string(x.type()), to_string(y.type()));
  bool swapped = x.extent(0) < y.extent(0);
  if (swapped) std::swap(x, y);
  int64_t n = y.extent(0);
  std::string mode = c.config.text("mode", "valid");
  Ints low{0}, high{0};
  if (mode == "same") {
    low = {n / 2};
    high = {n - n / 2 - 1};
  } else if (mode == "full") {
    low = high = {n - 1};
  } else if (mode != "valid") {
    c.config.invalid("'mode' is valid, same or full; got '{}'", mode);
  }
  Value out = flatten(convolution(reshape(x, {1, x.extent(0), 1}), reshape(y, {n, 1, 1}), {{1}, low, high}));
  return swapped ? flip(out, {0}) : out;
}

// Rows are variables, columns observations.
Outputs corrcoef(Call& c) {
  Value x = array(c);
  x = convert(x, x.dtype() == DType::i64 ? DType::f64 : float_type(x.dtype()));
  if (x.rank() > 2) c.config.invalid("takes a matrix; got {}", to_string(x.type()));
  if (x.rank() < 2) return scalar(c.graph, x.dtype(), 1);
  Value centered = x - mean(x, {1}, true);
  Value covariance = matmul(centered, transpose(centered, {1, 0}));
  Value deviation = sqrt(sum(square(centered), {1}, true));  // [rows, 1]
  return clamp(covariance / deviation / transpose(deviation, {1, 0}), -1, 1);
}

// Distances between the rows of x and those of y.
Outputs cdist(Call& c) {
  Operand a = operand(c, 0, "x"), b = operand(c, 1, "y");
  DType dtype = result_type(a, b);
  Value x = a.as(dtype), y = b.as(dtype);
  if (x.rank() < 2 || y.rank() < 2) c.config.invalid("takes matrices; got {} and {}", to_string(x.type()), to_string(y.type()));
  Value squares = sum(square(expand_dims(x, {-2}) - expand_dims(y, {-3})), {-1});
  return sqrt(convert(squares, float_type(dtype)));
}

}  // namespace

Rows product_operations() {
  static const LayerRow rows[] = {
      operation("CDist", cdist),
      operation("Corrcoef", corrcoef),
      operation("Correlate", correlate, "mode"),
      operation("Cross", cross, "axisa axisb axisc axis"),
      operation("Dot", promoted_product<dot, false>),
      operation("Einsum", einsum_, "subscripts"),
      operation("Inner", promoted_product<inner, false>),
      operation("Kron", promoted_product<kron, false>),
      operation("Matmul", promoted_product<matmul, true>),
      operation("Outer", promoted_product<outer, false>),
      operation("Tensordot", tensordot, "axes"),
      operation("Vdot", promoted_product<vdot, false>),
  };
  return rows;
}

}  // namespace tutti::keras
