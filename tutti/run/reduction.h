// How the outputs of an ensemble's members become one: computed on the device, as part of the graph.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/graph/graph.h"

namespace tutti {

struct Reduction {
  enum class Kind { mean, median, min, max, sum, std, var, quantile, vote, softvote };
  Kind kind = Kind::mean;
  double quantile = 0;  // of its kind only

  std::string name() const;  // of its output: "mean", "quantile_0.1"
  std::string text() const;  // as it is asked for: "mean", "quantile:0.1"
  bool takes_weights() const { return kind == Kind::mean || kind == Kind::vote || kind == Kind::softvote; }
  bool operator==(const Reduction&) const = default;
};

using Reduce = Reduction::Kind;

// "mean", "mean,std" or "quantile:0.1,0.9,mean": one entry an output. Throws InvalidArgument for what is not one of them or comes twice.
std::vector<Reduction> parse_reductions(std::string_view text);

struct ReductionInput {
  Value all;                    // [members, ...]
  std::vector<double> weights;  // one a member, or none: all alike
  bool ignore_nan = false;      // reduces over the members whose value is a number, as NumPy's nan-functions do
};

// mean, std, ... with NumPy's meaning and defaults: std and var divide by the number of members, quantiles are interpolated linearly, NaN
// propagates. vote gives the class that most members find most likely, softvote the most likely one of the mean, both as i32 without the
// axis of classes; of equals the first. With one class, or a single number a sample, it is 1 above a half.
Value reduce_members(const Reduction& reduction, const ReductionInput& input);

}  // namespace tutti
