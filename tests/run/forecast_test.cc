// Forecasts against plain loops over the same model, and scores against numbers made by hand.
#include "tutti/run/forecast.h"

#include <cmath>

#include "tests/run/made_model.h"
#include "tests/scratch.h"
#include "tutti/base/error.h"
#include "tutti/graph/compose.h"
#include "tutti/run/predictor.h"

namespace tutti {
namespace {

// tanh(window . weights) * 2 for each of the steps, or the plain mean of the window's target.
class TestModel : public MadeModel {
 public:
  struct Kind {
    int64_t lags = 4, columns = 1, steps = 1;
    bool flat = false, open = false, mean = false;
    int seed = 1, output_rank = 2;
  };
  explicit TestModel(Kind kind)
      : MadeModel(
            {"window", DType::f32, kind.flat ? Ints{-1, kind.lags * kind.columns} : Ints{-1, kind.open ? -1 : kind.lags, kind.columns}}),
        kind_(kind) {}
  Graph lower(const keras::LowerOptions& options) const override {
    Graph graph;
    Value window = graph.input("window", {DType::f32, options.input_shapes.at(0)});
    const int64_t batch = options.batch;
    if (kind_.mean) {
      graph.output("y", tutti::mean(window, {1}));  // [batch, 1]: the only column
      return graph;
    }
    const int64_t size = kind_.lags * kind_.columns;
    Tensor weights(DType::f32, {size, kind_.steps});
    auto values = weights.as<float>();
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i + 1) * 1.7f + static_cast<float>(kind_.seed));
    Value kernel = graph.parameter(Graph::Role::weight, "kernel", weights.type(), weights);
    Value y = tanh(matmul(reshape(window, {batch, size}), kernel)) * 2.0;  // [batch, steps]
    if (kind_.output_rank == 1) y = squeeze(y, {1});
    if (kind_.output_rank == 3) y = expand_dims(y, {2});
    graph.output("y", y);
    return graph;
  }

 private:
  Kind kind_;
};

std::shared_ptr<const TestModel> test_model(TestModel::Kind kind) { return std::make_shared<const TestModel>(kind); }

SeriesTable table_of_text(const std::string& text, const SeriesColumns& columns) {
  auto bytes = std::as_bytes(std::span(text));
  return read_series(memory_source({bytes.begin(), bytes.end()}), "x.csv", columns);
}

// t = 1 ... length; y and two features that wave; `future` more rows with the features alone.
SeriesTable waves(int64_t length, int64_t future = 0, std::vector<std::string> features = {}) {
  std::string text = "t,y,a,b\n";
  for (int64_t t = 1; t <= length + future; ++t) {
    const auto x = static_cast<double>(t);
    text += fmt::format("{},{},{},{}\n", t, t <= length ? fmt::format("{}", 20 + 5 * std::sin(x * 0.9) + x * 0.1) : "", std::cos(x),
                        3 + std::sin(x * 0.3) * x);
  }
  return table_of_text(text, {"y", std::move(features), "t"});
}

// One window through the model alone.
std::vector<float> predict_one(const TestModel& model, const Shape& shape, const std::vector<float>& window, int64_t steps,
                               const std::string& device) {
  CompileOptions options;
  options.input_shapes = {shape};
  options.device = device;
  Predictor predictor(model, options);
  std::vector<float> out(static_cast<size_t>(steps));
  std::vector<std::span<const std::byte>> inputs{std::as_bytes(std::span(window))};
  std::vector<std::span<std::byte>> outputs{std::as_writable_bytes(std::span(out))};
  predictor.run(inputs, outputs);
  return out;
}

