// keras.ops.nn without windows: activations, normalization, encodings, losses, attention.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tutti/graph/compose.h"
#include "tutti/keras/activations.h"
#include "tutti/keras/layers/operations/rows.h"

namespace tutti::keras {

namespace {

constexpr double epsilon = 1e-7;  // keras.config.epsilon()

Value in_float(Call& c) {
  Value x = array(c);
  return convert(x, float_type(x.dtype()));
}

// Absent: the last axis; null: all of them.
Ints softmax_axes(Call& c, int64_t rank) {
  return c.config.json().is_object() && c.config.json().has("axis") ? reduction_axes(c.config, rank) : Ints{rank - 1};
}

Outputs softmax_(Call& c) {
  Value x = in_float(c);
  return softmax(x, softmax_axes(c, x.rank()));
}
Outputs log_softmax_(Call& c) {
  Value x = in_float(c);
  return log_softmax(x, softmax_axes(c, x.rank()));
}

template <Value (*f)(Value, double)>
Outputs with(Call& c, std::string_view key, double otherwise) {
  return f(in_float(c), c.config.number(key, otherwise));
}
template <Value (*f)(Value, int64_t)>
Outputs along_axis(Call& c) {
  return f(in_float(c), c.config.integer("axis", -1));
}

Outputs relu_(Call& c) {
  std::optional<double> largest;
  if (c.config.has("max_value")) largest = c.config.number("max_value");
  return relu(in_float(c), c.config.number("negative_slope", 0), largest, c.config.number("threshold", 0));
}

Value plain_relu(Value x) { return maximum(x.dtype() == DType::boolean ? convert(x, DType::i32) : x, 0.0); }
Value plain_relu6(Value x) { return minimum(plain_relu(x), 6.0); }

void refuse_sparse(Call& c) {
  if (c.config.flag("sparse", false)) c.config.unsupported("sparse results are not done");
}
int64_t classes(Call& c) {
  std::string_view key = c.config.has("num_classes") ? "num_classes" : "num_tokens";
  int64_t count = c.config.integer(key);
  if (count < 0 || count > most_elements) c.config.invalid("'{}' is between 0 and {}; got {}", key, most_elements, count);
  return count;
}

Outputs one_hot_(Call& c) {
  refuse_sparse(c);
  Value x = array(c);
  return one_hot(x, classes(c), dtype_option(c.config, DType::f32), wrapped_axis(c.config, c.config.integer("axis", -1), x.rank() + 1));
}

Outputs multi_hot(Call& c) {
  refuse_sparse(c);
  Value x = convert(array(c, "inputs"), DType::i32);
  int64_t axis = wrapped_axis(c.config, c.config.integer("axis", -1), x.rank() + 1);
  Value each = one_hot(x, classes(c), DType::boolean, axis);
  return convert(any(each, {x.rank() > 1 ? 1 : 0}), dtype_option(c.config, DType::f32));
}

struct TargetAndOutput {
  Value target, output;
};
TargetAndOutput target_and_output(Call& c) {
  Operand target = operand(c, 0, "target"), output = operand(c, 1, "output");
  DType dtype = result_type(target, output, python_float);
  return {target.as(dtype), output.as(dtype)};
}
Value clipped(Value probability) { return clamp(probability, epsilon, 1 - epsilon); }
Value log_probability(Call& c, Value output, int64_t axis) {
  if (c.config.flag("from_logits", false)) return log_softmax(output, {axis});
  return log(clipped(output / sum(output, {axis}, true)));
}

Outputs binary_crossentropy(Call& c) {
  auto [target, output] = target_and_output(c);
  if (c.config.flag("from_logits", false)) return -target * log_sigmoid(output) - (1.0 - target) * log_sigmoid(-output);
  output = clipped(output);
  return -(target * log(output) + (1.0 - target) * log(1.0 - output));
}

Outputs categorical_crossentropy(Call& c) {
  auto [target, output] = target_and_output(c);
  if (!(target.shape() == output.shape()) || target.rank() < 1)
    c.config.invalid("'target' and 'output' have one shape; got {} and {}", to_string(target.type()), to_string(output.type()));
  int64_t axis = wrapped_axis(c.config, c.config.integer("axis", -1), output.rank());
  return -sum(target * log_probability(c, output, axis), {axis});
}

Outputs sparse_categorical_crossentropy(Call& c) {
  Value target = operand(c, 0, "target").as(DType::i32), output = operand(c, 1, "output").value();
  output = convert(output, float_type(output.dtype()));
  if (output.rank() < 1) c.config.invalid("'output' has at least one axis; got {}", to_string(output.type()));
  if (target.rank() == output.rank() && target.extent(-1) == 1) target = squeeze(target, {-1});
  if (target.rank() != output.rank() - 1)
    c.config.invalid("'target' is one class an 'output'; got {} and {}", to_string(target.type()), to_string(output.type()));
  int64_t axis = wrapped_axis(c.config, c.config.integer("axis", -1), output.rank());
  Value log_prob = log_probability(c, output, axis);
  return -sum(one_hot(target, output.extent(axis), output.dtype(), axis) * log_prob, {axis});
}

Value in_range_of_half(Value x, DType dtype) { return convert(dtype == x.dtype() ? x : clamp(x, -65504, 65504), dtype); }

Outputs moments(Call& c) {
  if (c.config.flag("synchronized", false)) c.config.unsupported("synchronized moments are not done");
  Value x = in_float(c);
  Ints axes = reduction_axes(c.config, x.rank(), "axes");
  bool keepdims = c.config.flag("keepdims", false);
  Value precise = byte_size(x.dtype()) == 2 ? convert(x, DType::f32) : x;
  return std::vector<Signal>{{in_range_of_half(mean(precise, axes, keepdims), x.dtype()), {}},
                             {in_range_of_half(variance(precise, axes, keepdims), x.dtype()), {}}};
}

Outputs batch_norm(Call& c) {
  std::vector<Operand> given{operand(c, 0, "x"), operand(c, 1, "mean"), operand(c, 2, "variance")};
  auto offset = find_operand(c, 3, "offset"), scale = find_operand(c, 4, "scale");
  if (offset) given.push_back(*offset);
  if (scale) given.push_back(*scale);
  DType dtype = result_type(given);
  Value x = given[0].as(dtype);
  int64_t axis = wrapped_axis(c.config, c.config.integer("axis"), x.rank());
  auto along = [&](const Operand& o) {
    Ints extents(static_cast<size_t>(x.rank()), 1);
    extents[static_cast<size_t>(axis)] = x.extent(axis);
    return reshape(o.as(dtype), extents);
  };
  Value inverse = rsqrt(along(given[2]) + c.config.number("epsilon", 1e-3));
  if (scale) inverse = inverse * along(*scale);
  Value shift = -along(given[1]) * inverse;
  if (offset) shift = shift + along(*offset);
  return x * inverse + shift;
}

struct Normalized {
  Value x;  // in at least 32 bits
  DType dtype;
  Ints axes;
  double epsilon;
};
Normalized normalized(Call& c) {
  Value x = array(c);
  DType dtype = x.dtype();
  if (x.rank() == 0) x = reshape(x, {1});
  x = convert(x, result_type({dtype, DType::f32}));
  Ints axes = c.config.json().is_object() && c.config.json().has("axis") ? reduction_axes(c.config, x.rank()) : Ints{x.rank() - 1};
  std::sort(axes.begin(), axes.end());
  return {x, dtype, axes, c.config.number("epsilon", epsilon)};
}

// A scale or shift of the normalized axes, shaped to broadcast; absent where it is not given.
Value parameter(Call& c, size_t position, std::string_view name, const Normalized& n) {
  auto given = find_operand(c, position, name);
  if (!given) return {};
  Value v = given->as(n.x.dtype());
  bool last_only = n.axes == Ints{n.x.rank() - 1};
  if (v.rank() == n.x.rank() || last_only) return v;
  Ints extents(static_cast<size_t>(n.x.rank()), 1);
  for (int64_t axis : n.axes) extents[static_cast<size_t>(axis)] = n.x.extent(axis);
  return reshape(v, extents);
}

Outputs layer_norm(Call& c) {
  Normalized n = normalized(c);
  Value gamma = parameter(c, 1, "gamma", n), beta = parameter(c, 2, "beta", n);
  Value inverse = rsqrt(variance(n.x, n.axes, true) + n.epsilon);
  if (c.config.flag("rms_scaling", false)) return convert(gamma ? n.x * inverse * gamma : n.x * inverse, n.dtype);
  if (gamma) inverse = inverse * gamma;
  Value shift = -mean(n.x, n.axes, true) * inverse;
  if (beta) shift = shift + beta;
  return convert(n.x * inverse + shift, n.dtype);
}

Outputs rms_norm(Call& c) {
  Normalized n = normalized(c);
  Value out = n.x * rsqrt(mean(square(n.x), n.axes, true) + n.epsilon);
  auto scale = find_operand(c, 1, "scale");
  return convert(scale ? out * scale->as(n.x.dtype()) : out, n.dtype);
}

Outputs normalize(Call& c) {
  Value x = array(c);
  if (!is_float(x.dtype())) c.config.invalid("takes floats; got {}", to_string(x.type()));
  if (x.rank() == 0) x = reshape(x, {1});
  Ints axes = c.config.json().is_object() && c.config.json().has("axis") ? reduction_axes(c.config, x.rank()) : Ints{x.rank() - 1};
  int64_t order = c.config.integer("order", 2);
  if (order < 1) c.config.invalid("'order' is at least 1; got {}", order);
  double least = c.config.number("epsilon", epsilon);
  if (order == 2) return x * minimum(rsqrt(sum(square(x), axes, true)), 1.0 / least);
  if (axes.size() != 1) c.config.unsupported("order {} along {} axes is not done", order, axes.size());
  auto p = static_cast<double>(order);
  return x / maximum(power(sum(power(abs(x), p), axes, true), 1 / p), least);
}

Outputs psnr(Call& c) {
  auto v = promoted({operand(c, 0, "x1"), operand(c, 1, "x2")});
  if (!(v[0].shape() == v[1].shape())) c.config.invalid("'x1' and 'x2' have one shape");
  Value error = convert(square(v[0] - v[1]), float_type(v[0].dtype()));
  double largest = c.config.number("max_val");
  if (!(largest > 0)) c.config.invalid("'max_val' is positive; got {}", largest);
  return 20 * std::log10(largest) - log(mean(error, all_axes(error))) * (10 / std::log(10.0));
}

// query: [batch, target, heads, depth]; key, value: [batch, source, groups, depth]; heads share the keys of their group.
Outputs dot_product_attention(Call& c) {
  std::vector<Operand> given{operand(c, 0, "query"), operand(c, 1, "key"), operand(c, 2, "value")};
  auto v = promoted(given);
  Value query = v[0], key = v[1], value = v[2];
  for (Value x : v)
    if (x.rank() != 4) c.config.invalid("takes tensors of four axes; got {}", to_string(x.type()));
  DType dtype = query.dtype(), precise = result_type({dtype, DType::f32});
  int64_t heads = query.extent(2), groups = key.extent(2);
  if (groups < 1 || heads % groups != 0) c.config.invalid("{} heads cannot share {} keys", heads, groups);
  if (c.config.flag("flash_attention", false)) c.config.unsupported("flash_attention=True demands an accelerator; hint: leave it out");
  key = repeat(key, heads / groups, 2);
  value = repeat(value, heads / groups, 2);
  auto scale = find_operand(c, 5, "scale");
  // [batch, heads, target, source]
  Value scores = dot_general(convert(query, precise), convert(key, precise), {{0, 2}, {0, 2}, {3}, {3}});
  scores = scores * (scale ? scale->as(precise) : scalar(c.graph, precise, 1 / std::sqrt(static_cast<double>(query.extent(3)))));
  if (auto bias = find_operand(c, 3, "bias")) scores = scores + convert(bias->as(dtype), precise);
  Value allowed;
  if (auto mask = find_operand(c, 4, "mask")) allowed = mask->as(DType::boolean);
  if (c.config.flag("is_causal", false)) {
    Type plane{DType::i32, {query.extent(1), key.extent(1)}};
    Value causal = compare(iota(c.graph, plane, 1), iota(c.graph, plane, 0), Direction::LE);
    allowed = allowed ? logical_and(allowed, causal) : causal;
  }
  double lowest = -0.7 * (precise == DType::f64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max());
  if (allowed) scores = select(allowed, scores, scalar(c.graph, precise, lowest));
  Value shares = convert(softmax(scores, {3}), dtype);
  Value out = dot_general(shares, value, {{0, 1}, {0, 2}, {3}, {1}});  // [batch, heads, target, depth]
  return transpose(out, {0, 2, 1, 3});
}

}  // namespace

Rows nn_operations() {
  static const LayerRow rows[] = {
      operation("BatchNorm", batch_norm, "axis epsilon"),
      operation("BinaryCrossentropy", binary_crossentropy, "from_logits"),
      operation("CategoricalCrossentropy", categorical_crossentropy, "from_logits axis"),
      operation(
          "Celu", [](Call& c) { return with<celu>(c, "alpha", 1); }, "alpha"),
      operation("DotProductAttention", dot_product_attention, "is_causal flash_attention attn_logits_soft_cap",
                "attn_logits_soft_cap has no effect, as in Keras outside of TPUs; flash_attention=True is refused"),
      operation(
          "Elu", [](Call& c) { return with<elu>(c, "alpha", 1); }, "alpha"),
      operation(
          "Gelu", [](Call& c) -> Outputs { return gelu(in_float(c), c.config.flag("approximate", true)); }, "approximate"),
      operation("Glu", along_axis<glu>, "axis"),
      operation(
          "HardShrink", [](Call& c) { return with<hard_shrink>(c, "threshold", 0.5); }, "threshold"),
      operation("HardSigmoid", on_float<hard_sigmoid>),
      operation("HardSilu", on_float<hard_silu>),
      operation("HardTanh", on_float<hard_tanh>),
      operation("LayerNorm", layer_norm, "axis epsilon rms_scaling"),
      operation(
          "LeakyRelu", [](Call& c) { return with<leaky_relu>(c, "negative_slope", 0.2); }, "negative_slope"),
      operation("LogSigmoid", on_float<log_sigmoid>),
      operation("LogSoftmax", log_softmax_, "axis"),
      operation("Mish", on_float<mish>),
      operation("Moments", moments, "axes keepdims synchronized", "synchronized=True is refused"),
      operation("MultiHot", multi_hot, "num_classes num_tokens axis sparse", "sparse=True is refused"),
      operation("Normalize", normalize, "axis order epsilon"),
      operation("OneHot", one_hot_, "num_classes axis sparse", "sparse=True is refused"),
      operation("PSNR", psnr, "max_val"),
      operation("RMSNorm", rms_norm, "axis epsilon"),
      operation("ReLU", relu_, "negative_slope max_value threshold"),
      operation("Relu", on_any<plain_relu>),
      operation("Relu6", on_any<plain_relu6>),
      operation("Selu", on_float<selu>),
      operation("Sigmoid", on_float<logistic>),
      operation("Silu", on_float<silu>),
      operation(
          "SoftShrink", [](Call& c) { return with<soft_shrink>(c, "threshold", 0.5); }, "threshold"),
      operation("Softmax", softmax_, "axis"),
      operation("Softplus", on_float<softplus>),
      operation("Softsign", on_float<softsign>),
      operation("SparseCategoricalCrossentropy", sparse_categorical_crossentropy, "from_logits axis"),
      operation("SparsePlus", on_float<sparse_plus>),
      operation("SparseSigmoid", on_float<sparse_sigmoid>),
      operation("Sparsemax", along_axis<sparsemax>, "axis"),
      operation(
          "Squareplus", [](Call& c) { return with<squareplus>(c, "b", 4); }, "b"),
      operation("TanhShrink", on_float<tanh_shrink>),
      operation(
          "Threshold",
          [](Call& c) -> Outputs { return threshold(in_float(c), c.config.number("threshold"), c.config.number("default_value")); },
          "threshold default_value"),
  };
  return rows;
}

}  // namespace tutti::keras
