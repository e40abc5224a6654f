// The rows of the table of metrics, by how they are computed.
#pragma once

#include <span>

#include "tutti/keras/fit/metrics.h"

namespace tutti::keras {

enum class Better { more, less };

struct MetricRow {
  std::string_view names;  // the first is what Keras logs
  // Targets, predictions and weights in f32.
  Value (*sums)(const Named&, const MetricInputs&);
  double (*result)(const Config&, const std::vector<double>& sums);
  std::string_view options;
  Better better;  // as Keras's classes say; of numbers of guesses they say nothing
};

std::span<const MetricRow> metrics_of_counts();  // of right and wrong guesses

inline double ratio_or_zero(double a, double b) { return b == 0 ? 0 : a / b; }

}  // namespace tutti::keras