// What forecast() promises, written as a loop.
std::vector<double> looped(const TestModel::Kind& kind, const SeriesTable& table, int64_t horizon, int64_t origin, SeriesScale scale,
                           const std::string& device) {
  const TestModel model(kind);
  const Series& series = table.series[0];
  std::vector<std::vector<double>> columns{{series.target.begin(), series.target.begin() + origin}};
  std::vector<double> shift, factor;
  for (const auto& feature : series.features) columns.emplace_back(feature.begin(), feature.begin() + origin);
  for (const auto& column : columns) {
    double low = column[0], high = column[0], sum = 0, squares = 0;
    for (double v : column) low = std::min(low, v), high = std::max(high, v), sum += v;
    const double mean = sum / static_cast<double>(column.size());
    for (double v : column) squares += (v - mean) * (v - mean);
    shift.push_back(scale == SeriesScale::none ? 0 : scale == SeriesScale::minmax ? low : mean);
    factor.push_back(scale == SeriesScale::none     ? 1
                     : scale == SeriesScale::minmax ? high - low
                                                    : std::sqrt(squares / static_cast<double>(column.size())));
  }
  std::vector<double> out;
  while (static_cast<int64_t>(out.size()) < horizon) {
    std::vector<float> window;
    for (size_t row = columns[0].size() - static_cast<size_t>(kind.lags); row < columns[0].size(); ++row)
      for (size_t c = 0; c < columns.size(); ++c) window.push_back(static_cast<float>((columns[c][row] - shift[c]) / factor[c]));
    const Shape shape = kind.flat ? Shape{1, kind.lags * kind.columns} : Shape{1, kind.lags, kind.columns};
    for (float y : predict_one(model, shape, window, kind.steps, device)) {
      out.push_back(y * factor[0] + shift[0]);
      columns[0].push_back(out.back());
      for (size_t f = 0; f < series.features.size(); ++f) {
        const size_t known = std::min<size_t>(series.features[f].size() - series.target.size(), static_cast<size_t>(horizon));
        const size_t step = columns[f + 1].size() - static_cast<size_t>(origin);
        columns[f + 1].push_back(step < known ? series.features[f][static_cast<size_t>(origin) + step] : columns[f + 1].back());
      }
    }
  }
  out.resize(static_cast<size_t>(horizon));
  return out;
}

void expect_close(const std::vector<double>& found, const std::vector<double>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-3) << "step " << i;
}

ForecastOptions options_of(int64_t horizon) {
  ForecastOptions options;
  options.horizon = horizon;
  return options;
}

TEST(forecast, rolling_on_the_device_is_a_loop_over_the_model) {
  for (const std::string device : {"reference", "cpu"})
    for (SeriesScale scale : {SeriesScale::standard, SeriesScale::minmax, SeriesScale::none})
      for (const TestModel::Kind kind :
           {TestModel::Kind{}, TestModel::Kind{.flat = true}, TestModel::Kind{.steps = 3}, TestModel::Kind{.lags = 2, .steps = 5},
            TestModel::Kind{.output_rank = 1}, TestModel::Kind{.steps = 2, .output_rank = 3}}) {
        SeriesTable table = waves(30);
        ForecastOptions options = options_of(7);
        options.scale = scale;
        options.device = device;
        ForecastResult result = forecast({test_model(kind)}, table, options);
        EXPECT_EQ(result.options.lags, kind.lags);
        expect_close(result.series[0].future.mean, looped(kind, table, 7, 30, scale, device));
      }
}

TEST(forecast, enough_steps_at_once_are_not_rolled) {
  const TestModel::Kind kind{.steps = 9};
  ForecastResult result = forecast({test_model(kind)}, waves(30), options_of(7));
  expect_close(result.series[0].future.mean, looped(kind, waves(30), 7, 30, SeriesScale::standard, "reference"));
}

TEST(forecast, features_have_their_future_or_are_held) {
  for (int64_t future : {0, 2, 20})
    for (const TestModel::Kind kind : {TestModel::Kind{.columns = 3}, TestModel::Kind{.columns = 3, .steps = 2, .flat = true}}) {
      SeriesTable table = waves(30, future, {"b", "a"});
      ForecastResult result = forecast({test_model(kind)}, table, options_of(6));
      expect_close(result.series[0].future.mean, looped(kind, table, 6, 30, SeriesScale::standard, "reference"));
      EXPECT_EQ(result.warnings.size(), future < 5 ? 2u : 0u);
    }
}

TEST(forecast, a_backtest_knows_only_what_came_before_it) {
  const TestModel::Kind kind{.columns = 2, .steps = 2};
  SeriesTable table = waves(40, 1, {"a"});
  ForecastOptions options = options_of(5);
  options.backtest = 3;
  options.stride = 4;
  options.batch = 3;  // four windows: two batches
  ForecastResult result = forecast({test_model(kind)}, table, options);
  ASSERT_EQ(result.series[0].backtest.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const Forecast& past = result.series[0].backtest[i];
    EXPECT_EQ(past.origin, 27 + 4 * static_cast<int64_t>(i));
    expect_close(past.mean, looped(kind, table, 5, past.origin, SeriesScale::standard, "reference"));
  }
  expect_close(result.series[0].future.mean, looped(kind, table, 5, 40, SeriesScale::standard, "reference"));
}

