// How good forecasts were, where the truth is known.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tutti {

struct ForecastScores {
  int64_t points = 0;  // values compared
  double mae = 0, rmse = 0;
  // Absolute errors in units of the seasonal-naive forecast's mean absolute error inside the history; nothing where that is zero or
  // unknown.
  std::optional<double> mase;
  std::vector<double> pinball;     // mean loss of each quantile
  std::optional<double> coverage;  // how often the truth lies between the lowest and the highest quantile; nothing without two of them
};

class ScoreSum {
 public:
  // `has_band` false: the quantiles are all the same forecast.
  ScoreSum(std::vector<double> quantiles, bool has_band);
  // forecasts[quantile] of one value. `scale`: what MASE divides by.
  void add(double truth, double forecast, std::span<const double> forecasts, std::optional<double> scale);
  ForecastScores scores() const;

 private:
  std::vector<double> quantiles_;
  bool has_band_;
  int64_t points_ = 0, scaled_points_ = 0, covered_ = 0;
  double absolute_ = 0, root_ = 0, scaled_ = 0;  // root_: of the sum of squares
  std::vector<double> pinball_;
};

// The value one season before, again and again; the last value where the history is shorter than a season.
double seasonal_naive(std::span<const double> history, int64_t season, int64_t step);
// Its mean absolute error one season ahead inside the history; nothing when that is zero or there is no season in it.
std::optional<double> seasonal_naive_error(std::span<const double> history, int64_t season);

}  // namespace tutti
