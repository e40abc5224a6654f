#include "tutti/keras/activations.h"

#include <cmath>
#include <numbers>

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"
#include "tutti/keras/lower.h"

namespace tutti::keras {

namespace {

Value number(Value like, double value) { return scalar(like.graph(), like.dtype(), value); }

// A tie of minimum belongs to its second operand (graph/gradient.h): here to x, as in softplus, so that slopes at 0 are Keras's.
Value below_zero(Value x) { return minimum(number(x, 0), x); }
// And as in TensorFlow's clip_by_value.
Value at_most(Value x, double high) { return minimum(number(x, high), x); }

}  // namespace

Value relu(Value x) { return maximum(x, 0.0); }

Value relu(Value x, double negative_slope, std::optional<double> max_value, double threshold) {
  if (negative_slope != 0 && !is_float(x.dtype())) x = convert(x, DType::f32);
  if (negative_slope != 0 && !max_value && threshold == 0) return leaky_relu(x, negative_slope);
  Value negative;
  if (negative_slope != 0) negative = relu(threshold != 0 ? threshold - x : -x);
  Value y = threshold != 0 ? keras::threshold(x, threshold, 0) : relu(x);
  if (max_value) y = *max_value == 6 && threshold == 0 ? relu6(x) : at_most(y, *max_value);
  return negative_slope != 0 ? y - negative * negative_slope : y;
}

Value leaky_relu(Value x, double negative_slope) {
  if (!is_float(x.dtype())) x = convert(x, DType::f32);
  return select(compare(x, 0, Direction::GE), x, x * negative_slope);
}
Value relu6(Value x) { return clamp(x, 0, 6); }

Value elu(Value x, double alpha) { return select(compare(x, 0, Direction::GT), x, exponential_minus_one(below_zero(x)) * alpha); }

Value selu(Value x) {
  constexpr double alpha = 1.6732632423543772848170429916717, scale = 1.0507009873554804934193349852946;
  return elu(x, alpha) * scale;
}

Value celu(Value x, double alpha) { return maximum(x, 0.0) + exponential_minus_one(below_zero(x) / alpha) * alpha; }

Value gelu(Value x, bool approximate) {
  if (!approximate) return x * 0.5 * (erf(x * (1 / std::numbers::sqrt2)) + 1);
  Value inner = (x + x * x * x * 0.044715) * std::sqrt(2 / std::numbers::pi);
  return x * ((tanh(inner) + 1) * 0.5);
}

Value glu(Value x, int64_t axis) {
  axis = wrap_axis(axis, x.rank());
  int64_t half = x.extent(axis) / 2;
  if (half * 2 != x.extent(axis)) fail<InvalidArgument>("keras", "glu halves axis {} of {}", axis, to_string(x.shape()));
  return slice_axis(x, axis, 0, half) * logistic(slice_axis(x, axis, half, 2 * half));
}

Value silu(Value x) { return x * logistic(x); }
Value hard_silu(Value x) { return x * hard_sigmoid(x); }
Value hard_sigmoid(Value x) { return relu6(x + 3) / 6; }
Value hard_sigmoid_keras2(Value x) { return clamp(x * 0.2 + 0.5, 0, 1); }
Value hard_tanh(Value x) { return at_most(maximum(number(x, -1), x), 1); }
Value hard_shrink(Value x, double limit) { return select(compare(abs(x), limit, Direction::GT), x, number(x, 0)); }

Value soft_shrink(Value x, double limit) {
  Value low = select(compare(x, -limit, Direction::LT), x + limit, number(x, 0));
  return select(compare(x, limit, Direction::GT), x - limit, low);
}

Value tanh_shrink(Value x) { return x - tanh(x); }
Value softplus(Value x) { return maximum(x, 0.0) + log_plus_one(exponential(minimum(-x, x))); }
Value softsign(Value x) { return x / (abs(x) + 1); }
Value log_sigmoid(Value x) { return -softplus(-x); }
Value squareplus(Value x, double b) { return (x + sqrt(x * x + b)) / 2; }

Value sparse_plus(Value x) {
  Value middle = square(x + 1) / 4;
  return select(compare(x, -1, Direction::LE), number(x, 0), select(compare(x, 1, Direction::GE), x, middle));
}

Value sparse_sigmoid(Value x) { return clamp(x + 1, 0, 2) * 0.5; }

Value sparsemax(Value x, int64_t axis) {
  axis = wrap_axis(axis, x.rank());
  Value sorted = sort({x}, axis, true)[0];
  Value running = cumulative(sorted, "add", axis);
  Value rank = iota(x.graph(), x.type(), axis) + 1;
  Value support = compare(sorted - (running - 1) / rank, 0, Direction::GT);
  Value size = sum(convert(support, x.dtype()), {axis}, true);
  // Keras sums the running sums of the whole support, not the last one alone.
  Value tau = (sum(select(support, running, number(x, 0)), {axis}, true) - 1) / size;
  return maximum(x - tau, 0.0);
}

Value mish(Value x) { return x * tanh(softplus(x)); }
Value threshold(Value x, double limit, double otherwise) { return select(compare(x, limit, Direction::GT), x, number(x, otherwise)); }

namespace {

struct Activation {
  std::string_view name;
  Value (*function)(Value);
};

// Those of keras.activations whose arguments all have defaults, and names that older files use.
const Activation activations[] = {
    {"linear", [](Value x) { return x; }},
    {"relu", [](Value x) { return relu(x); }},
    {"leaky_relu", [](Value x) { return leaky_relu(x); }},
    {"relu6", relu6},
    {"softmax", [](Value x) { return softmax(x, {-1}); }},
    {"log_softmax", [](Value x) { return log_softmax(x, {-1}); }},
    {"celu", [](Value x) { return celu(x); }},
    {"elu", [](Value x) { return elu(x); }},
    {"selu", selu},
    {"softplus", softplus},
    {"softsign", softsign},
    {"soft_sign", softsign},
    {"squareplus", [](Value x) { return squareplus(x); }},
    {"soft_shrink", [](Value x) { return soft_shrink(x); }},
    {"sparse_plus", sparse_plus},
    {"silu", silu},
    {"swish", silu},
    {"gelu", [](Value x) { return gelu(x); }},
    {"glu", [](Value x) { return glu(x); }},
    {"tanh", [](Value x) { return tanh(x); }},
    {"tanh_shrink", tanh_shrink},
    {"sigmoid", [](Value x) { return logistic(x); }},
    {"sparse_sigmoid", sparse_sigmoid},
    {"exponential", [](Value x) { return exponential(x); }},
    {"hard_sigmoid", hard_sigmoid},
    {"hard_silu", hard_silu},
    {"hard_swish", hard_silu},
    {"hard_tanh", hard_tanh},
    {"hard_shrink", [](Value x) { return hard_shrink(x); }},
    {"mish", mish},
    {"log_sigmoid", log_sigmoid},
    {"sparsemax", [](Value x) { return sparsemax(x); }},
};

Value activate_by_name(Call& c, const std::string& name, Value x) {
  if (name == "hard_sigmoid" && c.lowering.keras_major < 3) return hard_sigmoid_keras2(x);
  std::vector<std::string> known;
  for (const auto& activation : activations) {
    if (activation.name == name) return activation.function(x);
    known.emplace_back(activation.name);
  }
  c.config.unsupported("activation '{}' is not one of Keras's own{}; hint: code is not in the file, use a function of keras.activations",
                       name, did_you_mean(name, known));
}

const std::string& text_of(const Json& object, std::string_view key) {
  static const std::string empty;
  const Json* found = object.find(key);
  return found != nullptr && found->is_string() ? found->as_string() : empty;
}

}  // namespace

Value activate(Call& c, const Json& activation, Value x, const std::string& key) {
  if (activation.is_null()) return x;
  if (activation.is_string()) return activate_by_name(c, activation.as_string(), x);
  if (!activation.is_object()) c.config.invalid("'{}' is a name, a function or a layer; got {}", key, escape(activation.dump(), 60));
  const std::string& kind = text_of(activation, "class_name");
  const Json* config = activation.find("config");
  if (kind == "function" && config != nullptr && config->is_string()) return activate_by_name(c, config->as_string(), x);
  // A lambda is {"class_name": "__lambda__", ...} or, inside Dense, its bare {"value": [bytecode, ...]}.
  if (kind == "__lambda__" || kind == "function" || kind.empty())
    c.config.unsupported("'{}' is a function whose code is not read from files; hint: use a function of keras.activations", key);
  return c.child(key, activation, {{x, {}}}).signals.at(0).value;
}

}  // namespace tutti::keras