TEST(forecast, several_series_are_computed_together) {
  std::string text = "id,t,y\n";
  for (int t = 0; t < 20; ++t) text += fmt::format("up,{},{}\ndown,{},{}\n", t, t * t, t, 100 - 3 * t);
  SeriesTable table = table_of_text(text, {"y", {}, "t", "id"});
  ForecastResult together = forecast({test_model({})}, table, options_of(3));
  ASSERT_EQ(together.series.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    SeriesTable alone{table.columns, table.axis, {table.series[i]}, {}};
    expect_close(together.series[i].future.mean, forecast({test_model({})}, alone, options_of(3)).series[0].future.mean);
  }
}

TEST(forecast, members_make_mean_and_quantiles) {
  SeriesTable table = waves(30);
  std::vector<std::shared_ptr<const keras::AnyModel>> members;
  std::vector<TestModel::Kind> kinds;
  for (int seed = 1; seed <= 4; ++seed) kinds.push_back({.lags = 3 + seed, .steps = seed, .seed = seed});
  for (const auto& kind : kinds) members.push_back(test_model(kind));
  ForecastOptions options = options_of(4);
  options.quantiles = {0, 0.1, 0.5, 0.85, 1};
  ForecastResult result = forecast(members, table, options);
  EXPECT_EQ(result.options.lags, 7);
  const Forecast& future = result.series[0].future;
  for (size_t m = 0; m < 4; ++m) expect_close(future.members[m], looped(kinds[m], table, 4, 30, SeriesScale::standard, "reference"));
  for (size_t step = 0; step < 4; ++step) {
    std::vector<double> sorted;
    for (const auto& member : future.members) sorted.push_back(member[step]);
    std::sort(sorted.begin(), sorted.end());
    EXPECT_NEAR(future.mean[step], (sorted[0] + sorted[1] + sorted[2] + sorted[3]) / 4, 1e-4);
    EXPECT_NEAR(future.quantiles[0][step], sorted[0], 1e-4);
    EXPECT_NEAR(future.quantiles[1][step], sorted[0] + 0.3 * (sorted[1] - sorted[0]), 1e-4);
    EXPECT_NEAR(future.quantiles[2][step], (sorted[1] + sorted[2]) / 2, 1e-4);
    EXPECT_NEAR(future.quantiles[3][step], sorted[2] + 0.55 * (sorted[3] - sorted[2]), 1e-4);
    EXPECT_NEAR(future.quantiles[4][step], sorted[3], 1e-4);
  }
}

SeriesTable eight_values() { return table_of_text("t,y\n1,1\n2,2\n3,4\n4,8\n5,9\n6,5\n7,7\n8,3\n", {"y", {}, "t"}); }

TEST(forecast, scores_are_those_made_by_hand) {
  // The mean of the last two values; from origins 4 and 6 of 1 2 4 8 | 9 5 | 7 3, two steps each.
  SeriesTable table = eight_values();
  ForecastOptions options = options_of(2);
  options.scale = SeriesScale::none;
  options.backtest = 2;
  options.season = 2;
  options.quantiles = {0.25, 0.75};
  ForecastResult result = forecast({test_model({.lags = 2, .mean = true})}, table, options);
  expect_close(result.series[0].backtest[0].mean, {6, 7});
  expect_close(result.series[0].backtest[1].mean, {7, 6});
  // Errors 3, -2, 0, -3; the naive forecast says 4 8 and 9 5: errors 5, -3, -2, -2. Inside the history it errs by (3 + 6) / 2 = 4.5 and by
  // (3 + 6 + 5 + 3) / 4 = 4.25.
  EXPECT_EQ(result.scores.points, 4);
  EXPECT_NEAR(result.scores.mae, 2, 1e-6);
  EXPECT_NEAR(result.scores.rmse, std::sqrt(22.0 / 4), 1e-6);
  EXPECT_NEAR(*result.scores.mase, (5 / 4.5 + 3 / 4.25) / 4, 1e-6);
  EXPECT_NEAR(result.scores.pinball[0], (0.25 * 3 + 0.75 * 2 + 0 + 0.75 * 3) / 4, 1e-6);
  EXPECT_NEAR(result.scores.pinball[1], (0.75 * 3 + 0.25 * 2 + 0 + 0.25 * 3) / 4, 1e-6);
  EXPECT_FALSE(result.scores.coverage);  // one model has no band
  EXPECT_NEAR(result.naive.mae, 3, 1e-6);
  EXPECT_NEAR(result.naive.rmse, std::sqrt((25 + 9 + 4 + 4) / 4.0), 1e-6);
  EXPECT_NEAR(*result.naive.mase, (8 / 4.5 + 4 / 4.25) / 4, 1e-6);
}

