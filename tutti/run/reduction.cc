#include "tutti/run/reduction.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/data/csv.h"
#include "tutti/graph/compose.h"
#include "tutti/keras/promote.h"

namespace tutti {

namespace {

using Kind = Reduction::Kind;

constexpr std::pair<std::string_view, Kind> kinds[] = {
    {"mean", Kind::mean}, {"median", Kind::median}, {"min", Kind::min},           {"max", Kind::max},   {"sum", Kind::sum},
    {"std", Kind::std},   {"var", Kind::var},       {"quantile", Kind::quantile}, {"vote", Kind::vote}, {"softvote", Kind::softvote},
};

std::string_view kind_name(Kind kind) {
  for (const auto& [name, value] : kinds)
    if (value == kind) return name;
  fail<InternalError>("ensemble", "a reduction without a name");
}

double checked_quantile(std::string_view text) {
  const auto value = parse_double(text);
  if (!value || !(*value >= 0 && *value <= 1)) fail<InvalidArgument>("ensemble", "a quantile is a number from 0 to 1; got '{}'", text);
  return *value;
}

Reduction parse_one(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  std::vector<std::string> names;
  for (const auto& [known, kind] : kinds) {
    names.emplace_back(known);
    if (known != name) continue;
    if ((kind == Kind::quantile) != (colon != std::string_view::npos))
      fail<InvalidArgument>("ensemble", "a reduction is a name, for quantile also its numbers, as in quantile:0.1,0.9; got '{}'", text);
    return {kind, kind == Kind::quantile ? checked_quantile(text.substr(colon + 1)) : 0};
  }
  fail<InvalidArgument>("ensemble", "no reduction '{}'{}; there are mean, median, min, max, sum, std, var, quantile:Q, vote, softvote",
                        name, did_you_mean(name, names));
}

}  // namespace

std::string Reduction::name() const { return kind == Kind::quantile ? fmt::format("quantile_{}", quantile) : std::string(kind_name(kind)); }

std::string Reduction::text() const { return kind == Kind::quantile ? fmt::format("quantile:{}", quantile) : std::string(kind_name(kind)); }

std::vector<Reduction> parse_reductions(std::string_view text) {
  std::vector<Reduction> out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    std::string_view part = text.substr(begin, end - begin);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    // A number goes on with the quantiles before it.
    const bool another = !out.empty() && out.back().kind == Kind::quantile && parse_double(part);
    const Reduction found = another ? Reduction{Kind::quantile, checked_quantile(part)} : parse_one(part);
    if (std::find(out.begin(), out.end(), found) != out.end())
      fail<InvalidArgument>("ensemble", "reduction '{}' is given twice", found.text());
    out.push_back(found);
    begin = end + 1;
  }
  return out;
}

namespace {

// Members' values side by side, [members, ...], and what the reductions need of them.
class Reducer {
 public:
  explicit Reducer(const ReductionInput& input) : input_(input), all_(input.all), count_(all_.extent(0)) {}

  // What is wider on the way, so that no sum or square of halves goes beyond them, is rounded once.
  Value reduce(const Reduction& reduction) {
    const DType own = all_.dtype();
    if (is_float(own) && byte_size(own) < 4) all_ = convert(all_, DType::f32);
    const Value out = reduced(reduction);
    return is_float(own) && is_float(out.dtype()) ? convert(out, own) : out;
  }

 private:
  Value reduced(const Reduction& reduction) {
    switch (reduction.kind) {
      case Kind::min: return extreme(true);
      case Kind::max: return extreme(false);
      case Kind::sum:
        if (!is_float(all_.dtype())) all_ = convert(all_, keras::sum_type(all_.dtype()));  // truths are counted, small numbers add up
        return sum(numbers(), {0});
      case Kind::vote: as_classes(); return vote();
      case Kind::softvote: as_classes(); return winner(mean_of_members());
      default: break;
    }
    as_floats();
    switch (reduction.kind) {
      case Kind::mean: return mean_of_members();
      case Kind::var: return variance_of_members();
      case Kind::std: return sqrt(variance_of_members());
      case Kind::median: return quantile(0.5, true);
      default: return quantile(reduction.quantile);
    }
  }

  bool ignores() const { return input_.ignore_nan && is_float(all_.dtype()); }

  void as_floats() {
    if (!is_float(all_.dtype())) all_ = convert(all_, DType::f32);
  }

  // NaN as nothing, where it is ignored.
  Value numbers() { return ignores() ? select(is_nan(all_), full_like(all_, 0), all_) : all_; }

  // 1 for numbers, 0 for NaN.
  Value present() { return select(is_nan(all_), full_like(all_, 0), full_like(all_, 1)); }

  // A weight a member for every value: 1 where there are none, and 0 where a NaN is ignored.
  Value weights() {
    const bool given = !input_.weights.empty();
    const std::vector<float> values = given ? given_weights() : std::vector<float>(static_cast<size_t>(count_), 1);
    const Value column = convert(constant<float>(all_.graph(), {count_}, values), all_.dtype());
    const Value wide = broadcast_in_dim(column, all_.shape(), {0});
    return ignores() ? select(is_nan(all_), full_like(all_, 0), wide) : wide;
  }

