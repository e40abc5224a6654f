// The table of metrics, and those that are means of values by sample.
#include "tutti/keras/fit/metrics.h"

#include <algorithm>
#include <cmath>

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"
#include "tutti/keras/fit/losses.h"
#include "tutti/keras/fit/metric_rows.h"

namespace tutti::keras {

namespace {

Value one_element(Value x) { return reshape(sum(x, all_axes(x)), {1}); }

Ints axes_from(Value x, int64_t first) {
  Ints out;
  for (int64_t axis = first; axis < x.rank(); ++axis) out.push_back(axis);
  return out;
}

Value mean_from(Value x, int64_t first) { return x.rank() > first ? mean(x, axes_from(x, first)) : x; }

// Values and their weights, summed; as Keras, values are first brought to the rank of the weights.
Value weighted_sums(Value values, Value weight) {
  if (!weight)
    return concatenate({one_element(values), full(values.graph(), {DType::f32, {1}}, static_cast<double>(values.shape().elements()))}, 0);
  match_ranks(values, weight);
  values = mean_from(values, weight.rank());
  const bool by_parts = weight.rank() > 1;
  weight = broadcast_to(weight, values.shape());
  return concatenate({one_element(mean_from(values * weight, 1)), one_element(by_parts ? mean_from(weight, 1) : weight)}, 0);
}

Value masked_sums(const MetricInputs& i, Value values) {
  Value weight = i.weight;
  if (i.mask) {
    Value kept = convert(i.mask, DType::f32);
    if (weight) match_ranks(kept, weight);
    weight = weight ? weight * kept : kept;
  }
  return weighted_sums(values, weight);
}

double mean_of(const Config&, const std::vector<double>& sums) { return ratio_or_zero(sums[0], sums[1]); }
double root_of_mean(const Config& c, const std::vector<double>& sums) { return std::sqrt(mean_of(c, sums)); }

Value loss_mean(const Named& named, const MetricInputs& i) {
  Value own;
  const Value values = loss_values(named, {i.target, i.prediction, {}, {}}, own);
  // What the loss leaves out counts as 0, and not at all where there are weights.
  MetricInputs with = i;
  if (own && (i.weight || i.mask)) with.mask = i.mask ? logical_and(i.mask, own) : own;
  return masked_sums(with, values);
}

Value cosine(const Named& named, const MetricInputs& i) {
  Value mask;
  return masked_sums(i, -loss_values(named, {i.target, i.prediction, {}, {}}, mask));  // the loss has the other sign
}

void require_fit(const Named& named, const MetricInputs& i, bool do_fit) {
  if (!do_fit)
    fail<InvalidArgument>("fit", "{} '{}': targets {} do not go with predictions {}", named.what, named.name, to_string(i.target.shape()),
                          to_string(i.prediction.shape()));
}

// Targets and what is compared with them, of one shape but for extents of 1.
void require_alike(const Named& named, const MetricInputs& i, Value target, Value other) {
  require_fit(named, i, broadcast_alike(target.shape(), other.shape()));
}

// A class for each row of predictions.
void require_classes(const Named& named, const MetricInputs& i, Value classes) {
  const Ints& p = i.prediction.shape().extents();
  require_fit(named, i, std::equal(classes.shape().begin(), classes.shape().end(), p.begin(), p.end() - 1));
}

Value root_mean_squared_error(const Named& named, const MetricInputs& i) {
  Value target = i.target, prediction = i.prediction;
  match_ranks(target, prediction);
  require_alike(named, i, target, prediction);
  return weighted_sums(square(prediction - target), i.weight);  // deaf to the mask
}

Value are_equal(const Named& named, const MetricInputs& i, Value target, Value guess) {
  require_alike(named, i, target, guess);
  return masked_sums(i, convert(compare(target, guess, Direction::EQ), DType::f32));
}

Value accuracy(const Named& named, const MetricInputs& i) {
  Value target = i.target, prediction = i.prediction;
  match_ranks(target, prediction);
  return are_equal(named, i, target, prediction);
}

Value binary_accuracy(const Named& named, const MetricInputs& i) {
  Value target = i.target, prediction = i.prediction;
  match_ranks(target, prediction);
  return are_equal(named, i, target, convert(compare(prediction, named.config().number("threshold", 0.5), Direction::GT), DType::f32));
}

Value categorical_accuracy(const Named& named, const MetricInputs& i) {
  return are_equal(named, i, argmax(i.target, -1), argmax(i.prediction, -1));
}

Value classes_of(const MetricInputs& i) {
  return i.target.rank() == i.prediction.rank() && i.target.extent(-1) == 1 ? squeeze(i.target, {-1}) : i.target;
}

Value sparse_categorical_accuracy(const Named& named, const MetricInputs& i) {
  return are_equal(named, i, classes_of(i), convert(argmax(i.prediction, -1), DType::f32));
}

// Whether fewer than k predictions are larger than that of the class.
Value in_top(const Named& named, const MetricInputs& i, Value classes) {
  require_classes(named, i, classes);
  const Value p = i.prediction;
  const Value own = sum(p * one_hot(convert(classes, DType::i32), p.extent(-1), DType::f32), {-1}, true);
  const Value larger = sum(convert(compare(p, broadcast_to(own, p.shape()), Direction::GT), DType::f32), {-1});
  return masked_sums(i, convert(compare(larger, named.config().number("k", 5), Direction::LT), DType::f32));
}

Value top_k_categorical_accuracy(const Named& named, const MetricInputs& i) { return in_top(named, i, argmax(i.target, -1)); }
Value sparse_top_k_categorical_accuracy(const Named& named, const MetricInputs& i) {
  if (!named.config().flag("from_sorted_ids", false)) return in_top(named, i, classes_of(i));
  require_classes(named, i, classes_of(i));
  const int64_t first = std::clamp<int64_t>(named.config().integer("k", 5), 0, i.prediction.extent(-1));
  const Value ids = slice_axis(i.prediction, i.prediction.rank() - 1, 0, first);
  const Value found = convert(compare(broadcast_to(expand_dims(classes_of(i), {-1}), ids.shape()), ids, Direction::EQ), DType::f32);
  return masked_sums(i, convert(compare(sum(found, {-1}), 0, Direction::GT), DType::f32));
}

// What correlations are made of: both sides with their means and variances along an axis.
struct Correlated {
  Value t, p;
  Ints axis;
  Correlated(const Named& named, const MetricInputs& i) : t(i.target), p(i.prediction) {
    match_ranks(t, p);
    require_alike(named, i, t, p);
    axis = {wrap_axis(named.config().integer("axis", -1), p.rank())};
  }
  Value mean_of(Value x) const { return mean(x, axis, true); }
  Value variance_of(Value x) const { return variance(x, axis, true); }
};

Value pearson_correlation(const Named& named, const MetricInputs& i) {
  const Correlated c(named, i);
  const auto normed = [&](Value x) { return (x - c.mean_of(x)) / sqrt(c.variance_of(x)); };
  return masked_sums(i, mean(normed(c.t) * normed(c.p), c.axis));
}

Value concordance_correlation(const Named& named, const MetricInputs& i) {
  const Correlated c(named, i);
  const Value both = (c.t - c.mean_of(c.p)) * (c.p - c.mean_of(c.p));  // the mean of the predictions twice, as Keras has it
  const Value norm = c.variance_of(c.t) + c.variance_of(c.p) + square(c.mean_of(c.t) - c.mean_of(c.p));
  return masked_sums(i, mean(both * 2 / (norm + 1e-7), c.axis));
}

// By column of the targets: sums, sums of squares, squared errors, weights; and how many numbers there were.
Value r2_sums(const Named& named, const MetricInputs& i) {
  Value target = i.target, prediction = i.prediction;
  match_ranks(target, prediction);
  if (target.rank() != 2 || !(target.shape() == prediction.shape()))
    fail<InvalidArgument>("fit", "{} '{}': takes targets and predictions [batch, size]; got {} and {}", named.what, named.name,
                          to_string(target.shape()), to_string(prediction.shape()));
  Value weight = i.weight ? i.weight : full(target.graph(), {DType::f32, {}}, 1);
  if (weight.rank() == 1) weight = expand_dims(weight, {1});
  weight = broadcast_to(weight, target.shape());
  const auto total = [](Value x) { return sum(x, {0}); };
  const Value count = full(target.graph(), {DType::f32, {1}}, static_cast<double>(target.shape().elements()));
  return concatenate(
      {total(target * weight), total(square(target) * weight), total(square(target - prediction) * weight), total(weight), count}, 0);
}

double r2_score(const Config& c, const std::vector<double>& sums) {
  const size_t columns = (sums.size() - 1) / 4;
  const std::string aggregation = c.text("class_aggregation", "uniform_average");
  const bool given = c.json().has("class_aggregation");
  if ((given && !c.has("class_aggregation") && columns > 1) ||
      (aggregation != "uniform_average" && aggregation != "variance_weighted_average"))
    c.unsupported("class_aggregation is uniform_average or variance_weighted_average: one number an epoch is kept");
  double scores = 0, weighted = 0, weights = 0;
  for (size_t k = 0; k < columns; ++k) {
    const double total = sums[columns + k] - sums[k] * (sums[k] / sums[3 * columns + k]);
    const double raw = 1 - sums[2 * columns + k] / total, score = std::isinf(raw) ? 0 : raw;
    scores += score / static_cast<double>(columns);
    weighted += total * score;
    weights += total;
  }
  const double score = aggregation == "uniform_average" ? scores : weighted / weights;
  const double samples = sums.back(), regressors = c.number("num_regressors", 0);
  if (regressors == 0 || regressors >= samples - 1) return score;
  return 1 - (1 - score) * (samples - 1) / (samples - regressors - 1);
}

const MetricRow mean_rows[] = {
    {"binary_accuracy", binary_accuracy, mean_of, "threshold(,)", Better::more},
    {"categorical_accuracy", categorical_accuracy, mean_of, "", Better::more},
    {"sparse_categorical_accuracy", sparse_categorical_accuracy, mean_of, "", Better::more},
    {"top_k_categorical_accuracy", top_k_categorical_accuracy, mean_of, "k{,}", Better::more},
    {"sparse_top_k_categorical_accuracy", sparse_top_k_categorical_accuracy, mean_of, "k{,} from_sorted_ids", Better::more},
    {"accuracy", accuracy, mean_of, "", Better::more},
    {"root_mean_squared_error rmse", root_mean_squared_error, root_of_mean, "", Better::less},
    {"mean_squared_error mse", loss_mean, mean_of, "", Better::less},
    {"mean_absolute_error mae", loss_mean, mean_of, "", Better::less},
    {"mean_absolute_percentage_error mape", loss_mean, mean_of, "", Better::less},
    {"mean_squared_logarithmic_error msle", loss_mean, mean_of, "", Better::less},
    {"cosine_similarity", cosine, mean_of, "axis", Better::more},
    {"logcosh log_cosh_error log_cosh", loss_mean, mean_of, "", Better::less},
    {"kl_divergence kld kullback_leibler_divergence", loss_mean, mean_of, "", Better::less},
    {"poisson", loss_mean, mean_of, "", Better::less},
    {"hinge", loss_mean, mean_of, "", Better::less},
    {"squared_hinge", loss_mean, mean_of, "", Better::less},
    {"categorical_hinge", loss_mean, mean_of, "", Better::less},
    {"huber", loss_mean, mean_of, "delta(,)", Better::less},
    {"binary_crossentropy bce", loss_mean, mean_of, "from_logits label_smoothing(,)", Better::less},
    {"categorical_crossentropy", loss_mean, mean_of, "from_logits label_smoothing(,) axis", Better::less},
    {"sparse_categorical_crossentropy", loss_mean, mean_of, "from_logits ignore_class{,} axis", Better::less},
    {"pearson_correlation", pearson_correlation, mean_of, "axis", Better::more},
    {"concordance_correlation", concordance_correlation, mean_of, "axis", Better::more},
    {"r2_score", r2_sums, r2_score, "class_aggregation num_regressors{0,}", Better::more},
};

const MetricRow& row_of_metric(const Named& named) {
  static const std::vector<MetricRow> rows = [] {
    std::vector<MetricRow> out(std::begin(mean_rows), std::end(mean_rows));
    out.insert(out.end(), metrics_of_counts().begin(), metrics_of_counts().end());
    return out;
  }();
  return find_row(rows, named);
}

std::string logged_name(const MetricRow& row) { return std::string(row.names.substr(0, row.names.find(' '))); }

bool is_accuracy(const std::string& name) { return plain_name(name) == "accuracy" || plain_name(name) == "acc"; }

// The name that a file gives its metric; "" where it has none, and in job files, whose "name" is that of the class.
std::string given_name(const Json& json) {
  if (json.is_string()) return json.as_string();
  const Json* config = json.is_object() && json.has("class_name") ? json.find("config") : nullptr;
  const Json* name = config != nullptr && config->is_object() ? config->find("name") : nullptr;
  return name != nullptr && name->is_string() ? name->as_string() : "";
}

}  // namespace

Metric::Metric(const Json& json, const Shape& target, const Shape& prediction)
    : name_(given_name(json)), named_(read_named(json, "metric")) {
  if (json.is_string() && is_accuracy(name_)) named_.name = fmt::format("{}_accuracy", kind_of_classes(target, prediction));
  row_ = &row_of_metric(named_);
  if (name_.empty()) name_ = logged_name(*row_);
  if (row_->names.starts_with("logcosh ")) named_.name = "log_cosh";  // the loss
  check_arguments(named_, std::string(row_->options) + " dtype");
  const Config config = named_.config();
  const bool whole = plain_name(named_.name).ends_with("iou");  // counts in integers unless told otherwise
  if (const std::string dtype = config.has("dtype") ? config.get("dtype").dump() : "";
      !dtype.empty() && dtype.find("float32") == std::string::npos && !(whole && dtype.starts_with("\"int")))
    fail<Unsupported>("fit", "{}: is computed in float32; got the dtype {}", config.where(), escape(dtype, 60));
}

Metric::Metric(std::string name)
    : is_mean_of_something_(true), name_(std::move(name)), named_{"metric", name_, Json::object()}, row_(&mean_rows[0]) {}

std::optional<bool> Metric::rises() const {
  if (is_mean_of_something_) return {};
  return row_->better == Better::more;
}

Json written_metric(const Named& named) {
  const MetricRow& row = row_of_metric(named);
  Json out = written_arguments(named, row.options);
  out.set("name", logged_name(row));
  return out;
}

Value Metric::sums(const MetricInputs& inputs) const {
  const auto f32 = [](Value x) { return x ? convert(x, DType::f32) : x; };
  return row_->sums(named_, {f32(inputs.target), f32(inputs.prediction), f32(inputs.weight), inputs.mask});
}

double Metric::result(const std::vector<double>& sums) const { return row_->result(named_.config(), sums); }

}  // namespace tutti::keras
