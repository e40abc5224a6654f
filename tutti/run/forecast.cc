#include "tutti/run/forecast.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/base/saturate.h"
#include "tutti/run/ensemble.h"
#include "tutti/run/predictor.h"

namespace tutti {

namespace {

// One sample of the program: a series seen from an origin.
struct SeriesWindow {
  const Series* series;
  Forecast* result;
  ColumnScale target = {};
};

// Values before `end`, as they were known then: what is made up towards a later value is the last known one.
std::vector<double> known_before(const std::vector<double>& values, const std::vector<bool>& made_up, size_t end) {
  std::vector<double> out(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(end));
  size_t known = end;
  while (known > 0 && made_up[known - 1]) --known;
  if (known > 0) std::fill(out.begin() + static_cast<std::ptrdiff_t>(known), out.end(), out[known - 1]);
  return out;
}

class Forecasting {
 public:
  Forecasting(const std::vector<std::shared_ptr<const keras::AnyModel>>& models, const SeriesTable& table, const ForecastOptions& options)
      : table_(table) {
    out_.options = options;
    if (models.empty()) fail<InvalidArgument>("forecast", "at least one model is needed");
    const auto columns = static_cast<int64_t>(table.columns.features.size()) + 1;
    for (const auto& model : models) add_members(model, options.lags, columns);
    for (const auto& member : out_.members) {
      out_.options.lags = std::max(out_.options.lags, member.lags);
      rolls_ = rolls_ || member.steps < options.horizon;
    }
    shape_ = {1, out_.options.lags, columns, options.horizon, options.quantiles, out_.options.ignore_nan};
    if (options.stride == 0) out_.options.stride = options.horizon;
    if (options.season == 0) out_.options.season = table.axis.season();
    device_ = open_device(options.device);
  }

  ForecastResult run() {
    plan();
    for (size_t begin = 0; begin < windows_.size(); begin += static_cast<size_t>(options_.batch))
      compute(std::span(windows_).subspan(begin, std::min(windows_.size() - begin, static_cast<size_t>(options_.batch))));
    score();
    warn();
    return std::move(out_);
  }

 private:
  // An ensemble's weights say how its members share what they would weigh together.
  void add_members(const std::shared_ptr<const keras::AnyModel>& model, int64_t lags, int64_t columns) {
    const auto* ensemble = dynamic_cast<const Ensemble*>(model.get());
    if (ensemble == nullptr) {
      out_.members.push_back(window_model(model->name(), model, lags, columns));
      return;
    }
    const auto& weights = ensemble->options().weights;
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    out_.options.ignore_nan = out_.options.ignore_nan || ensemble->options().ignore_nan;
    for (size_t i = 0; i < ensemble->members().size(); ++i) {
      const auto& member = ensemble->members()[i];
      out_.members.push_back(window_model(member.name, member.model, lags, columns));
      if (!weights.empty()) out_.members.back().weight = weights[i] / sum * static_cast<double>(weights.size());
    }
  }

  // Every forecast is held until the end.
  void check_size() const {
    const auto lists = static_cast<int64_t>(out_.members.size() + options_.quantiles.size()) + 1;
    const int64_t forecasts = saturating_multiply(static_cast<int64_t>(table_.series.size()), options_.backtest + 1);
    const int64_t values = saturating_multiply(saturating_multiply(forecasts, lists), options_.horizon);
    constexpr int64_t most = int64_t{1} << 28;
    if (values > most)
      fail<OutOfMemory>("forecast", "{} series from {} origins with {} values a step, {} steps each, are {} values; at most {} are held",
                        table_.series.size(), options_.backtest + 1, lists, options_.horizon, values, most);
  }

  // The values before a feature's first known one are the first, which an earlier origin does not know.
  void check_features(const Series& series, const std::string& name, int64_t origin) const {
    for (size_t feature = 0; feature < series.features.size(); ++feature) {
      const auto& made_up = series.made_up_features[feature];
      const auto first = std::find(made_up.begin(), made_up.end(), false) - made_up.begin();
      const int64_t ahead = std::ssize(made_up) - series.length();
      if (first >= origin + ahead)
        fail<InvalidArgument>("forecast",
                              "{}: feature '{}' has its first value at {}, and the first back-test knows the values before {}; hint: a "
                              "smaller --backtest",
                              name, escape(table_.columns.features[feature], 40), escape(table_.time(series, first), 40),
                              escape(table_.time(series, origin + ahead), 40));
    }
  }

