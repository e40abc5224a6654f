// Functions of the bare tf namespace that move data and make tensors.
#include <algorithm>
#include <cmath>

#include "tutti/graph/compose.h"
#include "tutti/keras/layers/tensorflow/arguments.h"

namespace tutti::keras::tf {

namespace {

constexpr int64_t most_parts = 4096, most_range = 1 << 24;

std::vector<Signal> signals(const std::vector<Value>& values) {
  std::vector<Signal> out;
  for (Value value : values) out.push_back({value, {}});
  return out;
}

Outputs identity(Call& c) { return tensor(c); }
// x, shape: what the model's own shapes tell already
Outputs with_shape(Call& c) {
  find(c, "shape");
  return tensor(c);
}
Outputs stopped(Call& c) { return stop_gradient(tensor(c)); }

// Tensors to be joined have one rank.
Outputs concat(Call& c) {
  std::vector<Value> parts = tensors(c);
  return concatenate(parts, axis(c, parts[0].rank(), "axis"));
}
Outputs stack_values(Call& c) {
  std::vector<Value> parts = tensors(c);
  return stack(parts, axis(c, parts[0].rank() + 1, "axis", 0));
}
Outputs unstack(Call& c) {
  Value x = tensor(c);
  int64_t along = axis(c, x.rank(), "axis", 0);
  if (x.extent(along) > most_parts) c.config.unsupported("{} parts, more than {}", x.extent(along), most_parts);
  std::vector<Value> parts;
  for (int64_t i = 0; i < x.extent(along); ++i) parts.push_back(index_axis(x, along, i));
  return signals(parts);
}
// value, num_or_size_splits, axis
Outputs split_value(Call& c) {
  Value x = tensor(c);
  int64_t along = axis(c, x.rank(), "axis", 0), extent = x.extent(along);
  const Argument& given = argument(c, "num_or_size_splits");
  Ints sizes = integers(c, given);
  if (given.kind == Argument::Kind::constant) {
    int64_t count = sizes.at(0);
    if (count < 1 || count > most_parts || extent % count != 0) c.config.invalid("{} elements are not split in {}", extent, count);
    sizes.assign(static_cast<size_t>(count), extent / count);
  }
  int64_t known = 0, open = 0;
  for (int64_t size : sizes) {
    if (size < -1 || size > extent) c.config.invalid("cannot split {} elements in {}", extent, to_string(sizes));
    (size < 0 ? open : known) += size < 0 ? 1 : size;
  }
  if (open > 1 || (open == 0 ? known != extent : known > extent))
    c.config.invalid("cannot split {} elements in {}", extent, to_string(sizes));
  for (int64_t& size : sizes)
    if (size < 0) size = extent - known;
  return signals(split(x, along, sizes));
}

Outputs reshape_tensor(Call& c) {
  Value x = tensor(c);
  Ints to = integers(c, argument(c, "shape"));
  Ints known;
  for (int64_t extent : to)
    if (extent != -1) known.push_back(extent);
  int64_t elements = Shape(known).elements();
  for (int64_t& extent : to)
    if (extent == -1) extent = elements == 0 ? 0 : x.shape().elements() / elements;
  return reshape(x, to);
}

Outputs transpose_axes(Call& c) {
  Value x = tensor(c);
  Ints order = all_axes(x);
  std::reverse(order.begin(), order.end());
  if (const Argument* given = find(c, "perm")) order = integers(c, *given);
  return transpose(x, order);
}

Outputs expand(Call& c) {
  Value x = tensor(c);
  return expand_dims(x, {axis(c, x.rank() + 1, "axis")});
}
Outputs squeeze_axes(Call& c) {
  Value x = tensor(c);
  const Argument* given = find(c, "axis");
  // An empty list stands for every axis of one element.
  if (given == nullptr || (given->kind == Argument::Kind::list && given->items.empty())) return squeeze(x);
  return squeeze(x, axes(c, x));
}

Outputs tile_tensor(Call& c) {
  Value x = tensor(c);
  Ints times = integers(c, argument(c, "multiples"));
  bool fits = static_cast<int64_t>(times.size()) == x.rank() && std::all_of(times.begin(), times.end(), [](int64_t n) { return n >= 0; });
  if (!fits) c.config.invalid("'multiples' has one count an axis; got {}", to_string(times));
  return tile(x, times);
}
Outputs repeat_elements(Call& c) {
  Value x = tensor(c);
  if (find(c, "axis") == nullptr) x = flatten(x);
  int64_t times = integer(c, "repeats");
  if (times < 0) c.config.invalid("'repeats' is not negative; got {}", times);
  return repeat(x, times, axis(c, x.rank(), "axis", 0));
}
Outputs reverse_axes(Call& c) {
  Value x = tensor(c);
  return flip(x, axes(c, x));
}
Outputs roll_axes(Call& c) {
  Value x = tensor(c);
  Ints shifts = integers(c, argument(c, "shift")), along = integers(c, argument(c, "axis"));
  if (shifts.size() != along.size()) c.config.invalid("'shift' and 'axis' differ in number");
  for (size_t i = 0; i < along.size(); ++i) {
    if (along[i] < -x.rank() || along[i] >= x.rank()) c.config.invalid("'axis' is {}, outside of rank {}", along[i], x.rank());
    x = roll(x, shifts[i], along[i]);
  }
  return x;
}

// tensor, paddings, mode, constant_values
Outputs pad_tensor(Call& c) {
  Value x = tensor(c);
  const Argument& paddings = argument(c, "paddings");
  Ints low, high;
  for (const Argument& each : paddings.items) {
    Ints sides = integers(c, each);
    if (sides.size() != 2) c.config.invalid("'paddings' has two counts an axis");
    low.push_back(sides[0]);
    high.push_back(sides[1]);
  }
  bool fits = static_cast<int64_t>(low.size()) == x.rank() && std::all_of(low.begin(), low.end(), [](int64_t n) { return n >= 0; }) &&
              std::all_of(high.begin(), high.end(), [](int64_t n) { return n >= 0; });
  if (!fits) c.config.invalid("'paddings' has two counts an axis, not negative");
  std::string mode = text(c, "mode", "CONSTANT");
  std::transform(mode.begin(), mode.end(), mode.begin(), [](char letter) { return static_cast<char>(std::tolower(letter)); });
  const double constant = number(c, "constant_values", 0);
  if (mode == "constant") return pad(x, PadMode::constant, low, high, constant);
  if (mode == "reflect") return pad(x, PadMode::reflect, low, high);
  if (mode == "symmetric") return pad(x, PadMode::symmetric, low, high);
  c.config.invalid("'mode' is constant, reflect or symmetric; got '{}'", mode);
}

Outputs broadcast_tensor(Call& c) {
  Value x = tensor(c);
  Ints to = integers(c, argument(c, "shape"));
  for (size_t i = 0; i < to.size(); ++i) {
    auto from = static_cast<int64_t>(i) + x.rank() - static_cast<int64_t>(to.size());
    if (to[i] == -1 && from >= 0) to[i] = x.extent(from);
  }
  return broadcast_to(x, to);
}

Outputs where_function(Call& c) {
  if (find(c, "x") == nullptr || find(c, "y") == nullptr)
    c.config.unsupported("tf.where without x and y, whose result depends on the data");
  const Argument &x = argument(c, "x"), &y = argument(c, "y");
  bool plain = x.tensors().empty();
  Value known = tensor(c, plain ? y : x), other = tensor(c, plain ? x : y, known.dtype());
  return where(tensor(c), plain ? other : known, plain ? known : other);
}

Outputs cast_tensor(Call& c) { return convert(tensor(c), dtype(c, "dtype")); }
Outputs zeros_like(Call& c) {
  Value x = tensor(c);
  return full(c.graph, {dtype(c, "dtype", x.dtype()), x.shape()}, 0);
}
Outputs ones_like(Call& c) {
  Value x = tensor(c);
  return full(c.graph, {dtype(c, "dtype", x.dtype()), x.shape()}, 1);
}
Outputs zeros(Call& c) { return full(c.graph, {dtype(c, "dtype", DType::f32), integers(c, argument(c))}, 0); }
Outputs ones(Call& c) { return full(c.graph, {dtype(c, "dtype", DType::f32), integers(c, argument(c))}, 1); }
Outputs fill(Call& c) {
  Value value = tensor(c, "value");
  return broadcast_to(value, integers(c, argument(c)));
}
Outputs batch_flatten(Call& c) {
  Value x = tensor(c);
  if (x.rank() < 2) c.config.invalid("takes samples with axes of their own; got {}", to_string(x.shape()));
  return flatten(x, 1);
}
// Extents are known while the graph is made, so a shape is a constant.
Outputs shape(Call& c) {
  Value x = tensor(c);
  const Ints& extents = x.shape().extents();
  return convert(constant<int64_t>(c.graph, {x.rank()}, extents), dtype(c, "out_type", DType::i32));
}
Outputs size(Call& c) { return convert(constant<int64_t>(c.graph, {}, {tensor(c).shape().elements()}), dtype(c, "out_type", DType::i32)); }
Outputs rank(Call& c) { return constant<int32_t>(c.graph, {}, {static_cast<int32_t>(tensor(c).rank())}); }

// start, limit, delta, dtype; one alone is the limit. Whole numbers, which may come from a shape.
Outputs range(Call& c) {
  const Argument *first = &argument(c), *second = find(c, "limit");
  const int64_t start = second == nullptr ? 0 : integer(c, nullptr), limit = integer(c, second == nullptr ? nullptr : "limit");
  const int64_t delta = integer(c, "delta", 1);
  if (delta == 0) c.config.invalid("'delta' is not 0");
  const double steps = std::ceil((static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(delta));
  if (steps > most_range) c.config.invalid("a range has at most {} elements; got {}", most_range, steps);
  DType type = DType::i32;
  for (const Argument* one : {first, second, find(c, "delta")})
    if (one != nullptr && one->kind == Argument::Kind::tensor && one->tensor.value.dtype() == DType::i64) type = DType::i64;
  Value whole = iota(c.graph, {DType::i64, {static_cast<int64_t>(std::max(steps, 0.0))}}, 0);
  return convert(whole * static_cast<double>(delta) + static_cast<double>(start), dtype(c, "dtype", type));
}

// indices, depth, on_value, off_value, axis, dtype
Outputs one_hot_function(Call& c) {
  Value indices = tensor(c);
  int64_t depth = integer(c, "depth"), along = axis(c, indices.rank() + 1, "axis", -1);
  if (depth < 0) c.config.invalid("'depth' is not negative; got {}", depth);
  Value hot = one_hot(indices, depth, dtype(c, "dtype", DType::f32), along);
  double on = number(c, "on_value", 1), off = number(c, "off_value", 0);
  return on == 1 && off == 0 ? hot : hot * (on - off) + off;
}

// lengths, maxlen, dtype -> [..., maxlen]
Outputs sequence_mask(Call& c) {
  Value lengths = tensor(c);
  if (find(c, "maxlen") == nullptr) c.config.unsupported("tf.sequence_mask without maxlen, whose shape depends on the data");
  Ints extents = lengths.shape().extents();
  extents.push_back(integer(c, "maxlen"));
  Value steps = iota(c.graph, {lengths.dtype(), extents}, -1);
  return convert(compare(steps, expand_dims(lengths, {-1}), Direction::LT), dtype(c, "dtype", DType::boolean));
}

Outputs sort_values(Call& c) {
  Value x = tensor(c);
  return sort({x}, axis(c, x.rank(), "axis", -1), text(c, "direction", "ASCENDING") == "DESCENDING")[0];
}
Outputs argsort_values(Call& c) {
  Value x = tensor(c);
  return argsort(x, axis(c, x.rank(), "axis", -1), text(c, "direction", "ASCENDING") == "DESCENDING");
}

}  // namespace

std::span<const Function> array_functions() {
  static const Function functions[] = {
      {"argsort", argsort_values},
      {"broadcast_to", broadcast_tensor},
      {"cast", cast_tensor},
      {"concat", concat},
      {"convert_to_tensor", identity},
      {"debugging.check_numerics", identity},
      {"ensure_shape", with_shape},
      {"expand_dims", expand},
      {"fill", fill},
      {"grad_pass_through", identity},
      {"identity", identity},
      {"keras.backend.batch_flatten", batch_flatten},
      {"one_hot", one_hot_function},
      {"ones", ones},
      {"ones_like", ones_like},
      {"pad", pad_tensor},
      {"range", range},
      {"rank", rank},
      {"repeat", repeat_elements},
      {"reshape", reshape_tensor},
      {"reverse", reverse_axes},
      {"roll", roll_axes},
      {"sequence_mask", sequence_mask},
      {"shape", shape},
      {"size", size},
      {"sort", sort_values},
      {"split", split_value},
      {"squeeze", squeeze_axes},
      {"stack", stack_values},
      {"stop_gradient", stopped},
      {"tile", tile_tensor},
      {"transpose", transpose_axes},
      {"unstack", unstack},
      {"where", where_function},
      {"zeros", zeros},
      {"zeros_like", zeros_like},
  };
  return functions;
}

}  // namespace tutti::keras::tf