  // By a power of two, which changes no proportion and no tie, so that large and small ones are floats too.
  std::vector<float> given_weights() const {
    const int exponent = std::ilogb(*std::max_element(input_.weights.begin(), input_.weights.end()));
    std::vector<float> out;
    for (double weight : input_.weights) out.push_back(static_cast<float>(std::ldexp(weight, -exponent)));
    return out;
  }

  Value mean_of_members() {
    as_floats();
    if (ignores()) {
      const Value parts = weights();
      return sum(numbers() * parts, {0}) / sum(parts, {0});
    }
    if (input_.weights.empty()) return mean(all_, {0});
    const double total = std::accumulate(input_.weights.begin(), input_.weights.end(), 0.0);
    std::vector<float> parts;
    for (double weight : input_.weights) parts.push_back(static_cast<float>(weight / total));
    const Value column = convert(constant<float>(all_.graph(), {count_}, parts), all_.dtype());
    return sum(all_ * broadcast_in_dim(column, all_.shape(), {0}), {0});
  }

  // Of all members alike: weights are for means.
  Value variance_of_members() {
    if (!ignores()) return variance(all_, {0});
    const Value members = sum(present(), {0}, true), center = sum(numbers(), {0}, true) / members;
    const Value squares = select(is_nan(all_), full_like(all_, 0), square(all_ - center));
    return sum(squares, {0}) / squeeze(members, {0});
  }

  Value extreme(bool least) {
    const auto reduce = [&](Value x) { return least ? reduce_min(x, {0}) : reduce_max(x, {0}); };
    if (!ignores()) return reduce(all_);
    const Value none = all(is_nan(all_), {0});
    const double beyond = least ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
    const Value found = reduce(select(is_nan(all_), full_like(all_, beyond), all_));
    return select(none, full_like(found, std::numeric_limits<double>::quiet_NaN()), found);
  }

  // NumPy's "linear" rule between the two sorted members nearest to q. NaN is sorted to the end.
  // `median`: NumPy's is the mean of the two in the middle, which may both be infinite.
  Value quantile(double q, bool median = false) {
    const Value sorted = sort({all_}, 0)[0];
    if (!ignores()) {
      const double place = q * static_cast<double>(count_ - 1);
      const auto below = static_cast<int64_t>(std::floor(place)), above = std::min(below + 1, count_ - 1);
      const double part = place - static_cast<double>(below);
      const Value low = index_axis(sorted, 0, below), high = index_axis(sorted, 0, above), last = index_axis(sorted, 0, count_ - 1);
      const Value found = part == 0     ? low
                          : median      ? (low + high) * 0.5
                          : part >= 0.5 ? high - (high - low) * (1 - part)
                                        : low + (high - low) * part;
      return select(is_nan(last), last, found);
    }
    const Value members = sum(present(), {0}, true);
    const Value place = (members - 1) * q, below = maximum(floor(place), 0), above = maximum(minimum(below + 1, members - 1), 0);
    const auto at_place = [&](Value index) { return squeeze(take_along_axis(sorted, convert(index, DType::i32), 0), {0}); };
    const Value part = squeeze(place - below, {0}), low = at_place(below), high = at_place(above);
    const Value found = median ? (low + high) * 0.5
                               : select(compare(part, 0.5, Direction::GE), high - (high - low) * (1 - part), low + (high - low) * part);
    return select(compare(part, 0, Direction::EQ), low, found);
  }

  // A vote is on the last axis, [members, samples, ..., classes]; a number a sample is a single class.
  void as_classes() {
    if (all_.rank() < 2) fail<InvalidArgument>("ensemble", "a vote needs classes along the last axis; the members give single numbers");
    if (all_.rank() == 2) all_ = expand_dims(all_, {2});
    as_floats();
  }

  // The class of the last axis; of a single one whether it is more likely than not.
  static Value winner(Value scores) {
    if (scores.extent(-1) == 1) return convert(squeeze(compare(scores, 0.5, Direction::GT), {-1}), DType::i32);
    return argmax(scores, -1);
  }

  Value vote() {
    const Value votes = winner(all_);  // [members, ...]
    const int64_t classes = std::max<int64_t>(all_.extent(-1), 2);
    Value counted = one_hot(votes, classes, DType::f32);
    if (!input_.weights.empty()) {
      counted = counted * broadcast_in_dim(constant<float>(all_.graph(), {count_}, given_weights()), counted.shape(), {0});
    }
    if (ignores()) {
      const Value broken = broadcast_in_dim(any(is_nan(all_), {-1}), counted.shape(), axes_before_last(counted));
      counted = select(broken, full_like(counted, 0), counted);
    }
    return argmax(sum(counted, {0}), -1);
  }
  static Ints axes_before_last(Value x) {
    Ints out(static_cast<size_t>(x.rank() - 1));
    std::iota(out.begin(), out.end(), 0);
    return out;
  }

  const ReductionInput& input_;
  Value all_;
  int64_t count_;
};

}  // namespace

Value reduce_members(const Reduction& reduction, const ReductionInput& input) { return Reducer(input).reduce(reduction); }

}  // namespace tutti