  void plan() {
    check_size();
    out_.series.resize(table_.series.size());
    const int64_t before = options_.backtest == 0 ? 0 : options_.horizon + (options_.backtest - 1) * options_.stride;
    for (size_t i = 0; i < table_.series.size(); ++i) {
      const Series& series = table_.series[i];
      const std::string name = series.id.empty() ? "the series" : fmt::format("series '{}'", escape(series.id, 40));
      if (series.length() < options_.lags)
        fail<InvalidArgument>("forecast", "{} has {} values and a window needs {}; hint: a model with fewer lags", name, series.length(),
                              options_.lags);
      if (series.length() - before < options_.lags)
        fail<InvalidArgument>(
            "forecast", "{} has {} values; {} back-tests, {} apart, of {} steps after windows of {} need {}; hint: a smaller --backtest",
            name, series.length(), options_.backtest, options_.stride, options_.horizon, options_.lags, before + options_.lags);
      SeriesForecast& result = out_.series[i];
      result.future.origin = series.length();
      result.backtest.resize(static_cast<size_t>(options_.backtest));
      for (size_t k = 0; k < result.backtest.size(); ++k)
        result.backtest[k].origin = series.length() - before + static_cast<int64_t>(k) * options_.stride;
      if (!result.backtest.empty()) check_features(series, name, result.backtest[0].origin);
    }
    for (size_t i = 0; i < out_.series.size(); ++i) {
      for (Forecast& past : out_.series[i].backtest) windows_.push_back({&table_.series[i], &past});
      windows_.push_back({&table_.series[i], &out_.series[i].future});
    }
  }

  void compute(std::span<SeriesWindow> windows) {
    const auto batch = static_cast<int64_t>(windows.size());
    if (predictor_ == nullptr || shape_.batch != batch) {
      shape_.batch = batch;
      CompileSettings settings{options_.threads, cache_, nullptr, options_.precision};
      std::vector<keras::LayerTrace> trace;
      Graph graph = forecast_graph(out_.members, shape_, &trace);
      graph = arrange(std::move(graph), trace, device_, {options_.arrangement, options_.threads, options_.precision});
      auto program = device_->compile(graph, settings);
      cache_ = settings.cache;
      if (predictor_ == nullptr) out_.stats = program->stats();
      predictor_ = std::make_unique<Predictor>(device_, std::move(program));
    }
    std::vector<Tensor> inputs, outputs;
    for (const Type& type : predictor_->input_types()) inputs.emplace_back(type);
    for (const Type& type : predictor_->output_types()) outputs.emplace_back(type);
    for (size_t i = 0; i < windows.size(); ++i) fill(windows[i], i, inputs);
    std::vector<std::span<const std::byte>> from;
    std::vector<std::span<std::byte>> to;
    for (const Tensor& tensor : inputs) from.push_back(tensor.bytes());
    for (Tensor& tensor : outputs) to.push_back(tensor.bytes());
    predictor_->run(from, to);
    for (size_t i = 0; i < windows.size(); ++i) take(windows[i], i, outputs);
  }

  // inputs: windows [batch, lags, columns], and the future [batch, horizon, features] if it is asked for.
  void fill(SeriesWindow& window, size_t sample, std::vector<Tensor>& inputs) const {
    const Series& series = *window.series;
    const auto origin = static_cast<size_t>(window.result->origin), lags = static_cast<size_t>(shape_.lags);
    const auto columns = static_cast<size_t>(shape_.columns), horizon = static_cast<size_t>(shape_.horizon);
    auto rows = inputs[0].as<float>().subspan(sample * lags * columns, lags * columns);
    for (size_t column = 0; column < columns; ++column) {
      // Of a feature, as many future values are seen as the real forecast has.
      const auto& all = column == 0 ? series.target : series.features[column - 1];
      const size_t ahead = all.size() - series.target.size();
      const auto values = known_before(all, column == 0 ? series.made_up : series.made_up_features[column - 1], origin + ahead);
      const ColumnScale scale = fit_scale(std::span(values).first(origin), options_.scale);
      if (column == 0) window.target = scale;
      for (size_t lag = 0; lag < lags; ++lag) rows[lag * columns + column] = scale.forward(values[origin - lags + lag]);
      if (column == 0 || inputs.size() < 2) continue;
      auto future = inputs[1].as<float>().subspan(sample * horizon * (columns - 1), horizon * (columns - 1));
      const size_t known = std::min(ahead, horizon);
      for (size_t step = 0; step < horizon; ++step)
        future[step * (columns - 1) + column - 1] = scale.forward(values[origin + std::min(step + 1, known) - 1]);
    }
  }