TEST(forecast, errors_whose_squares_are_no_numbers_are_scored) {
  for (double unit : {1e-250, 1e250}) {
    ScoreSum sum({}, false);
    for (double truth : {3.0, -4.0}) sum.add(truth * unit, 0, {}, {});
    EXPECT_NEAR(sum.scores().rmse / unit, std::sqrt(12.5), 1e-12);
  }
}

TEST(forecast, coverage_counts_what_lies_in_the_band) {
  SeriesTable table = eight_values();
  ForecastOptions options = options_of(1);
  options.scale = SeriesScale::none;
  options.backtest = 4;
  options.stride = 1;
  options.quantiles = {0, 1};
  // The last value, and the mean of the last four: bands 3.75..8, 5.75..9, 5..6.5, 7..7.25 for 9, 5, 7, 3.
  auto last = test_model({.lags = 1, .mean = true}), four = test_model({.lags = 4, .mean = true});
  EXPECT_EQ(*forecast({last, four}, table, options).scores.coverage, 0);
  EXPECT_PRED2(contains, message_of<InvalidArgument>([&] { forecast({test_model({.lags = 8, .mean = true})}, table, options); }),
               "the series has 8 values; 4 back-tests, 1 apart, of 1 steps after windows of 8 need 12");
  SeriesTable calm = table_of_text("t,y\n1,4\n2,6\n3,4\n4,6\n5,5\n6,6\n7,7\n8,5\n", {"y", {}, "t"});
  EXPECT_EQ(*forecast({last, four}, calm, options).scores.coverage, 0.25);  // 5..6, 5..5.25, 5.25..6, 6..7 for 5, 6, 7, 5
}

TEST(forecast, values_that_were_made_up_are_not_scored) {
  SeriesTable table = table_of_text("t,y\n1,1\n2,2\n3,4\n4,8\n5,9\n6,\n7,7\n8,3\n", {"y", {}, "t"});
  ForecastOptions options = options_of(2);
  options.backtest = 2;
  EXPECT_EQ(forecast({test_model({.lags = 2})}, table, options).scores.points, 3);
}

TEST(forecast, a_backtest_sees_nothing_of_a_feature_behind_a_gap) {
  ForecastOptions options = options_of(2);
  options.backtest = 1;  // from t = 7 on, and with one future value of the feature: up to t = 7
  auto past = [&](const char* behind) {
    const std::string text = fmt::format("t,y,a\n1,1,3\n2,2,5\n3,4,4\n4,8,6\n5,9,7\n6,5,\n7,7,\n8,3,{}\n9,,2\n", behind);
    return forecast({test_model({.lags = 2, .columns = 2})}, table_of_text(text, {"y", {"a"}, "t"}), options).series[0].backtest[0].mean;
  };
  expect_close(past("20"), past("7"));  // held at the last known value, or interpolated between equal ones
}

TEST(forecast, a_constant_series_stays_where_it_is) {
  SeriesTable table = table_of_text("t,y\n1,5\n2,5\n3,5\n4,5\n5,5\n6,5\n", {"y", {}, "t"});
  ForecastOptions options = options_of(2);
  options.backtest = 1;
  for (SeriesScale scale : {SeriesScale::standard, SeriesScale::minmax}) {
    options.scale = scale;
    ForecastResult result = forecast({test_model({.lags = 2, .mean = true})}, table, options);
    expect_close(result.series[0].future.mean, {5, 5});
    EXPECT_FALSE(result.scores.mase);
  }
}

TEST(forecast, models_that_read_no_windows_are_refused) {
  SeriesTable table = waves(30), wide = waves(30, 0, {"a"});
  auto refused = [&](TestModel::Kind kind, const SeriesTable& data, int64_t lags = 0) {
    ForecastOptions options = options_of(2);
    options.lags = lags;
    return message_of<InvalidArgument>([&] { forecast({test_model(kind)}, data, options); });
  };
  EXPECT_PRED2(contains, refused({}, table, 6), "model 'made' takes [any, 4, 1], windows of 4; got --lags 6");
  EXPECT_PRED2(contains, refused({}, wide), "so 1 columns; target and features are 2; hint: --features");
  EXPECT_PRED2(contains, refused({.lags = 5, .flat = true}, wide), "takes [any, 5], which is no whole number of rows of 2 columns");
  EXPECT_PRED2(contains, refused({.open = true}, table), "windows of any length; hint: --lags says how long they are");
  EXPECT_PRED2(contains, refused({.lags = 31}, table), "the series has 30 values and a window needs 31");
  ForecastOptions options = options_of(2);
  options.lags = 4;
  EXPECT_EQ(forecast({test_model({.open = true})}, table, options).series[0].future.mean.size(), 2u);
}

}  // namespace
}  // namespace tutti
