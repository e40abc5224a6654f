#include "tutti/keras/fit/losses.h"

#include <cmath>
#include <limits>

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"
#include "tutti/keras/activations.h"
#include "tutti/keras/lower.h"

namespace tutti::keras {

namespace {

constexpr double loss_epsilon = 1e-7;  // keras.config.epsilon()

// What a loss function sees: t and p in f32.
struct Pair {
  Value t, p;
  const Config& config;
  Value& mask;
  const Fit* part;

  void require_same_shape() const {
    if (!(t.shape() == p.shape()))
      fail<InvalidArgument>("fit", "{}: targets are {}, predictions {}; they have one shape", config.where(), to_string(t.shape()),
                            to_string(p.shape()));
  }
  void require_like_shape() const {
    if (!broadcast_alike(t.shape(), p.shape())) require_same_shape();
  }
  int64_t axis() const {
    const int64_t axis = wrap_axis(config.integer("axis", -1), p.rank());
    if (axis == 0 && p.rank() > 1) require_whole_batch();
    return axis;
  }
  void require_whole_batch() const {
    if (part != nullptr && (part->replicas > 1 || part->accumulates))
      fail<Unsupported>("fit", "{} compares samples of a batch with each other, so no batch is divided; hint: --devices 1", config.where());
  }
  // The sum over axes that may hold the samples of the batch.
  Value total(Value x, const Ints& axes) const {
    const Value own = sum(x, axes);
    return part != nullptr && includes(axes, 0) ? part->over_parts(own, config.where()) : own;
  }
};

Value scalar_like(Value like, double value) { return scalar(like.graph(), like.dtype(), value); }
Value over_last(Value x) { return mean(x, {-1}); }
Value bounded(Value x) { return clamp(x, loss_epsilon, 1 - loss_epsilon); }

template <class F>
Value regression(Pair& i, F error) {
  return over_last(error(i.t, i.p));
}

Value mean_squared_error(Pair& i) {
  return regression(i, [](Value t, Value p) { return square(t - p); });
}

Value mean_absolute_error(Pair& i) {
  return regression(i, [](Value t, Value p) { return abs(t - p); });
}

Value mean_absolute_percentage_error(Pair& i) {
  return regression(i, [](Value t, Value p) { return abs((t - p) / maximum(abs(t), loss_epsilon)); }) * 100;
}

Value mean_squared_logarithmic_error(Pair& i) {
  const auto logarithm = [](Value x) { return log(maximum(x, loss_epsilon) + 1); };
  return regression(i, [&](Value t, Value p) { return square(logarithm(p) - logarithm(t)); });
}

Value normalized_along(Value x, int64_t axis) { return x * rsqrt(maximum(sum(square(x), {axis}, true), loss_epsilon * loss_epsilon)); }

Value cosine_similarity(Pair& i) {
  const int64_t axis = i.axis();
  return -sum(normalized_along(i.t, axis) * normalized_along(i.p, axis), {axis});
}

Value huber(Pair& i) {
  const double delta = i.config.number("delta", 1);
  return regression(i, [&](Value t, Value p) {
    const Value size = abs(p - t);
    return select(compare(size, delta, Direction::LE), square(p - t) * 0.5, size * delta - 0.5 * delta * delta);
  });
}

Value log_cosh(Pair& i) {
  return regression(i, [](Value t, Value p) {
    const Value x = p - t;
    return x + softplus(x * -2) - std::log(2.0);
  });
}

Value kl_divergence(Pair& i) {
  const Value t = clamp(i.t, loss_epsilon, 1), p = clamp(i.p, loss_epsilon, 1);
  return sum(t * log(t / p), {-1});
}

Value poisson(Pair& i) { return over_last(i.p - i.t * log(i.p + loss_epsilon)); }

// Labels of 0 and 1 become -1 and 1 if there are no others.
Value hinge_labels(const Pair& i) {
  const Value t = i.t, others = logical_not(logical_or(compare(t, 0, Direction::EQ), compare(t, 1, Direction::EQ)));
  const Value binary = compare(i.total(convert(others, DType::f32), all_axes(t)), 0, Direction::EQ);
  return select(broadcast_in_dim(binary, t.shape(), {}), t * 2 - 1, t);
}

Value hinge_margin(Pair& i) { return maximum(1 - hinge_labels(i) * i.p, 0.0); }
Value hinge(Pair& i) { return over_last(hinge_margin(i)); }
Value squared_hinge(Pair& i) { return over_last(square(hinge_margin(i))); }

Value categorical_hinge(Pair& i) {
  const Value positive = sum(i.t * i.p, {-1}), negative = reduce_max((1 - i.t) * i.p, {-1});
  return maximum(negative - positive + 1, 0.0);
}

Value smoothed(const Pair& i, double otherwise) {
  const double smoothing = i.config.number("label_smoothing", 0);
  return smoothing == 0 ? i.t : i.t * (1 - smoothing) + smoothing * otherwise;
}

// Whether the values are a softmax along the axis.
bool is_softmax(Value p, int64_t axis) {
  const Graph& graph = p.graph();
  const Node& quotient = graph.maker(p.id());
  if (quotient.op != Op::divide || graph.maker(quotient.operands[0]).op != Op::exponential) return false;
  const Node* total = &graph.maker(quotient.operands[1]);
  while (total->op == Op::broadcast_in_dim || total->op == Op::reshape) total = &graph.maker(total->operands[0]);
  return total->op == Op::reduce && total->attributes.text("kind") == "add" && total->operands[0] == quotient.operands[0] &&
         total->attributes.ints("dimensions") == Ints{axis};
}

// Shares of their sum, as Keras makes them; a softmax has the sum 1, and so have its gradients.
Value as_shares(Value p, int64_t axis) { return is_softmax(p, axis) ? p : p / sum(p, {axis}, true); }

Value logarithms(const Pair& i, Value p) {
  const int64_t axis = i.axis();
  return i.config.flag("from_logits", false) ? log_softmax(p, {axis}) : log(bounded(as_shares(p, axis)));
}

Value categorical_crossentropy(Pair& i) {
  i.require_same_shape();
  const Value t = smoothed(i, 1.0 / static_cast<double>(i.t.extent(-1)));
  return -sum(t * logarithms(i, i.p), {i.axis()});
}

// `alpha`: one number, or one for each place of the last axis.
Value class_balance(const Pair& i) {
  if (!i.config.has("alpha") || !i.config.get("alpha").is_list()) return scalar_like(i.p, i.config.number("alpha", 0.25));
  const std::vector<double> numbers = i.config.numbers("alpha");
  if (std::ssize(numbers) != i.p.extent(-1))
    fail<InvalidArgument>("fit", "{}: alpha is a number, or one for each of {} classes; got {}", i.config.where(), i.p.extent(-1),
                          numbers.size());
  return broadcast_to(constant(i.p.graph(), {std::ssize(numbers)}, std::vector<float>(numbers.begin(), numbers.end())), i.p.shape());
}

Value categorical_focal_crossentropy(Pair& i) {
  i.require_same_shape();
  const int64_t axis = i.axis();
  const Value t = smoothed(i, 1.0 / static_cast<double>(i.t.extent(-1)));
  const Value given = i.config.flag("from_logits", false) ? softmax(i.p, {axis}) : i.p;
  const Value p = bounded(as_shares(given, axis));
  return sum(power(1 - p, i.config.number("gamma", 2)) * class_balance(i) * (-t * log(p)), {axis});
}

Value sparse_categorical_crossentropy(Pair& i) {
  const int64_t axis = i.axis();
  Value t = i.t, p = i.p;
  if (t.rank() == p.rank() && t.extent(axis) == 1) t = squeeze(t, {axis});
  if (t.rank() == p.rank() && t.extent(-1) == 1) t = squeeze(t, {-1});
  Ints expected = p.shape().extents();
  expected.erase(expected.begin() + axis);
  if (!(t.shape() == Shape(expected)))
    fail<InvalidArgument>("fit", "{}: targets are {}, predictions {}; targets have no axis of classes", i.config.where(),
                          to_string(t.shape()), to_string(p.shape()));
  Value valid;
  if (i.config.has("ignore_class")) {
    valid = compare(t, i.config.number("ignore_class"), Direction::NE);
    t = select(valid, t, scalar_like(t, 0));
    p = select(broadcast_to(expand_dims(valid, {axis}), p.shape()), p, scalar_like(p, 0));
  }
  // NumPy's conversion of labels: towards zero.
  const Value classes = one_hot(convert(t, DType::i32), p.extent(axis), p.dtype(), axis);
  Value out = -sum(classes * logarithms(i, p), {axis});
  if (valid) {
    out = select(valid, out, scalar_like(out, 0));
    i.mask = valid;
  }
  return out;
}

Value binary_terms(const Pair& i, Value t, Value p, bool logits) {
  i.require_same_shape();
  if (logits) return -t * log_sigmoid(p) - (1 - t) * log_sigmoid(-p);
  const Value inside = bounded(p);
  return -(t * log(inside) + (1 - t) * log(1 - inside));
}

Value binary_crossentropy(Pair& i) { return mean(binary_terms(i, smoothed(i, 0.5), i.p, i.config.flag("from_logits", false)), {i.axis()}); }

Value binary_focal_crossentropy(Pair& i) {
  const Value t = smoothed(i, 0.5), p = i.config.flag("from_logits", false) ? logistic(i.p) : i.p;
  const Value likely = t * p + (1 - t) * (1 - p);
  Value terms = power(1 - likely, i.config.number("gamma", 2)) * binary_terms(i, t, p, false);
  const double alpha = i.config.number("alpha", 0.25);
  if (i.config.flag("apply_class_balancing", false)) terms = (t * alpha + (1 - t) * (1 - alpha)) * terms;
  return mean(terms, {i.axis()});
}

Ints summed_axes(const Pair& i) { return i.config.has("axis") ? wrap_axes(i.config.ints("axis"), i.p.rank()) : all_axes(i.p); }

Value dice(Pair& i) {
  const Ints axes = summed_axes(i);
  return 1 - i.total(i.t * i.p, axes) * 2 / (i.total(i.t, axes) + i.total(i.p, axes) + loss_epsilon);
}

Value tversky(Pair& i) {
  const Ints axes = summed_axes(i);
  const Value both = i.total(i.t * i.p, axes), missed = i.total((1 - i.p) * i.t, axes), wrong = i.total(i.p * (1 - i.t), axes);
  return 1 - both / (both + missed * i.config.number("alpha", 0.5) + wrong * i.config.number("beta", 0.5) + loss_epsilon);
}

Value circle(Pair& i) {
  i.require_whole_batch();
  const double gamma = i.config.number("gamma", 80), margin = i.config.number("margin", 0.4);
  const int64_t samples = i.p.extent(0);
  Value labels = convert(i.t, DType::i32);
  if (labels.rank() == 2 && labels.extent(1) == 1) labels = squeeze(labels, {1});
  if (labels.rank() != 1 || i.p.rank() != 2)
    fail<InvalidArgument>("fit", "{}: takes labels [batch] and embeddings [batch, size]; got {} and {}", i.config.where(),
                          to_string(i.t.shape()), to_string(i.p.shape()));
  const Shape square_shape{samples, samples};
  const Value equal =
      compare(broadcast_to(expand_dims(labels, {1}), square_shape), broadcast_to(expand_dims(labels, {0}), square_shape), Direction::EQ);
  Value positive = equal;
  if (i.config.flag("remove_diagonal", true)) {
    const Type type{DType::i32, square_shape};
    positive = logical_and(equal, compare(iota(i.p.graph(), type, 0), iota(i.p.graph(), type, 1), Direction::NE));
  }
  const Value negative = logical_not(equal);
  const Value distance = maximum(1 - matmul(i.p, transpose(i.p, {1, 0})), 0.0);
  const auto weighed = [&](Value mask, Value weights) { return maximum(weights * convert(mask, DType::f32), 0.0); };
  const Value pulls = weighed(positive, distance + margin) * (margin - distance) * -gamma;
  const Value pushes = weighed(negative, 1 + margin - distance) * ((1 - margin) - distance) * gamma;
  const auto joined = [&](Value mask, Value values) {
    return logsumexp(select(mask, values, scalar_like(values, -std::numeric_limits<double>::infinity())), {1});
  };
  const Value out = softplus(joined(positive, pulls) + joined(negative, pushes));
  i.mask = compare(out, 0, Direction::GT);
  return out;
}

Value categorical_generalized_cross_entropy(Pair& i) {
  const double q = i.config.number("q", 0.5);
  Value labels = convert(i.t, DType::i32);
  if (labels.rank() == i.p.rank() && labels.extent(-1) == 1) labels = squeeze(labels, {-1});
  const Value likely = sum(i.p * one_hot(labels, i.p.extent(-1), i.p.dtype()), {-1});
  return (1 - power(likely, q)) / q;
}

// How likely it is that frames say a sequence, their repetitions and blanks (class 0) left out: a walk over the frames with, for each place
// in the sequence, the logarithm of having come so far with a blank last, and with its label last. As Keras on JAX computes it, with -1e5
// for what cannot be. Targets end where zeros begin. t: [batch, labels], p: [batch, frames, classes]
Value ctc(Pair& i) {
  if (i.t.rank() != 2 || i.p.rank() != 3)
    fail<InvalidArgument>("fit", "{}: takes labels [batch, length] and logits [batch, frames, classes]; got {} and {}", i.config.where(),
                          to_string(i.t.shape()), to_string(i.p.shape()));
  constexpr double never = -1e5;
  Graph& graph = i.p.graph();
  const int64_t batch = i.p.extent(0), frames = i.p.extent(1), classes = i.p.extent(2), length = i.t.extent(1);
  const Value labels = convert(i.t, DType::i32);
  const Value logs = log_softmax(i.p, {-1});
  const Value blanks = transpose(slice_axis(logs, 2, 0, 1), {1, 0, 2});  // [frames, batch, 1]
  const Value said =
      transpose(dot_general(logs, one_hot(labels, classes, DType::f32), {{0}, {0}, {2}, {2}}), {1, 0, 2});  // [frames, batch, length]
  // 1 where the next label is the same: then a blank has to stand between them.
  Value repeats = full(graph, {DType::f32, {batch, 1}}, 0);
  if (length > 1)
    repeats = concatenate(
        {convert(compare(slice_axis(labels, 1, 0, length - 1), slice_axis(labels, 1, 1, length), Direction::EQ), DType::f32), repeats}, 1);
  const auto joined = [](Value a, Value b) { return logsumexp(stack({a, b}, 2), {2}); };
  const auto after = [&](Value blank, Value added) {
    return concatenate({slice_axis(blank, 1, 0, 1), joined(slice_axis(blank, 1, 1, length + 1), added)}, 1);
  };
  const Value begin = concatenate({full(graph, {DType::f32, {batch, 1}}, 0), full(graph, {DType::f32, {batch, length}}, never)}, 1);
  const std::vector<Value> first{begin, full(graph, {DType::f32, {batch, length}}, never)}, by_frame{said, blanks}, always{repeats};
  const auto walk = scan(first, by_frame, always, frames, false,
                         [&](Graph&, const std::vector<Value>& so_far, const std::vector<Value>& frame, const std::vector<Value>& whole) {
                           const Value repeat = whole[0], label = so_far[1];
                           const Value blank = after(so_far[0], label + repeat * never);
                           const Value next_label = joined(slice_axis(blank, 1, 0, length) + frame[0], label + frame[0]);
                           const Value next_blank = after(blank + frame[1], label + frame[1] + (1.0 - repeat) * never);
                           return ScanStep{{next_blank, next_label}, {}};
                         });
  const Value last = after(walk.carries[0], walk.carries[1]);  // [batch, length + 1]
  const Value lengths = convert(sum(convert(compare(labels, 0, Direction::NE), DType::f32), {1}), DType::i32);
  return -sum(last * one_hot(lengths, length + 1, DType::f32), {1});
}

struct LossRow {
  std::string_view names;  // the first is the snake_case of Keras's class
  Value (*function)(Pair&);
  std::string_view options;
  bool elementwise = false;  // targets with predictions
};

const LossRow loss_rows[] = {
    {"mean_squared_error mse", mean_squared_error, "", true},
    {"mean_absolute_error mae", mean_absolute_error, "", true},
    {"mean_absolute_percentage_error mape", mean_absolute_percentage_error, "", true},
    {"mean_squared_logarithmic_error msle", mean_squared_logarithmic_error, "", true},
    {"cosine_similarity", cosine_similarity, "axis", true},
    {"huber", huber, "delta(,)", true},
    {"log_cosh logcosh", log_cosh, "", true},
    {"kl_divergence kld kullback_leibler_divergence", kl_divergence, "", true},
    {"poisson", poisson, "", true},
    {"hinge", hinge, "", true},
    {"squared_hinge", squared_hinge, "", true},
    {"categorical_hinge", categorical_hinge, "", true},
    {"categorical_crossentropy", categorical_crossentropy, "from_logits label_smoothing(,) axis"},
    {"categorical_focal_crossentropy", categorical_focal_crossentropy, "alpha(,) gamma(,) from_logits label_smoothing(,) axis"},
    {"sparse_categorical_crossentropy", sparse_categorical_crossentropy, "from_logits ignore_class{,} axis"},
    {"binary_crossentropy bce", binary_crossentropy, "from_logits label_smoothing(,) axis"},
    {"binary_focal_crossentropy", binary_focal_crossentropy, "apply_class_balancing alpha(,) gamma(,) from_logits label_smoothing(,) axis"},
    {"dice", dice, "axis", true},
    {"tversky", tversky, "alpha(,) beta(,) axis", true},
    {"circle", circle, "gamma(,) margin(,) remove_diagonal"},
    {"categorical_generalized_cross_entropy", categorical_generalized_cross_entropy, "q(0,1)"},
    {"ctc", ctc, ""},
};

std::string reduction_of(const Config& config) {
  std::string reduction = config.text("reduction", "sum_over_batch_size");
  for (const char* known : {"sum_over_batch_size", "sum", "mean", "mean_with_sample_weight"})
    if (reduction == known) return reduction;
  fail<Unsupported>("fit", "{}: reduction '{}' gives no single number to train by; hint: sum_over_batch_size, sum, mean", config.where(),
                    escape(reduction));
}

Value divided(Value a, Value b) {  // 0 where b is 0
  const Value zero = compare(b, 0, Direction::EQ);
  return select(zero, scalar_like(a, 0), a / select(zero, scalar_like(b, 1), b));
}

double elements(Value x) { return static_cast<double>(x.shape().elements()); }

// The whole batch, of which only a part may be here.
struct Whole {
  const Fit* part;
  const Config& config;
  Value counted(Value total) const { return part == nullptr ? total : part->counted(total); }
  Value over_all(Value total) const { return part == nullptr ? total : part->over_parts(total, config.where()); }
  Value share_of(Value mean) const { return part == nullptr ? mean : mean * part->share; }
};

void require_weights(const Config& config, const Shape& weight, const Shape& losses) {
  if (!broadcast_alike(losses, weight))
    fail<InvalidArgument>("fit", "{}: sample weights are {}, losses {}; a sample has one weight, or one for each of its losses",
                          config.where(), to_string(weight), to_string(losses));
}

// The weights of values: those of samples, and of the mask, scaled so that a mean over all is one over the kept.
Value joined_weight(Value weight, Value mask, const std::string& reduction, const Whole& whole) {
  if (!mask) return weight;
  Value kept = convert(mask, DType::f32);
  if (reduction == "mean" || reduction == "sum_over_batch_size") {
    // Of the whole batch: its elements are those here over the share.
    Value count = scalar_like(kept, elements(kept));
    if (whole.part != nullptr) count = divided(count, whole.part->share);
    const Value scale = divided(count, whole.over_all(sum(kept, all_axes(kept))));
    kept = kept * broadcast_in_dim(scale, kept.shape(), {});
  }
  if (!weight) return kept;
  match_ranks(kept, weight);
  require_weights(whole.config, weight.shape(), kept.shape());
  return weight * kept;
}

}  // namespace

bool broadcast_alike(const Shape& a, const Shape& b) {
  for (int64_t k = 1; k <= std::min(a.rank(), b.rank()); ++k)
    if (const int64_t x = a[a.rank() - k], y = b[b.rank() - k]; x != y && x != 1 && y != 1) return false;
  return true;
}

void match_ranks(Value& a, Value& b) {
  if (a.rank() > b.rank()) return match_ranks(b, a);
  if (b.rank() != a.rank() + 1 || b.extent(-1) != 1) return;
  if (a.rank() == 1) {
    a = expand_dims(a, {-1});
  } else {
    b = squeeze(b, {-1});
  }
}

Json written_loss(const Named& named) { return written_arguments(named, find_row(loss_rows, named).options); }

std::string_view kind_of_classes(const Shape& target, const Shape& prediction) {
  const int64_t last = prediction.rank() > 0 ? prediction[prediction.rank() - 1] : 1;
  if (last == 1) return "binary";
  return target.rank() < prediction.rank() || target[target.rank() - 1] == 1 ? "sparse_categorical" : "categorical";
}

bool is_chosen_by_shapes(const Named& named) {
  const std::string name = plain_name(named.name);
  return name == "crossentropy" || name == "ce";
}

Named chosen_by_shapes(Named named, const Shape& target, const Shape& prediction) {
  if (is_chosen_by_shapes(named)) named.name = fmt::format("{}_crossentropy", kind_of_classes(target, prediction));
  return named;
}

Value loss_values(const Named& given, const LossInputs& inputs, Value& mask) {
  const Named named = chosen_by_shapes(given, inputs.target.shape(), inputs.prediction.shape());
  const LossRow& row = find_row(loss_rows, named);
  if (row.function == nullptr) fail<Unsupported>("fit", "{} '{}' is not done", named.what, named.name);
  check_arguments(named, std::string(row.options) + " reduction dtype");
  const Config config = named.config();
  if (config.has("dtype") && config.get("dtype").dump().find("float32") == std::string::npos)
    fail<Unsupported>("fit", "{}: is computed in float32", config.where());
  Pair pair{convert(inputs.target, DType::f32), convert(inputs.prediction, DType::f32), config, mask, inputs.part};
  match_ranks(pair.t, pair.p);
  if (row.elementwise) pair.require_like_shape();
  return row.function(pair);
}

Value loss(const Named& named, const LossInputs& inputs) {
  const Config config = named.config();
  const std::string reduction = reduction_of(config);
  Value own_mask, mask = inputs.mask;
  Value values = loss_values(named, inputs, own_mask);
  if (own_mask) mask = mask ? logical_and(mask, own_mask) : own_mask;
  Value weight = inputs.weight ? convert(inputs.weight, DType::f32) : Value();
  const Whole whole{inputs.part, config};
  weight = joined_weight(weight, mask, reduction, whole);
  if (weight) {
    match_ranks(values, weight);
    require_weights(config, weight.shape(), values.shape());
    values = values * weight;
  }
  if (values.rank() == 0) return whole.share_of(values);
  const Value total = sum(values, all_axes(values));
  if (reduction == "sum") return whole.counted(total);
  if (reduction == "mean_with_sample_weight" && weight) return divided(whole.counted(total), whole.over_all(sum(weight, all_axes(weight))));
  return whole.share_of(elements(values) == 0 ? total : total / elements(values));
}

}  // namespace tutti::keras
