// keras.ops that make new tensors from a tensor's shape or from bounds.
#include <cmath>

#include "tutti/graph/compose.h"
#include "tutti/keras/layers/operations/rows.h"

namespace tutti::keras {

namespace {

template <int value>
Outputs constant_like(Call& c) {
  Value x = array(c);
  return full(c.graph, {dtype_option(c.config, x.dtype()), x.shape()}, value);
}

Outputs full_like_(Call& c) {
  Value x = array(c);
  DType dtype = dtype_option(c.config, x.dtype());
  return broadcast_to(operand(c, 1, "fill_value").as(dtype), x.shape());
}

Outputs full_(Call& c) {
  Shape shape(c.config.ints("shape"));
  if (shape.elements() > (int64_t{1} << 32)) c.config.invalid("'shape' {} is too large", to_string(shape));
  return broadcast_to(operand(c, 0, "fill_value").as(dtype_option(c.config, DType::f32)), shape);
}

Outputs size_(Call& c) { return scalar(c.graph, DType::i32, static_cast<double>(array(c).shape().elements())); }

// `num` values from start to stop along a new axis.
struct Span {
  Value start, stop;
  int64_t axis, num, divisions;
  bool endpoint;
};

Span read_span(Call& c, DType dtype) {
  Operand start = operand(c, 0, "start"), stop = operand(c, 1, "stop");
  Value a = start.as(dtype), b = stop.as(dtype);
  Shape shape = broadcast(a.shape(), b.shape());
  int64_t num = c.config.integer("num", 50);
  if (num < 0 || num > most_elements) c.config.invalid("'num' is between 0 and {}; got {}", most_elements, num);
  bool endpoint = c.config.flag("endpoint", true);
  int64_t axis = wrapped_axis(c.config, c.config.integer("axis", 0), shape.rank() + 1);
  return {expand_dims(broadcast_to(a, shape), {axis}),
          expand_dims(broadcast_to(b, shape), {axis}),
          axis,
          num,
          endpoint ? std::max<int64_t>(num - 1, 1) : std::max<int64_t>(num, 1),
          endpoint};
}

Value evenly_spaced(const Span& s) {
  Ints extents(static_cast<size_t>(s.start.rank()), 1), out = s.start.shape().extents();
  extents[static_cast<size_t>(s.axis)] = s.num;
  out[static_cast<size_t>(s.axis)] = s.num;
  Value share = iota(s.start.graph(), {s.start.dtype(), extents}, s.axis) / static_cast<double>(s.divisions);
  return broadcast_to(s.start * (1.0 - share) + s.stop * share, out);
}

DType span_type(Call& c) { return result_type(operand(c, 0, "start"), operand(c, 1, "stop"), python_float); }

Outputs linspace(Call& c) {
  DType natural = span_type(c), dtype = dtype_option(c.config, natural);
  Span span = read_span(c, is_float(dtype) ? dtype : natural);
  Value out = evenly_spaced(span);
  if (is_integer(dtype)) out = floor(out);
  out = convert(out, dtype);
  if (!c.config.flag("retstep", false)) return out;
  Value step = squeeze((span.stop - span.start) / static_cast<double>(span.divisions), {span.axis});
  return std::vector<Signal>{{out, {}}, {step, {}}};
}

Outputs logspace(Call& c) {
  DType natural = span_type(c), dtype = dtype_option(c.config, natural);
  Value exponents = evenly_spaced(read_span(c, is_float(dtype) ? dtype : natural));
  return convert(power(full_like(exponents, c.config.number("base", 10)), exponents), dtype);
}

Outputs geomspace(Call& c) {
  DType natural = span_type(c), dtype = dtype_option(c.config, natural);
  Span span = read_span(c, is_float(dtype) ? dtype : natural);
  Value turn = sign(span.start);  // both bounds have one sign
  span.start = log(span.start / turn);
  span.stop = log(span.stop / turn);
  return convert(turn * exponential(evenly_spaced(span)), dtype);
}

// Columns are powers of x, the highest first unless increasing.
Outputs vander(Call& c) {
  Value x = array(c);
  if (x.rank() != 1) c.config.invalid("takes a vector; got {}", to_string(x.type()));
  int64_t columns = c.config.integer("N", x.extent(0));
  if (columns < 0 || columns > most_elements) c.config.invalid("'N' is between 0 and {}; got {}", most_elements, columns);
  Value exponents = iota(c.graph, {x.dtype() == DType::boolean ? DType::i32 : x.dtype(), {columns}}, 0);
  if (!c.config.flag("increasing", false)) exponents = flip(exponents, {0});
  return power(expand_dims(convert(x, exponents.dtype()), {1}), exponents);
}

}  // namespace

Rows creation_operations() {
  static const LayerRow rows[] = {
      refused("Arange", "the shape of its result depends on the data"),
      operation("EmptyLike", constant_like<0>, "", "filled with zeros"),
      operation("Full", full_, "shape"),
      operation("FullLike", full_like_),
      operation("Geomspace", geomspace, "num endpoint axis"),
      operation("Linspace", linspace, "num endpoint retstep axis"),
      operation("Logspace", logspace, "num endpoint base axis"),
      refused("Ndim", "Keras 3.15 cannot run it inside a model; the rank is known when the model is built"),
      operation("OnesLike", constant_like<1>),
      operation("Size", size_),
      operation("Vander", vander, "N increasing"),
      operation("ZerosLike", constant_like<0>),
  };
  return rows;
}

}  // namespace tutti::keras
