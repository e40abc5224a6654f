#include "tutti/run/forecast_scores.h"

#include <algorithm>
#include <cmath>

namespace tutti {

ScoreSum::ScoreSum(std::vector<double> quantiles, bool has_band)
    : quantiles_(std::move(quantiles)), has_band_(has_band && quantiles_.size() > 1), pinball_(quantiles_.size(), 0.0) {}

void ScoreSum::add(double truth, double forecast, std::span<const double> forecasts, std::optional<double> scale) {
  const double error = std::abs(truth - forecast);
  ++points_;
  absolute_ += error;
  root_ = std::hypot(root_, error);  // squares may be beyond what errors are
  if (scale) {
    ++scaled_points_;
    scaled_ += error / *scale;
  }
  for (size_t i = 0; i < quantiles_.size(); ++i) {
    const double above = truth - forecasts[i];
    pinball_[i] += std::isnan(above) ? above : std::max(quantiles_[i] * above, (quantiles_[i] - 1) * above);
  }
  if (!quantiles_.empty() && truth >= forecasts.front() && truth <= forecasts.back()) ++covered_;
}

ForecastScores ScoreSum::scores() const {
  ForecastScores out;
  out.points = points_;
  if (points_ == 0) return out;
  const auto points = static_cast<double>(points_);
  out.mae = absolute_ / points;
  out.rmse = root_ / std::sqrt(points);
  if (scaled_points_ > 0) out.mase = scaled_ / static_cast<double>(scaled_points_);
  for (double sum : pinball_) out.pinball.push_back(sum / points);
  if (has_band_) out.coverage = static_cast<double>(covered_) / points;
  return out;
}

double seasonal_naive(std::span<const double> history, int64_t season, int64_t step) {
  const auto length = static_cast<int64_t>(history.size());
  if (season > length) season = 1;
  return history[static_cast<size_t>(length - season + step % season)];
}

std::optional<double> seasonal_naive_error(std::span<const double> history, int64_t season) {
  const auto lag = static_cast<size_t>(season);
  if (history.size() <= lag) return {};
  double sum = 0;
  for (size_t i = lag; i < history.size(); ++i) sum += std::abs(history[i] - history[i - lag]);
  if (sum == 0) return {};
  return sum / static_cast<double>(history.size() - lag);
}

}  // namespace tutti