  // outputs: members [member, batch, horizon], mean [batch, horizon], quantiles [quantile, batch, horizon].
  void take(const SeriesWindow& window, size_t sample, const std::vector<Tensor>& outputs) const {
    const auto horizon = static_cast<size_t>(shape_.horizon), batch = static_cast<size_t>(shape_.batch);
    auto values = [&](size_t output, size_t first) {
      std::vector<double> out;
      for (float value : outputs[output].as<float>().subspan((first * batch + sample) * horizon, horizon))
        out.push_back(window.target.back(value));
      return out;
    };
    for (size_t i = 0; i < out_.members.size(); ++i) window.result->members.push_back(values(0, i));
    window.result->mean = values(1, 0);
    for (size_t i = 0; i < options_.quantiles.size(); ++i) window.result->quantiles.push_back(values(2, i));
  }

  void score() {
    const bool has_band = out_.members.size() > 1;
    ScoreSum all(options_.quantiles, has_band), all_naive(options_.quantiles, false);
    for (size_t i = 0; i < out_.series.size(); ++i) {
      const Series& series = table_.series[i];
      ScoreSum one(options_.quantiles, has_band), one_naive(options_.quantiles, false);
      for (const Forecast& past : out_.series[i].backtest) {
        const std::vector<double> history = known_before(series.target, series.made_up, static_cast<size_t>(past.origin));
        const auto scale = seasonal_naive_error(history, options_.season);
        for (size_t step = 0; step < past.mean.size(); ++step) {
          const size_t at = history.size() + step;
          if (series.made_up[at]) continue;
          std::vector<double> quantiles;
          for (const auto& quantile : past.quantiles) quantiles.push_back(quantile[step]);
          const double naive = seasonal_naive(history, options_.season, static_cast<int64_t>(step));
          const std::vector<double> naives(quantiles.size(), naive);
          for (ScoreSum* sum : {&one, &all}) sum->add(series.target[at], past.mean[step], quantiles, scale);
          for (ScoreSum* sum : {&one_naive, &all_naive}) sum->add(series.target[at], naive, naives, scale);
        }
      }
      out_.series[i].scores = one.scores();
      out_.series[i].naive = one_naive.scores();
    }
    out_.scores = all.scores();
    out_.naive = all_naive.scores();
  }

  void warn() {
    for (size_t feature = 0; rolls_ && feature < table_.columns.features.size(); ++feature) {
      int64_t held = 0;
      for (const Series& series : table_.series)
        if (static_cast<int64_t>(series.features[feature].size()) < series.length() + shape_.horizon - 1) ++held;
      if (held > 0)
        out_.warnings.push_back(
            fmt::format("[forecast] feature '{}' is not known to the end of the horizon in {} of {} series; its last value is held",
                        escape(table_.columns.features[feature], 40), held, table_.series.size()));
    }
    std::vector<int64_t> broken(out_.members.size(), 0);
    for (const auto& series : out_.series)
      for (size_t i = 0; i < broken.size(); ++i)
        for (double value : series.future.members[i]) broken[i] += std::isfinite(value) ? 0 : 1;
    for (size_t i = 0; i < broken.size(); ++i)
      if (broken[i] > 0)
        out_.warnings.push_back(fmt::format("[forecast] model {} ('{}') predicts {} values that are not finite", i + 1,
                                            escape(out_.members[i].name, 60), broken[i]));
  }

  const SeriesTable& table_;
  ForecastResult out_;
  const ForecastOptions& options_ = out_.options;
  ForecastShape shape_;
  bool rolls_ = false;
  std::shared_ptr<Device> device_;
  std::shared_ptr<CompileCache> cache_;
  std::unique_ptr<Predictor> predictor_;
  std::vector<SeriesWindow> windows_;
};

}  // namespace

ForecastResult forecast(const std::vector<std::shared_ptr<const keras::AnyModel>>& models, const SeriesTable& table,
                        const ForecastOptions& options) {
  return Forecasting(models, table, options).run();
}

}  // namespace tutti
