// Forecasts of series by models that read windows: scaled, computed in batches by one program, scaled back; and the same from earlier
// origins, where the truth is known, to score them.
#pragma once

#include "tutti/data/series.h"
#include "tutti/run/arrange.h"
#include "tutti/run/forecast_graph.h"
#include "tutti/run/forecast_scores.h"
#include "tutti/run/series_scale.h"

namespace tutti {

struct ForecastOptions {
  int64_t lags = 0;  // 0: the model's own
  int64_t horizon = 1;
  int64_t backtest = 0;  // origins
  int64_t stride = 0;    // between them; 0: the horizon
  int64_t season = 0;    // of the seasonal-naive forecast; 0: that of the time axis
  // Each column of each series by its own values before the origin: (x - mean) / deviation, (x - least) / (most - least), or as it is.
  SeriesScale scale = SeriesScale::standard;
  std::vector<double> quantiles = {0.1, 0.5, 0.9};  // ascending
  std::string device = std::string(default_device);
  int threads = 0;
  int64_t batch = 256;                             // windows computed together, at most
  Arrangement arrangement = Arrangement::stacked;  // of members alike; measuring does not pay for one run
  Precision precision = Precision::float32;        // of products, as in CompileOptions
  bool ignore_nan = false;                         // among the members; else a NaN is the result
};

// From one origin: what a forecaster would have said who knew the values before it. Every list has one value a step.
struct Forecast {
  int64_t origin = 0;  // how many values of the series came before
  std::vector<double> mean;
  std::vector<std::vector<double>> quantiles, members;
};

struct SeriesForecast {
  Forecast future;                 // from the series' end
  std::vector<Forecast> backtest;  // earliest origin first
  ForecastScores scores, naive;    // of the back-test: the mean and the quantiles; the seasonal-naive forecast
};

struct ForecastResult {
  std::vector<SeriesForecast> series;  // as the table's
  ForecastScores scores, naive;        // over all of them
  ForecastOptions options;             // with what was left open filled in
  std::vector<WindowModel> members;
  ProgramStats stats;  // of the program for the first batch
  std::vector<std::string> warnings;
};

// An ensemble stands for its members, with their weights in the mean; its own reductions are left aside.
// A feature's future values are those the table has; after the last one it is held. A back-test knows as many of them as the forecast does.
// Values that were made up are not scored. Throws InvalidArgument when a series is too short.
ForecastResult forecast(const std::vector<std::shared_ptr<const keras::AnyModel>>& models, const SeriesTable& table,
                        const ForecastOptions& options);

}  // namespace tutti
