#include "tutti/run/plot.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "tutti/base/error.h"
#include "tutti/run/plot_axis.h"

namespace tutti {

namespace {

constexpr double plot_width = 960, plot_heading = 92;
constexpr int64_t most_drawn_steps = 20'000;

// Literal colours, in rules of their own: viewers that know neither variables nor media queries still show the light picture.
constexpr const char* plot_style = R"(
.tutti-plot { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
.tutti-plot .paper { fill: #ffffff; }
.tutti-plot text { fill: #52606d; font-size: 12px; }
.tutti-plot .title { fill: #102a43; font-size: 20px; font-weight: 600; }
.tutti-plot .name { fill: #102a43; font-size: 14px; font-weight: 600; }
.tutti-plot .facts { font-size: 13px; }
.tutti-plot .grid { stroke: #e4e9ee; stroke-width: 1; }
.tutti-plot .base { stroke: #9fb3c8; stroke-width: 1; }
.tutti-plot .now { stroke: #9fb3c8; stroke-width: 1; stroke-dasharray: 3 3; }
.tutti-plot path, .tutti-plot polyline { stroke-linejoin: round; stroke-linecap: round; }
.tutti-plot .history { fill: none; stroke: #334e68; stroke-width: 1.6; }
.tutti-plot .mean { fill: none; stroke: #0b69c7; stroke-width: 2.4; }
.tutti-plot .join { fill: none; stroke: #0b69c7; stroke-width: 1.2; stroke-dasharray: 2 3; }
.tutti-plot .dot { fill: #0b69c7; }
.tutti-plot .band { fill: #3f97ea; fill-opacity: 0.22; stroke: none; }
.tutti-plot .member { fill: none; stroke: #3f97ea; stroke-width: 0.9; stroke-opacity: 0.6; }
.tutti-plot .past { fill: none; stroke: #c2570c; stroke-width: 1.6; }
.tutti-plot .past-band { fill: #f0883e; fill-opacity: 0.20; stroke: none; }
.tutti-plot .hair { stroke: #829ab1; stroke-width: 1; }
@media (prefers-color-scheme: dark) {
.tutti-plot .paper { fill: #0f1620; }
.tutti-plot text { fill: #9fb3c8; }
.tutti-plot .title, .tutti-plot .name { fill: #f0f4f8; }
.tutti-plot .grid { stroke: #223040; }
.tutti-plot .base, .tutti-plot .now { stroke: #52667a; }
.tutti-plot .history { stroke: #c6d4e1; }
.tutti-plot .mean, .tutti-plot .join { stroke: #5cb0ff; }
.tutti-plot .dot { fill: #5cb0ff; }
.tutti-plot .band { fill: #3f97ea; fill-opacity: 0.28; }
.tutti-plot .member { stroke: #6fb8ff; stroke-opacity: 0.55; }
.tutti-plot .past { stroke: #ffa45c; }
.tutti-plot .past-band { fill: #f0883e; fill-opacity: 0.22; }
.tutti-plot .hair { stroke: #829ab1; }
}
)";

size_t plotted(const SeriesTable& table) { return std::min(table.series.size(), most_plotted_series); }

double plot_height(size_t count) {
  const PlotPlace last = plot_place(count - 1, count);
  return last.top + last.height + 40;
}

// One series: where its steps and values stand, and its lines.
class Panel {
 public:
  Panel(const SeriesTable& table, const ForecastResult& result, size_t index, size_t count)
      : table_(table),
        series_(table.series[index]),
        forecast_(result.series[index]),
        place_(plot_place(index, count)),
        range_(plot_range(series_, result)),
        small_(count > 1),
        has_band_(result.members.size() > 1 && result.options.quantiles.size() > 1) {
    std::vector<double> values(series_.target.begin() + range_.begin, series_.target.end());
    auto add = [&](const Forecast& forecast) {
      values.insert(values.end(), forecast.mean.begin(), forecast.mean.end());
      for (const auto& quantile : forecast.quantiles) values.insert(values.end(), quantile.begin(), quantile.end());
    };
    add(forecast_.future);
    for (const auto& past : forecast_.backtest)
      if (past.origin > range_.begin) add(past);
    axis_ = value_axis(values, small_ ? 5 : 6);
  }

  std::string draw() const {
    std::string out =
        fmt::format("<g class=\"panel\" data-left=\"{:.1f}\" data-top=\"{:.1f}\" data-width=\"{:.1f}\" data-height=\"{:.1f}\">\n",
                    place_.left, place_.top, place_.width, place_.height);
    if (small_) out += text("name", place_.left, place_.top - 12, "start", markup_text(series_.id, 48));
    if (!axis_.base.empty()) out += text("", place_.left + place_.width, place_.top - 6, "end", "counted from " + axis_.base);
    for (const Tick& tick : axis_.ticks) {
      out += fmt::format("<line class=\"{}\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n", tick.at == 0 ? "base" : "grid",
                         place_.left, place_.left + place_.width, y(tick.at), y(tick.at));
      out += text("", place_.left - 8, y(tick.at) + 4, "end", tick.label);
    }
    out += fmt::format("<line class=\"base\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>\n", place_.left,
                       place_.left + place_.width, place_.top + place_.height);
    for (const Tick& tick : time_ticks(table_, series_, range_.begin, range_.end, small_ ? 6 : 10)) {
      const double at = x(static_cast<int64_t>(tick.at)), below = place_.top + place_.height;
      out += fmt::format("<line class=\"base\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>\n", at, below, below + 5);
      out += text("", at, below + 20, at > place_.left + place_.width - 24 ? "end" : "middle", tick.label);
    }
    const int64_t now = series_.length() - 1;
    out += fmt::format("<line class=\"now\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>\n", x(now), place_.top,
                       place_.top + place_.height);
    const auto members = std::min<size_t>(forecast_.future.members.size(), 100);
    if (has_band_) out += band("band", forecast_.future);
    for (const auto& past : forecast_.backtest)
      if (has_band_ && past.origin >= range_.begin) out += band("past-band", past);
    if (members > 1) {
      // The axis is not theirs: one that runs away would make all else flat. It is cut off where the panel ends.
      out += fmt::format(
          "<svg x=\"{0:.1f}\" y=\"{1:.1f}\" width=\"{2:.1f}\" height=\"{3:.1f}\" viewBox=\"{0:.1f} {1:.1f} {2:.1f} {3:.1f}\">\n",
          place_.left, place_.top, place_.width, place_.height);
      for (size_t i = 0; i < members; ++i) out += line("member", forecast_.future.origin, forecast_.future.members[i]);
      out += "</svg>\n";
    }
    out += line("history", range_.begin, std::span(series_.target).subspan(static_cast<size_t>(range_.begin)));
    for (const auto& past : forecast_.backtest)
      if (past.origin >= range_.begin) out += line("past", past.origin, past.mean);
    const auto& mean = forecast_.future.mean;
    out += line("join", now, std::vector{series_.target.back(), mean.front()});
    out += line("mean", series_.length(), mean);
    for (size_t i = 0; mean.size() <= 36 && i < mean.size(); ++i)
      if (std::isfinite(mean[i]))
        out += fmt::format("<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"/>\n", x(series_.length() + static_cast<int64_t>(i)),
                           y(mean[i]), small_ ? 1.6 : 2.6);
    return out + "</g>\n";
  }

  static std::string text(std::string_view style, double x, double y, std::string_view anchor, std::string_view content) {
    return fmt::format("<text{} x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
                       style.empty() ? "" : fmt::format(" class=\"{}\"", style), x, y, anchor, content);
  }

 private:
  double x(int64_t step) const {
    const auto steps = static_cast<double>(std::max<int64_t>(range_.end - 1 - range_.begin, 1));
    return place_.left + static_cast<double>(step - range_.begin) * place_.width / steps;
  }
  double y(double value) const { return place_.top + place_.height - (value - axis_.low) / (axis_.high - axis_.low) * place_.height; }

  // Moves to each finite point, lines between neighbours. Where many steps share a pixel, each pixel
  // gives its least and its largest value.
  std::string line(std::string_view style, int64_t first, std::span<const double> values) const {
    std::string path;
    bool down = false;
    auto point = [&](size_t i) {
      if (!std::isfinite(values[i])) {
        down = false;
        return;
      }
      path += fmt::format("{}{:.1f} {:.1f}", down ? "L" : "M", x(first + static_cast<int64_t>(i)), y(values[i]));
      down = true;
    };
    const size_t together = std::max<size_t>(1, values.size() / static_cast<size_t>(place_.width));
    for (size_t begin = 0; begin < values.size(); begin += together) {
      const size_t end = std::min(begin + together, values.size());
      if (together <= 2) {
        for (size_t i = begin; i < end; ++i) point(i);
        continue;
      }
      const auto [least, most] =
          std::minmax_element(values.begin() + static_cast<std::ptrdiff_t>(begin), values.begin() + static_cast<std::ptrdiff_t>(end));
      auto low = static_cast<size_t>(least - values.begin()), high = static_cast<size_t>(most - values.begin());
      point(std::min(low, high));
      point(std::max(low, high));
    }
    if (path.find('L') == path.npos && !path.empty()) path += "h0.01";  // one step is a dot
    return fmt::format("<path class=\"{}\" d=\"{}\"/>\n", style, path);
  }

  // Between the lowest and the highest quantile.
  std::string band(std::string_view style, const Forecast& forecast) const {
    const auto &low = forecast.quantiles.front(), &high = forecast.quantiles.back();
    const size_t every = std::max<size_t>(1, low.size() / 2000);
    std::string there, back;
    for (size_t i = 0; i < low.size(); i += every) {
      if (!std::isfinite(low[i]) || !std::isfinite(high[i])) continue;
      const double at = x(forecast.origin + static_cast<int64_t>(i)), half = low.size() == 1 ? 3 : 0;  // one step is a bar
      there += fmt::format("{}{:.1f} {:.1f}", there.empty() ? "M" : "L", at - half, y(high[i]));
      if (half > 0) there += fmt::format("h{:.1f}", 2 * half);
      back.insert(0, fmt::format("L{:.1f} {:.1f}", at + half, y(low[i])));
      if (half > 0) back += fmt::format("h{:.1f}", -2 * half);
    }
    return there.empty() ? "" : fmt::format("<path class=\"{}\" d=\"{}{}Z\"/>\n", style, there, back);
  }

  const SeriesTable& table_;
  const Series& series_;
  const SeriesForecast& forecast_;
  PlotPlace place_;
  PlotRange range_;
  bool small_, has_band_;
  ValueAxis axis_;
};

// Short marks with their names, in one row.
std::string legend(const ForecastResult& result) {
  struct Entry {
    std::string_view style;
    std::string name;
    bool filled;
  };
  std::vector<Entry> entries{{"history", "history", false}, {"mean", "forecast", false}};
  const auto& quantiles = result.options.quantiles;
  if (result.members.size() > 1) {
    if (quantiles.size() > 1)
      entries.push_back({"band", fmt::format("{:g} to {:g} %", quantiles.front() * 100, quantiles.back() * 100), true});
    entries.push_back({"member", fmt::format("{} members", result.members.size()), false});
    entries[1].name = "mean forecast";
  }
  if (result.options.backtest > 0) entries.push_back({"past", "back-test", false});
  std::string out = "<g class=\"legend\">\n";
  double x = 24;
  for (const auto& [style, name, filled] : entries) {
    out += filled ? fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"64\" width=\"22\" height=\"10\" rx=\"2\"/>\n", style, x)
                  : fmt::format("<path class=\"{}\" d=\"M{:.1f} 69h22\"/>\n", style, x);
    out += Panel::text("", x + 29, 73, "start", name);
    x += 29 + 6.2 * static_cast<double>(name.size()) + 26;
  }
  return out + "</g>\n";
}

std::string plot_title(const SeriesTable& table) { return markup_text(table.columns.target, 60); }

// One line: what is forecast, and how good it was where that is known.
std::string plot_facts(const SeriesTable& table, const ForecastResult& result) {
  const Series& first = table.series[0];
  std::string out = table.axis.frequency();
  if (table.series.size() == 1)
    out += fmt::format(", known to {}, forecast to {}", table.time(first, first.length() - 1),
                       table.time(first, first.length() - 1 + result.options.horizon));
  else
    out += fmt::format(", {} series, {} steps ahead", table.series.size(), result.options.horizon);
  if (table.series.size() > most_plotted_series) out += fmt::format("; the first {} are drawn", most_plotted_series);
  const auto score = [](double value) { return value < 1000 ? fmt::format("{:.2f}", value) : fmt::format("{:.3g}", value); };
  if (result.scores.mase && result.naive.mase)
    out += fmt::format("; back-test MASE {}, seasonal-naive {}", score(*result.scores.mase), score(*result.naive.mase));
  return markup_text(out);
}

}  // namespace

std::string markup_text(const std::string& text, size_t longest) {
  std::string out;
  for (char c : escape(text, longest)) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  return out;
}

PlotRange plot_range(const Series& series, const ForecastResult& result) {
  const auto& options = result.options;
  const int64_t held_out = options.backtest == 0 ? 0 : options.horizon + (options.backtest - 1) * options.stride;
  const int64_t wanted = std::max({8 * options.horizon, held_out + 2 * options.horizon, 2 * options.season, options.lags, int64_t{60}});
  const int64_t history = std::min({series.length(), wanted, most_drawn_steps});
  return {series.length() - history, series.length() + std::min(options.horizon, most_drawn_steps)};
}

PlotPlace plot_place(size_t i, size_t count) {
  constexpr double left = 70, right = 24;
  if (count == 1) return {left, plot_heading + 12, plot_width - left - right, 380};
  const double width = (plot_width - right) / 2, height = 150, pitch = height + 76;
  const auto column = static_cast<double>(i % 2);
  const size_t row = i / 2;
  return {left + column * width, plot_heading + 28 + static_cast<double>(row) * pitch, width - left - 4, height};
}

std::string plot_svg(const SeriesTable& table, const ForecastResult& result) {
  const size_t count = plotted(table);
  const double height = plot_height(count);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"tutti-plot\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\" "
      "aria-labelledby=\"plot-title plot-facts\">\n<title id=\"plot-title\">Forecast of {2}</title>\n<desc id=\"plot-facts\">{3}</desc>\n"
      "<style>{4}</style>\n<rect class=\"paper\" width=\"{0}\" height=\"{1}\"/>\n",
      plot_width, height, plot_title(table), plot_facts(table, result), plot_style);
  out += Panel::text("title", 24, 32, "start", plot_title(table));
  out += Panel::text("facts", 24, 52, "start", plot_facts(table, result));
  out += legend(result);
  for (size_t i = 0; i < count; ++i) out += Panel(table, result, i, count).draw();
  return out + "</svg>\n";
}

}  // namespace tutti
