// tutti forecast
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "tutti/base/file.h"
#include "tutti/base/json.h"
#include "tutti/cli/console.h"
#include "tutti/cli/model_argument.h"
#include "tutti/cli/verbs.h"
#include "tutti/data/csv.h"
#include "tutti/data/format.h"
#include "tutti/run/forecast.h"
#include "tutti/run/plot.h"

namespace tutti::cli {

namespace {

struct ForecastSettings {
  std::string model, series, output, plot, target, features, time, id, scale = "standard", quantiles, plan = "stacked",
                                                                       device{default_device}, precision = "float32";
  std::vector<std::string> more_members;
  int64_t lags = 0, horizon = 0, stride = 0, backtest = 0, season = 0, batch = 256, threads = 0;
  bool members = false;
};

std::vector<double> quantiles_of(const std::string& list) {
  std::vector<double> out;
  for (const auto& part : parts_of(list, "--quantiles")) {
    auto value = parse_double(part);
    if (!value || !(*value >= 0 && *value <= 1))
      throw UsageError("usage", fmt::format("--quantiles are numbers from 0 to 1; got '{}'; hint: --quantiles 0.1,0.5,0.9", part));
    out.push_back(*value);
  }
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end())
    throw UsageError("usage", fmt::format("--quantiles holds a number twice; got '{}'", list));
  return out;
}

std::string count_of(int64_t count, std::string_view what) { return fmt::format("{} {}{}", grouped(count), what, count == 1 ? "" : "s"); }

std::string score_text(double value) { return fmt::format("{:.4g}", value); }
std::string score_text(const std::optional<double>& value) { return value ? score_text(*value) : "-"; }

Json score_json(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

class ForecastRun {
 public:
  ForecastRun(Console& console, ForecastSettings& settings) : console_(console), settings_(settings) {}

  void run() {
    check_usage();
    Stopwatch clock;
    std::vector<std::shared_ptr<const keras::AnyModel>> models{load_with_progress(console_, settings_.model)};
    for (const auto& path : settings_.more_members) models.push_back(load_with_progress(console_, path));
    if (format_of_input(settings_.series) != DataFormat::csv)
      fail<InvalidArgument>("input", "'{}' is no .csv; a series is read from a .csv with a header", settings_.series);
    const SeriesTable table =
        read_series(settings_.series, {settings_.target, parts_of(settings_.features, "--features"), settings_.time, settings_.id});
    for (const auto& warning : table.warnings) console_.warning(warning);
    const ForecastResult result = forecast(models, table, options_);
    for (const auto& warning : result.warnings) console_.warning(warning);
    if (result.members.size() == 1 && options_.quantiles.size() > 1 && !settings_.quantiles.empty())
      console_.warning("[forecast] one model gives no band, so every quantile equals its forecast; hint: an ensemble, or --member FILE");
    seconds_ = clock.seconds();
    write(table, result);
    console_.note(fmt::format("{} of {} steps in {:.3f} s on {}", count_of(static_cast<int64_t>(table.series.size()), "forecast"),
                              settings_.horizon, seconds_, settings_.device));
    console_.print(console_.json ? json(table, result) : text(table, result));
  }

 private:
  void check_usage() {
    if (settings_.target.empty()) throw UsageError("usage", "--target COLUMN is needed: what to forecast; hint: tutti forecast --help");
    if (settings_.horizon == 0) throw UsageError("usage", "--horizon N is needed: how many steps; hint: tutti forecast --help");
    if (settings_.stride > 0 && settings_.backtest == 0)
      throw UsageError("usage", "--stride is the distance of back-tests and needs --backtest N");
    if (!settings_.output.empty() && suffix_of(settings_.output) != ".csv")
      throw UsageError("usage", fmt::format("'{}': a forecast is written as .csv", settings_.output));
    keep_inputs(settings_.output, {settings_.series});
    const std::string suffix = suffix_of(settings_.plot);
    if (!settings_.plot.empty() && suffix != ".svg" && suffix != ".html")
      throw UsageError("usage", fmt::format("'{}': a plot is .svg or .html", settings_.plot));
    open_asked_device(console_, settings_.device);
    options_.lags = settings_.lags;
    options_.horizon = settings_.horizon;
    options_.backtest = settings_.backtest;
    options_.stride = settings_.stride;
    options_.season = settings_.season;
    options_.scale = series_scale_of(settings_.scale);
    if (!settings_.quantiles.empty()) options_.quantiles = quantiles_of(settings_.quantiles);
    options_.device = settings_.device;
    options_.threads = static_cast<int>(settings_.threads);
    options_.batch = settings_.batch;
    options_.arrangement = arrangement_of(settings_.plan);
    options_.precision = precision_of(settings_.precision);
  }

  // Both or none: they get their names when both are whole.
  void write(const SeriesTable& table, const ForecastResult& result) const {
    std::unique_ptr<OutputFile> csv, plot;
    if (!settings_.output.empty()) {
      csv = std::make_unique<OutputFile>(settings_.output);
      write_csv(*csv, table, result);
    }
    if (!settings_.plot.empty()) {
      plot = std::make_unique<OutputFile>(settings_.plot);
      plot->write(suffix_of(settings_.plot) == ".svg" ? plot_svg(table, result) : plot_page(table, result, facts(table, result)));
    }
    if (csv) csv->commit();
    if (plot) plot->commit();
  }

  void write_csv(OutputFile& file, const SeriesTable& table, const ForecastResult& result) const {
    std::string line = settings_.id.empty() ? "time" : "id,time";
    for (double q : result.options.quantiles) line += fmt::format(",quantile_{}", q);
    line += ",mean";
    for (size_t i = 0; settings_.members && i < result.members.size(); ++i) line += fmt::format(",member_{}", i + 1);
    file.write(line + "\n");
    for (size_t i = 0; i < table.series.size(); ++i) {
      const Series& series = table.series[i];
      const Forecast& future = result.series[i].future;
      for (size_t step = 0; step < future.mean.size(); ++step) {
        line = settings_.id.empty() ? "" : csv_field(series.id) + ",";
        line += csv_field(table.time(series, series.length() + static_cast<int64_t>(step)));
        // The scaled forecast is a float32; what it is scaled back to may be much larger than the deviation.
        auto add = [&](double value) {
          line += std::isnan(value) ? ",nan" : std::abs(value) < 1e6 ? fmt::format(",{:.9g}", value) : fmt::format(",{:.15g}", value);
        };
        for (const auto& quantile : future.quantiles) add(quantile[step]);
        add(future.mean[step]);
        for (size_t m = 0; settings_.members && m < future.members.size(); ++m) add(future.members[m][step]);
        file.write(line + "\n");
      }
    }
  }

  // What was done, as names and values.
  std::vector<std::pair<std::string, std::string>> facts(const SeriesTable& table, const ForecastResult& result) const {
    const Series& first = table.series[0];
    const auto& options = result.options;
    std::vector<std::pair<std::string, std::string>> out;
    out.emplace_back("series",
                     table.series.size() == 1
                         ? fmt::format("{}: '{}', {}, {} from {} to {}", settings_.series, settings_.target, table.axis.frequency(),
                                       count_of(first.length(), "value"), table.time(first, 0), table.time(first, first.length() - 1))
                         : fmt::format("{}: '{}', {}, {}", settings_.series, settings_.target, table.axis.frequency(),
                                       fmt::format("{} series", grouped(static_cast<int64_t>(table.series.size())))));
    if (!settings_.features.empty()) out.emplace_back("features", settings_.features);
    const int64_t steps = std::min_element(result.members.begin(), result.members.end(), [](const auto& a, const auto& b) {
                            return a.steps < b.steps;
                          })->steps;
    out.emplace_back(result.members.size() == 1 ? "model" : "models",
                     fmt::format("{}{}{}, windows of {}, {}", settings_.model,
                                 settings_.more_members.empty() ? "" : fmt::format(" and {} more", settings_.more_members.size()),
                                 result.members.size() == 1 ? "" : fmt::format(": {} members", result.members.size()), options.lags,
                                 steps >= options.horizon ? "all steps at once"
                                 : steps == 1             ? "rolled forward step by step"
                                                          : fmt::format("rolled forward {} steps at a time", steps)));
    out.emplace_back("forecast", fmt::format("{}, {} scale{}", count_of(options.horizon, "step"), settings_.scale,
                                             settings_.scale == "none" ? "" : " of the history"));
    if (options.backtest > 0)
      out.emplace_back("back-test", fmt::format("{}, {} apart, {} compared", count_of(options.backtest, "origin"), options.stride,
                                                count_of(result.scores.points, "value")));
    return out;
  }

  std::string text(const SeriesTable& table, const ForecastResult& result) const {
    std::string out;
    std::vector<std::vector<std::string>> rows;
    for (const auto& [name, value] : facts(table, result)) rows.push_back({name, escape(value, 400)});
    out += format_table(rows, {false, false});
    if (result.scores.points > 0) out += "\n" + score_table(result);
    if (settings_.output.empty()) out += "\n" + forecast_table(table, result);
    return out;
  }

  static std::string score_table(const ForecastResult& result) {
    std::vector<std::vector<std::string>> rows{{"BACK-TEST", "MAE", "RMSE", "MASE"}};
    for (double q : result.options.quantiles) rows[0].push_back(fmt::format("PINBALL {}", q));
    rows[0].emplace_back("IN BAND");
    auto add = [&](const std::string& name, const ForecastScores& scores) {
      auto& row =
          rows.emplace_back(std::vector<std::string>{name, score_text(scores.mae), score_text(scores.rmse), score_text(scores.mase)});
      for (double loss : scores.pinball) row.push_back(score_text(loss));
      row.push_back(scores.coverage ? fmt::format("{:.0f} %", *scores.coverage * 100) : "-");
    };
    add("forecast", result.scores);
    add(fmt::format("seasonal-naive ({})", result.options.season), result.naive);
    std::vector<bool> right(rows[0].size(), true);
    right[0] = false;
    return format_table(rows, right);
  }

  // The first steps; -o writes all.
  std::string forecast_table(const SeriesTable& table, const ForecastResult& result) const {
    constexpr size_t shown = 24;
    std::vector<std::vector<std::string>> rows(1);
    if (!settings_.id.empty()) rows[0].emplace_back("ID");
    rows[0].emplace_back("TIME");
    for (double q : result.options.quantiles) rows[0].push_back(fmt::format("QUANTILE {}", q));
    rows[0].emplace_back("MEAN");
    for (size_t i = 0; i < table.series.size(); ++i)
      for (size_t step = 0; step < result.series[i].future.mean.size() && rows.size() <= shown; ++step) {
        auto& row = rows.emplace_back();
        if (!settings_.id.empty()) row.push_back(escape(table.series[i].id, 40));
        row.push_back(table.time(table.series[i], table.series[i].length() + static_cast<int64_t>(step)));
        for (const auto& quantile : result.series[i].future.quantiles) row.push_back(fmt::format("{:.6g}", quantile[step]));
        row.push_back(fmt::format("{:.6g}", result.series[i].future.mean[step]));
      }
    std::vector<bool> right(rows[0].size(), true);
    right[0] = false;
    right[1] = settings_.id.empty();
    std::string out = format_table(rows, right);
    const auto all = static_cast<int64_t>(table.series.size()) * result.options.horizon;
    if (all > static_cast<int64_t>(shown))
      out += fmt::format("and {} more rows; -o OUT.csv writes them all\n", grouped(all - static_cast<int64_t>(shown)));
    return out;
  }

  static Json scores_json(const ForecastScores& scores, const std::vector<double>& quantiles) {
    if (scores.points == 0) return {};
    Json pinball = Json::object();
    for (size_t i = 0; i < quantiles.size(); ++i) pinball.set(fmt::format("{}", quantiles[i]), scores.pinball[i]);
    return JsonMembers{{"points", scores.points},         {"mae", scores.mae},  {"rmse", scores.rmse},
                       {"mase", score_json(scores.mase)}, {"pinball", pinball}, {"coverage", score_json(scores.coverage)}};
  }

  Json forecast_json(const SeriesTable& table, const Series& series, const Forecast& forecast, const std::vector<double>& quantiles) const {
    auto list = [](const std::vector<double>& values) {
      Json out = Json::list();
      for (double value : values) out.push(value);
      return out;
    };
    Json times = Json::list(), bands = Json::object(), members = Json::list();
    for (size_t step = 0; step < forecast.mean.size(); ++step) times.push(table.time(series, forecast.origin + static_cast<int64_t>(step)));
    for (size_t i = 0; i < quantiles.size(); ++i) bands.set(fmt::format("{}", quantiles[i]), list(forecast.quantiles[i]));
    for (const auto& member : forecast.members) members.push(list(member));
    Json out = JsonMembers{{"time", times}, {"mean", list(forecast.mean)}, {"quantiles", bands}};
    if (settings_.members) out.set("members", members);
    return out;
  }

  std::string json(const SeriesTable& table, const ForecastResult& result) const {
    const auto& options = result.options;
    Json out = Json::object(), quantiles = Json::list(), members = Json::list(), all = Json::list(), warnings = Json::list();
    for (double q : options.quantiles) quantiles.push(q);
    for (const auto& member : result.members)
      members.push(JsonMembers{{"name", member.name}, {"lags", member.lags}, {"steps", member.steps}});
    for (const auto* list : {&table.warnings, &result.warnings})
      for (const auto& warning : *list) warnings.push(warning);
    for (size_t i = 0; i < table.series.size(); ++i) {
      const Series& series = table.series[i];
      const SeriesForecast& found = result.series[i];
      Json one = JsonMembers{{"id", settings_.id.empty() ? Json() : Json(series.id)},
                             {"values", series.length()},
                             {"filled", std::count(series.made_up.begin(), series.made_up.end(), true)},
                             {"first", table.time(series, 0)},
                             {"last", table.time(series, series.length() - 1)},
                             {"forecast", forecast_json(table, series, found.future, options.quantiles)}};
      if (options.backtest > 0) {
        Json backtest = Json::list();
        for (const auto& past : found.backtest) backtest.push(forecast_json(table, series, past, options.quantiles));
        one.set("backtest", backtest);
        one.set("scores", scores_json(found.scores, options.quantiles));
        one.set("seasonal_naive", scores_json(found.naive, options.quantiles));
      }
      all.push(one);
    }
    out.set("model", settings_.model);
    out.set("input", settings_.series);
    out.set("output", settings_.output.empty() ? Json() : Json(settings_.output));
    out.set("plot", settings_.plot.empty() ? Json() : Json(settings_.plot));
    out.set("target", settings_.target);
    out.set("time", table.columns.time);
    out.set("frequency", table.axis.frequency());
    out.set("season", options.season);
    out.set("lags", options.lags);
    out.set("horizon", options.horizon);
    out.set("scale", settings_.scale);
    out.set("quantiles", quantiles);
    out.set("members", members);
    out.set("backtest", JsonMembers{{"origins", options.backtest}, {"stride", options.stride}});
    out.set("scores", scores_json(result.scores, options.quantiles));
    out.set("seasonal_naive", scores_json(result.naive, options.quantiles));
    out.set("series", all);
    out.set("warnings", warnings);
    out.set("device", settings_.device);
    out.set("kernels", result.stats.kernels);
    out.set("seconds", seconds_);
    return out.dump() + "\n";
  }

  Console& console_;
  ForecastSettings& settings_;
  ForecastOptions options_;
  double seconds_ = 0;
};

}  // namespace

Action forecast(Options& options) {
  auto settings = std::make_shared<ForecastSettings>();
  options.argument(settings->model, "MODEL",
                   "A model that reads windows, [batch, lags, columns] or flat, and predicts the target's next steps");
  options.argument(settings->series, "SERIES", "A .csv with a header: a time column, the target, features");
  options.option(settings->output, "-o,--output", "OUT.csv", "Where to: time, quantiles, mean; else a table");
  options.option(settings->target, "--target", "COLUMN", "What to forecast; needed");
  options.option(settings->horizon, "--horizon", "How many steps; needed", 1, 1'000'000);
  options.option(settings->lags, "--lags", "Rows of a window; default the model's own", 1, 1'000'000);
  options.option(settings->features, "--features", "A,B", "Further columns of a window, after the target, in this order");
  options.option(settings->time, "--time", "COLUMN", "The time; default a column with such a name, or the first that holds dates");
  options.option(settings->id, "--id", "COLUMN", "Says to which series a row belongs; default all to one");
  options.options(settings->more_members, "--member", "FILE", "One more model, for the mean and the band; any number of times");
  options.choice(settings->scale, "--scale", {"standard", "minmax", "none"}, "How each column is scaled, by its history; default standard");
  options.option(settings->quantiles, "--quantiles", "Q,Q", "Of the members' forecasts, from 0 to 1; default 0.1,0.5,0.9");
  options.flag(settings->members, "--members", "Also each member's forecast in OUT.csv");
  options.option(settings->backtest, "--backtest", "Forecasts from so many earlier origins as well, and scores them", 1, 100'000);
  options.option(settings->stride, "--stride", "Steps from one of these origins to the next; default the horizon", 1, 1'000'000);
  options.option(settings->season, "--season",
                 "Steps of the seasonal-naive forecast to compare with; default 12 for months, 4 for quarters, 7 for days, 5 for weekdays, "
                 "24 for hours, else 1",
                 1, 1'000'000);
  options.option(settings->plot, "--plot", "OUT.svg|OUT.html", "Draws history, forecast, band, members and back-tests");
  options.option(settings->batch, "--batch", "Windows computed together; default 256", 1, 1 << 24);
  add_device_option(options, settings->device);
  add_precision_option(options, settings->precision);
  options.option(settings->threads, "--threads", "Threads of the device; default TUTTI_THREADS, or the cores", 1, 1024);
  add_plan_option(options, settings->plan);
  options.footer(
      "Missing rows and values are interpolated, times are put on a regular grid. While a model is rolled forward, a feature has the "
      "values of\n"
      "rows after the last known target; where there are none, its last value is held.\n"
      "Example: tutti forecast model.keras passengers.csv --target passengers --horizon 12 -o next.csv --plot next.html");
  return [settings](Console& console) { ForecastRun(console, *settings).run(); };
}

}  // namespace tutti::cli
