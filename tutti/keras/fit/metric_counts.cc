// Metrics that count right and wrong guesses: by thresholds, by class.
#include <algorithm>
#include <cmath>

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"
#include "tutti/keras/activations.h"
#include "tutti/keras/fit/losses.h"
#include "tutti/keras/fit/metric_rows.h"

namespace tutti::keras {

namespace {

constexpr double metric_epsilon = 1e-7;  // keras.config.epsilon()

// Where guesses begin: ascending, as Keras keeps them.
struct Levels {
  std::vector<double> thresholds;
  bool even = false;  // i / (n - 1): Keras then sorts clipped predictions into buckets
  bool open = false;  // the first is below all predictions, the last above
  int64_t size() const { return static_cast<int64_t>(thresholds.size()); }
};

bool are_even(const std::vector<double>& thresholds) {
  if (thresholds.size() < 3) return false;
  for (size_t i = 0; i < thresholds.size(); ++i) {
    const double expected = static_cast<double>(i) / static_cast<double>(thresholds.size() - 1);
    if (std::fabs(thresholds[i] - expected) > metric_epsilon + 1e-5 * expected) return false;
  }
  return true;
}

Levels even_levels(int64_t count, bool open) {
  if (count == 1) return {{0.5}};
  Levels out{{}, true, open};
  for (int64_t i = 0; i < count; ++i) out.thresholds.push_back(static_cast<double>(i) / static_cast<double>(count - 1));
  return out;
}

// What is counted: the axes before the last are samples.
struct Guesses {
  Value t, p;
  Value weight;  // of their shape, or absent
};

Guesses read_guesses(const Named& named, const MetricInputs& i) {
  Guesses out{i.target, i.prediction, i.weight};
  const Config c = named.config();
  match_ranks(out.t, out.p);
  if (!(out.t.shape() == out.p.shape()))
    fail<InvalidArgument>("fit", "{}: targets are {}, predictions {}; they have one shape", c.where(), to_string(out.t.shape()),
                          to_string(out.p.shape()));
  if (c.has("top_k")) {  // all but the largest are never guessed
    const int64_t k = c.positive("top_k", out.p.extent(-1));
    const Value chosen = sum(one_hot(top_k(out.p, k).indices, out.p.extent(-1), DType::f32), {-2});
    out.p = out.p * chosen + (1 - chosen) * -1e10;
  }
  if (c.has("class_id")) {
    const int64_t id = c.integer("class_id");
    if (out.p.rank() < 2 || id < 0 || id >= out.p.extent(-1))
      fail<InvalidArgument>("fit", "{}: class_id {} is none of predictions {}", c.where(), id, to_string(out.p.shape()));
    out.t = slice_axis(out.t, -1, id, id + 1);
    out.p = slice_axis(out.p, -1, id, id + 1);
  }
  if (out.weight) {
    if (out.weight.rank() + 1 == out.p.rank()) out.weight = expand_dims(out.weight, {-1});
    out.weight = broadcast_to(out.weight, out.p.shape());
  }
  return out;
}

// True positives, false positives, true negatives, false negatives at each level: [4 * levels], or [4 * levels * labels] by label.
Value confusion(const Guesses& g, const Levels& levels, bool by_label) {
  const int64_t labels = by_label ? g.p.extent(-1) : 1, samples = g.p.shape().elements() / std::max<int64_t>(labels, 1);
  const Shape cube{levels.size(), samples, labels};
  const auto spread = [&](Value x) { return broadcast_in_dim(reshape(x, {samples, labels}), cube, {1, 2}); };
  Value guesses;
  if (levels.even) {
    Value bucket = unary(Op::ceil, clamp(g.p, 0, 1) * static_cast<double>(levels.size() - 1)) - 1;
    if (levels.open) bucket = maximum(bucket, 0.0);
    guesses = compare(spread(bucket), iota(g.p.graph(), {DType::f32, cube}, 0), Direction::GE);
  } else {
    const std::vector<float> limits(levels.thresholds.begin(), levels.thresholds.end());
    guesses = compare(spread(g.p), broadcast_in_dim(constant<float>(g.p.graph(), {levels.size()}, limits), cube, {0}), Direction::GT);
  }
  const Value truths = spread(compare(g.t, 0, Direction::NE)), weight = g.weight ? spread(g.weight) : Value();
  const auto counted = [&](Value truth, Value guess) {
    const Value both = convert(logical_and(truth, guess), DType::f32);
    return reshape(sum(weight ? both * weight : both, {1}), {levels.size() * labels});
  };
  const Value no = logical_not(guesses), wrong = logical_not(truths);
  return concatenate({counted(truths, guesses), counted(wrong, guesses), counted(wrong, no), counted(truths, no)}, 0);
}

Value at_threshold(const Named& named, const MetricInputs& i) {
  const Config c = named.config();
  const Json& given = c.get("thresholds");
  double threshold = c.has("top_k") ? -1e10 : 0.5;
  if (given.is_number()) {
    threshold = given.as_number();
  } else if (given.is_list() && given.size() == 1 && given[0].is_number()) {
    threshold = given[0].as_number();
  } else if (!given.is_null()) {
    fail<Unsupported>("fit", "{}: one threshold is done, as one number an epoch is kept; got {}", c.where(), escape(given.dump(), 60));
  }
  return confusion(read_guesses(named, i), {{threshold}}, false);
}

template <size_t which>
double count_of(const Config&, const std::vector<double>& sums) {
  return sums[which];
}
double precision(const Config&, const std::vector<double>& sums) { return ratio_or_zero(sums[0], sums[0] + sums[1]); }
double recall(const Config&, const std::vector<double>& sums) { return ratio_or_zero(sums[0], sums[0] + sums[3]); }

// Counts at one level of one label.
struct Counted {
  double tp, fp, tn, fn;
  double sensitivity() const { return ratio_or_zero(tp, tp + fn); }
  double specificity() const { return ratio_or_zero(tn, tn + fp); }
  double precision() const { return ratio_or_zero(tp, tp + fp); }
};

std::vector<Counted> counted_levels(const std::vector<double>& sums, size_t levels, size_t label = 0) {
  const size_t all = sums.size() / 4, labels = all / levels;
  std::vector<Counted> out;
  for (size_t i = 0; i < levels; ++i) {
    const size_t at = i * labels + label;
    out.push_back({sums[at], sums[all + at], sums[2 * all + at], sums[3 * all + at]});
  }
  return out;
}

int64_t levels_asked(const Config& c) { return c.positive("num_thresholds", 200, 100000); }

Value at_closed_levels(const Named& named, const MetricInputs& i) {
  return confusion(read_guesses(named, i), even_levels(levels_asked(named.config()), false), false);
}

// The largest `second` where `first` is at least what the argument asks for.
double best_under(const Config& c, const std::vector<double>& sums, const char* key, double (Counted::*first)() const,
                  double (Counted::*second)() const) {
  const double least = c.number(key);
  if (!(least >= 0 && least <= 1)) c.invalid("'{}' is between 0 and 1; got {}", key, least);
  double out = 0;
  for (const Counted& at : counted_levels(sums, sums.size() / 4))
    if (static_cast<float>((at.*first)()) >= static_cast<float>(least)) out = std::max(out, (at.*second)());
  return out;
}

double sensitivity_at_specificity(const Config& c, const std::vector<double>& sums) {
  return best_under(c, sums, "specificity", &Counted::specificity, &Counted::sensitivity);
}
double specificity_at_sensitivity(const Config& c, const std::vector<double>& sums) {
  return best_under(c, sums, "sensitivity", &Counted::sensitivity, &Counted::specificity);
}
double precision_at_recall(const Config& c, const std::vector<double>& sums) {
  return best_under(c, sums, "recall", &Counted::sensitivity, &Counted::precision);
}
double recall_at_precision(const Config& c, const std::vector<double>& sums) {
  return best_under(c, sums, "precision", &Counted::precision, &Counted::sensitivity);
}

Levels levels_of_area(const Config& c) {
  if (!c.has("thresholds")) {
    if (levels_asked(c) < 2) c.invalid("'num_thresholds' is more than 1");
    return even_levels(levels_asked(c), true);
  }
  std::vector<double> given = c.numbers("thresholds");
  if (given.size() > 100000) c.invalid("has {} thresholds; at most 100000 are read", given.size());
  std::sort(given.begin(), given.end());
  given.insert(given.begin(), 0);
  given.push_back(1);
  Levels out{given, are_even(given), true};
  out.thresholds.front() = -metric_epsilon;
  out.thresholds.back() = 1 + metric_epsilon;
  return out;
}

// Keras saves them as a tensor.
std::vector<double> label_weights(const Config& c) {
  const Json& given = c.get("label_weights");
  const Json* tensor = given.is_object() ? given.find("config") : nullptr;
  return tensor != nullptr && tensor->is_object() ? Config(*tensor, c.where()).numbers("value") : c.numbers("label_weights");
}

Value area_sums(const Named& named, const MetricInputs& i) {
  const Config c = named.config();
  Guesses g = read_guesses(named, i);
  if (c.flag("from_logits", false)) g.p = logistic(g.p);
  const bool by_label = c.flag("multi_label", false);
  if (by_label && g.p.rank() != 2)
    fail<InvalidArgument>("fit", "{}: multi_label takes predictions [batch, labels]; got {}", c.where(), to_string(g.p.shape()));
  if (c.has("label_weights") && std::ssize(label_weights(c)) != g.p.extent(-1))
    fail<InvalidArgument>("fit", "{}: has {} label_weights for predictions {}", c.where(), label_weights(c).size(), to_string(g.p.shape()));
  if (c.has("label_weights") && !by_label) {
    const std::vector<double> given = label_weights(c);
    const Value weights = constant<float>(g.p.graph(), {g.p.extent(-1)}, std::vector<float>(given.begin(), given.end()));
    const Value each = broadcast_to(weights, g.p.shape());
    g.weight = g.weight ? g.weight * each : each;
  }
  return confusion(g, levels_of_area(c), by_label);
}

// The area under the curve of one label, thresholds ascending.
double area_of(const std::vector<Counted>& at, bool roc, const std::string& method) {
  double total = 0;
  for (size_t i = 0; i + 1 < at.size(); ++i) {
    const Counted &a = at[i], &b = at[i + 1];
    if (!roc && method == "interpolation") {
      const double true_step = a.tp - b.tp, p = a.tp + a.fp, q = b.tp + b.fp;
      const double slope = ratio_or_zero(true_step, std::max(p - q, 0.0)), intercept = b.tp - slope * q;
      const double logarithm = p > 0 && q > 0 ? std::log(p / q) : 0;
      total += ratio_or_zero(slope * (true_step + intercept * logarithm), std::max(b.tp + b.fn, 0.0));
      continue;
    }
    const auto x = [&](const Counted& k) { return roc ? ratio_or_zero(k.fp, k.fp + k.tn) : k.sensitivity(); };
    const auto y = [&](const Counted& k) { return roc ? k.sensitivity() : k.precision(); };
    const double low = std::min(y(a), y(b)), high = std::max(y(a), y(b));
    total += (x(a) - x(b)) * (method == "interpolation" ? (low + high) / 2 : method == "minoring" ? low : high);
  }
  return total;
}

double area(const Config& c, const std::vector<double>& sums) {
  const std::string curve = plain_name(c.text("curve", "ROC")), method = plain_name(c.text("summation_method", "interpolation"));
  if ((curve != "roc" && curve != "pr") || (method != "interpolation" && method != "minoring" && method != "majoring"))
    c.unsupported("curve '{}' with summation_method '{}' is not done", escape(c.text("curve", "")), escape(method));
  const size_t levels = levels_of_area(c).thresholds.size(), labels = sums.size() / 4 / levels;
  std::vector<double> weights(labels, 1);
  if (c.has("label_weights") && c.flag("multi_label", false)) weights = label_weights(c);
  double total = 0, all = 0;
  for (size_t label = 0; label < labels; ++label) {
    total += weights[label] * area_of(counted_levels(sums, levels, label), curve == "roc", method);
    all += weights[label];
  }
  return ratio_or_zero(total, all);
}

// True positives, false positives, false negatives and truths by class, or of all classes together.
Value f_sums(const Named& named, const MetricInputs& i) {
  const Config c = named.config();
  if (i.target.rank() != 2 || !(i.target.shape() == i.prediction.shape()))
    fail<InvalidArgument>("fit", "{}: takes targets and predictions [batch, classes]; got {} and {}", c.where(),
                          to_string(i.target.shape()), to_string(i.prediction.shape()));
  const bool micro = c.text("average", "") == "micro";
  if (!micro && !c.has("average") && i.prediction.extent(-1) > 1)
    c.unsupported("has a number a class; hint: average = \"macro\", \"micro\" or \"weighted\"");
  if (c.has("average") && !micro && c.text("average") != "macro" && c.text("average") != "weighted")
    c.unsupported("average '{}' is not known", escape(c.text("average")));
  Value guess;
  if (c.has("threshold")) {
    guess = compare(i.prediction, c.number("threshold"), Direction::GT);
  } else {
    const Value largest = broadcast_to(reduce_max(i.prediction, {-1}, true), i.prediction.shape());
    guess = logical_and(compare(i.prediction, largest, Direction::GE), compare(abs(i.prediction), 1e-9, Direction::GT));
  }
  const Value p = convert(guess, DType::f32), t = i.target;
  const auto total = [&](Value x) {
    if (i.weight) x = x * broadcast_to(i.weight.rank() == 1 ? expand_dims(i.weight, {1}) : i.weight, x.shape());
    return micro ? reshape(sum(x, {0, 1}), {1}) : sum(x, {0});
  };
  return concatenate({total(p * t), total(p * (1 - t)), total((1 - p) * t), total(t)}, 0);
}

double f_beta(const Config& c, const std::vector<double>& sums, double beta) {
  const size_t classes = sums.size() / 4;
  const bool weighted = c.text("average", "") == "weighted";
  double out = 0, truths = 0;
  for (size_t k = 0; k < classes; ++k) truths += sums[3 * classes + k];
  for (size_t k = 0; k < classes; ++k) {
    const double right = sums[k], p = right / (right + sums[classes + k] + metric_epsilon),
                 r = right / (right + sums[2 * classes + k] + metric_epsilon);
    const double score = (1 + beta * beta) * p * r / (beta * beta * p + r + metric_epsilon);
    out += score * (weighted ? sums[3 * classes + k] / (truths + metric_epsilon) : 1 / static_cast<double>(classes));
  }
  return out;
}

double f1_score(const Config& c, const std::vector<double>& sums) { return f_beta(c, sums, 1); }
double f_beta_score(const Config& c, const std::vector<double>& sums) { return f_beta(c, sums, c.number("beta", 1)); }

constexpr int64_t most_classes = 4096;

// How often class a was taken for b: [classes * classes].
Value class_matrix(const Config& c, Value truth, Value guess, Value weight, int64_t classes) {
  const int64_t count = truth.shape().elements();
  if (guess.shape().elements() != count)
    fail<InvalidArgument>("fit", "{}: has {} labels for {} predictions; hint: sparse_y_pred = false takes the largest", c.where(), count,
                          guess.shape().elements());
  truth = reshape(convert(truth, DType::i32), {count});
  guess = reshape(convert(guess, DType::i32), {count});
  // Labels outside have a row of zeros, so they are counted nowhere.
  Value rows = one_hot(truth, classes, DType::f32);
  if (c.has("ignore_class")) {
    const Value kept = compare(truth, static_cast<double>(c.integer("ignore_class")), Direction::NE);
    rows = rows * convert(broadcast_in_dim(kept, rows.shape(), {0}), DType::f32);
  }
  if (weight) {
    const bool whole = !c.has("dtype") || c.get("dtype").dump().find("float") == std::string::npos;
    if (whole) weight = convert(convert(weight, DType::i32), DType::f32);
    weight = weight.shape().elements() == count ? reshape(weight, {count}) : broadcast_to(weight, {count});
    rows = rows * broadcast_in_dim(weight, rows.shape(), {0});
  }
  return reshape(matmul(transpose(rows, {1, 0}), one_hot(guess, classes, DType::f32)), {classes * classes});
}

template <bool sparse_truth, bool sparse_guess>
Value iou_sums(const Named& named, const MetricInputs& i) {
  const Config c = named.config();
  const int64_t axis = c.integer("axis", -1);
  const auto chosen = [&](Value x, const char* key, bool sparse) { return c.flag(key, sparse) ? x : argmax(x, axis); };
  return class_matrix(c, chosen(i.target, "sparse_y_true", sparse_truth), chosen(i.prediction, "sparse_y_pred", sparse_guess), i.weight,
                      c.positive("num_classes", most_classes));
}

Value binary_iou_sums(const Named& named, const MetricInputs& i) {
  const Config c = named.config();
  return class_matrix(c, i.target, compare(i.prediction, c.number("threshold", 0.5), Direction::GE), i.weight, 2);
}

double iou_of(const Config& c, const std::vector<double>& sums, const Ints& ids, size_t classes) {
  double total = 0, valid = 0;
  for (int64_t id : ids) {
    if (id < 0 || id >= static_cast<int64_t>(classes)) c.invalid("target_class_ids has {}; there are {} classes", id, classes);
    const auto k = static_cast<size_t>(id);
    double below = -sums[k * classes + k];
    for (size_t other = 0; other < classes; ++other) below += sums[k * classes + other] + sums[other * classes + k];
    if (below <= 1e-9) continue;  // a class that is absent
    total += sums[k * classes + k] / (below + metric_epsilon);
    ++valid;
  }
  return total / (valid + metric_epsilon);
}

size_t classes_of_matrix(const std::vector<double>& sums) { return static_cast<size_t>(std::llround(std::sqrt(sums.size()))); }

double iou(const Config& c, const std::vector<double>& sums) {
  return iou_of(c, sums, c.ints("target_class_ids"), classes_of_matrix(sums));
}
double binary_iou(const Config& c, const std::vector<double>& sums) { return iou_of(c, sums, c.ints("target_class_ids", -1, {0, 1}), 2); }
double mean_iou(const Config& c, const std::vector<double>& sums) {
  Ints all;
  for (size_t k = 0; k < classes_of_matrix(sums); ++k) all.push_back(static_cast<int64_t>(k));
  return iou_of(c, sums, all, all.size());
}

const MetricRow count_rows[] = {
    {"precision", at_threshold, precision, "thresholds[0,1] top_k{1,} class_id{,}", Better::more},
    {"recall", at_threshold, recall, "thresholds[0,1] top_k{1,} class_id{,}", Better::more},
    {"true_positives", at_threshold, count_of<0>, "thresholds[0,1]", Better::more},
    {"false_positives", at_threshold, count_of<1>, "thresholds[0,1]", Better::less},
    {"true_negatives", at_threshold, count_of<2>, "thresholds[0,1]", Better::more},
    {"false_negatives", at_threshold, count_of<3>, "thresholds[0,1]", Better::less},
    {"sensitivity_at_specificity", at_closed_levels, sensitivity_at_specificity, "specificity[0,1] num_thresholds{1,} class_id{,}",
     Better::more},
    {"specificity_at_sensitivity", at_closed_levels, specificity_at_sensitivity, "sensitivity[0,1] num_thresholds{1,} class_id{,}",
     Better::more},
    {"precision_at_recall", at_closed_levels, precision_at_recall, "recall[0,1] num_thresholds{1,} class_id{,}", Better::more},
    {"recall_at_precision", at_closed_levels, recall_at_precision, "precision[0,1] num_thresholds{1,} class_id{,}", Better::more},
    {"auc", area_sums, area,
     "num_thresholds{2,} curve summation_method thresholds[0,1] multi_label num_labels{1,} label_weights(,) from_logits", Better::more},
    {"f1_score", f_sums, f1_score, "average threshold(0,1]", Better::more},
    {"fbeta_score f_beta_score", f_sums, f_beta_score, "average beta(0,) threshold(0,1]", Better::more},
    {"io_u", iou_sums<true, true>, iou, "num_classes{1,} target_class_ids ignore_class{,} sparse_y_true sparse_y_pred axis", Better::more},
    {"mean_io_u", iou_sums<true, true>, mean_iou, "num_classes{1,} ignore_class{,} sparse_y_true sparse_y_pred axis", Better::more},
    {"one_hot_io_u", iou_sums<false, false>, iou, "num_classes{1,} target_class_ids ignore_class{,} sparse_y_pred axis", Better::more},
    {"one_hot_mean_io_u", iou_sums<false, false>, mean_iou, "num_classes{1,} ignore_class{,} sparse_y_pred axis", Better::more},
    {"binary_io_u", binary_iou_sums, binary_iou, "target_class_ids threshold(,)", Better::more},
};

}  // namespace

std::span<const MetricRow> metrics_of_counts() { return count_rows; }

}  // namespace tutti::keras
