// The HTML page around a plot.
#include <cmath>

#include "tutti/base/error.h"
#include "tutti/base/json.h"
#include "tutti/run/plot.h"

namespace tutti {

namespace {

constexpr int64_t most_table_rows = 1000, most_hover_steps = 5000;

constexpr const char* page_style = R"(
:root { color-scheme: light dark; }
body { margin: 0; background: #f5f7fa; color: #243b53; font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1000px; margin: 0 auto; padding: 24px 20px 48px; }
figure { position: relative; margin: 0; border: 1px solid #d9e2ec; border-radius: 10px; overflow-x: auto; overflow-y: hidden; }
figure > svg { display: block; width: 100%; min-width: 640px; height: auto; touch-action: pan-y; }
figure > svg:focus-visible { outline: 2px solid #0b69c7; outline-offset: -2px; }
h2 { margin: 28px 0 8px; font-size: 16px; color: #102a43; }
p.note { margin: 6px 0 0; color: #52606d; font-size: 13px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 14px 5px 0; text-align: right; white-space: nowrap; border-bottom: 1px solid #d9e2ec; }
th { font-weight: 600; color: #52606d; }
th:first-child, td:first-child { text-align: left; }
tr.best td { font-weight: 600; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 18px; margin: 0; }
dt { color: #52606d; }
dd { margin: 0; overflow-wrap: anywhere; }
summary { cursor: pointer; font-weight: 600; margin-top: 28px; color: #102a43; }
#values { position: absolute; z-index: 1; min-width: 120px; padding: 8px 10px; border-radius: 8px; background: #102a43; color: #f0f4f8; font-size: 13px; line-height: 1.45; pointer-events: none; box-shadow: 0 4px 14px rgb(0 0 0 / 0.25); font-variant-numeric: tabular-nums; }
#values b { display: block; }
@media (prefers-color-scheme: dark) {
body { background: #0a0f16; color: #d9e2ec; }
figure { border-color: #223040; }
h2, summary { color: #f0f4f8; }
th, dt, p.note { color: #9fb3c8; }
th, td { border-color: #223040; }
#values { background: #f0f4f8; color: #102a43; }
}
@media (prefers-reduced-motion: no-preference) { #values { transition: left 60ms linear, top 60ms linear; } }
)";

// Values under the pointer, or under the arrow keys once the picture has the focus.
constexpr const char* page_script = R"(
(() => {
  const panels = JSON.parse(document.getElementById("steps").textContent);
  const figure = document.querySelector("figure"), svg = figure.querySelector("svg"), box = document.getElementById("values");
  const hair = document.createElementNS(svg.namespaceURI, "line");
  hair.setAttribute("class", "hair");
  svg.append(hair);
  svg.setAttribute("tabindex", "0");
  let shown = null;
  const digits = (panel) => Math.min(8, Math.max(0, 3 - Math.floor(Math.log10(panel.span || 1))));
  const text = (panel, value) => value.toLocaleString("en", { maximumFractionDigits: digits(panel) });
  const hide = () => { box.hidden = true; hair.setAttribute("visibility", "hidden"); shown = null; };
  const show = (at, step) => {
    const panel = panels[at], last = panel.times.length - 1;
    step = Math.max(0, Math.min(last, step));
    shown = { at, step };
    const x = panel.left + (last ? step * panel.width / last : 0), matrix = svg.getScreenCTM(), frame = figure.getBoundingClientRect();
    for (const [name, value] of [["x1", x], ["x2", x], ["y1", panel.top], ["y2", panel.top + panel.height], ["visibility", "visible"]]) hair.setAttribute(name, value);
    const rows = panel.lines.map((line) => [line.name, line.values[step - line.first]]).filter((row) => typeof row[1] === "number");
    box.replaceChildren();
    const head = document.createElement("b");
    head.textContent = panel.times[step];
    box.append(head);
    for (const [name, value] of rows) {
      const row = document.createElement("div");
      row.textContent = `${name} ${text(panel, value)}`;
      box.append(row);
    }
    box.hidden = false;
    const place = new DOMPoint(x, panel.top).matrixTransform(matrix);
    const left = place.x - frame.left + figure.scrollLeft, flipped = left + 14 + box.offsetWidth > figure.scrollWidth;
    box.style.left = `${Math.max(4, flipped ? left - 14 - box.offsetWidth : left + 14)}px`;
    box.style.top = `${place.y - frame.top + 6}px`;
  };
  svg.addEventListener("pointermove", (event) => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const at = panels.findIndex((p) => point.x >= p.left - 8 && point.x <= p.left + p.width + 8 && point.y >= p.top - 20 && point.y <= p.top + p.height + 24);
    if (at < 0) return hide();
    const panel = panels[at];
    show(at, Math.round((point.x - panel.left) / panel.width * (panel.times.length - 1)));
  });
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("blur", hide);
  svg.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1, PageUp: -12, PageDown: 12 }[event.key];
    if (event.key === "Escape") return hide();
    if (!move || !panels.length) return;
    event.preventDefault();
    show(shown ? shown.at : 0, shown ? shown.step + move : panels[0].times.length - 1);
  });
})();
)";

// A value that is not finite has no place in JSON.
Json hover_values(std::span<const double> values) {
  Json out = Json::list();
  for (double value : values) out.push(std::isfinite(value) ? Json(value) : Json());
  return out;
}

// [{left, top, width, height, span, times, lines: [{name, first, values}]}]
Json hover_data(const SeriesTable& table, const ForecastResult& result) {
  Json out = Json::list();
  const size_t count = std::min(table.series.size(), most_plotted_series);
  for (size_t i = 0; i < count; ++i) {
    const Series& series = table.series[i];
    const PlotRange range = plot_range(series, result);
    const int64_t begin = range.begin, end = range.end;
    if (end - begin > most_hover_steps) return Json::list();
    const auto [left, top, width, height] = plot_place(i, count);
    Json times = Json::list(), lines = Json::list();
    for (int64_t step = begin; step < end; ++step) times.push(table.time(series, step));
    auto add = [&](const std::string& name, int64_t first, std::span<const double> values) {
      lines.push(JsonMembers{{"name", name}, {"first", first - begin}, {"values", hover_values(values)}});
    };
    const auto history = std::span(series.target).subspan(static_cast<size_t>(begin));
    add("history", begin, history);
    const SeriesForecast& forecast = result.series[i];
    add("mean", series.length(), forecast.future.mean);
    const auto& quantiles = result.options.quantiles;
    for (size_t q = 0; result.members.size() > 1 && q < quantiles.size(); ++q)
      add(fmt::format("{:g} %", quantiles[q] * 100), series.length(), forecast.future.quantiles[q]);
    for (const auto& past : forecast.backtest)
      if (past.origin >= begin) add("back-test", past.origin, past.mean);
    double least = INFINITY, most = -INFINITY;
    for (double value : history) least = std::min(least, value), most = std::max(most, value);
    out.push(JsonMembers{
        {"left", left}, {"top", top}, {"width", width}, {"height", height}, {"span", most - least}, {"times", times}, {"lines", lines}});
  }
  return out;
}

// Inside <script> nothing but "<" could end it.
std::string script_json(const Json& data) {
  std::string out;
  for (char c : data.dump()) out += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return out;
}

std::string table_cell(double value) { return fmt::format("<td>{:.4g}</td>", value); }
std::string table_cell(const std::optional<double>& value) { return value ? table_cell(*value) : "<td>\u2013</td>"; }

std::string score_row(const std::string& name, const ForecastScores& scores, bool best) {
  std::string out = fmt::format("<tr{}><td>{}</td>", best ? " class=\"best\"" : "", name) + table_cell(scores.mae) +
                    table_cell(scores.rmse) + table_cell(scores.mase);
  for (double loss : scores.pinball) out += table_cell(loss);
  out += scores.coverage ? fmt::format("<td>{:.0f} %</td>", *scores.coverage * 100) : "<td>\u2013</td>";
  return out + "</tr>\n";
}

std::string score_table(const SeriesTable& table, const ForecastResult& result) {
  if (result.scores.points == 0) return "";
  const auto& quantiles = result.options.quantiles;
  std::string out =
      "<h2>Back-test</h2>\n<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\"></th><th scope=\"col\">MAE</th>"
      "<th scope=\"col\">RMSE</th><th scope=\"col\">MASE</th>";
  for (double q : quantiles) out += fmt::format("<th scope=\"col\">pinball {:g}</th>", q);
  out += "<th scope=\"col\">in the band</th></tr></thead>\n<tbody>\n";
  const bool better = result.scores.mae < result.naive.mae;
  out += score_row("forecast", result.scores, better);
  out += score_row(fmt::format("seasonal-naive ({})", result.options.season), result.naive, !better);
  if (table.series.size() > 1)
    for (size_t i = 0; i < std::min(table.series.size(), most_plotted_series); ++i)
      out += score_row(markup_text(table.series[i].id, 48), result.series[i].scores, false);
  out += "</tbody>\n</table></div>\n";
  return out +
         fmt::format(
             "<p class=\"note\">{} values from {} origin{}, {} apart, each forecast knowing only what came before it. MASE is in units of "
             "the seasonal-naive forecast\u2019s error inside the history{}.</p>\n",
             result.scores.points, result.options.backtest, result.options.backtest == 1 ? "" : "s", result.options.stride,
             quantiles.size() > 1 && result.members.size() > 1
                 ? fmt::format("; the band goes from the {:g} to the {:g} quantile of the members", quantiles.front(), quantiles.back())
                 : "");
}

std::string forecast_table(const SeriesTable& table, const ForecastResult& result) {
  const bool ids = !table.columns.id.empty();
  std::string out = "<details>\n<summary>The forecast in numbers</summary>\n<div class=\"scroll\"><table>\n<thead><tr>";
  if (ids) out += fmt::format("<th scope=\"col\">{}</th>", markup_text(table.columns.id, 48));
  out += fmt::format("<th scope=\"col\">{}</th>", markup_text(table.columns.time, 48));
  for (double q : result.options.quantiles) out += fmt::format("<th scope=\"col\">quantile {:g}</th>", q);
  out += "<th scope=\"col\">mean</th></tr></thead>\n<tbody>\n";
  int64_t rows = 0;
  for (size_t i = 0; i < result.series.size() && rows < most_table_rows; ++i)
    for (size_t step = 0; step < result.series[i].future.mean.size() && rows < most_table_rows; ++step, ++rows) {
      const Series& series = table.series[i];
      out += "<tr>";
      if (ids) out += fmt::format("<td>{}</td>", markup_text(series.id, 48));
      out += fmt::format("<td>{}</td>", table.time(series, series.length() + static_cast<int64_t>(step)));
      for (const auto& quantile : result.series[i].future.quantiles) out += fmt::format("<td>{:.6g}</td>", quantile[step]);
      out += fmt::format("<td>{:.6g}</td></tr>\n", result.series[i].future.mean[step]);
    }
  const auto all = static_cast<int64_t>(result.series.size()) * result.options.horizon;
  out += "</tbody>\n</table></div>\n";
  if (rows < all) out += fmt::format("<p class=\"note\">The first {} of {} rows.</p>\n", rows, all);
  return out + "</details>\n";
}

}  // namespace

std::string plot_page(const SeriesTable& table, const ForecastResult& result,
                      const std::vector<std::pair<std::string, std::string>>& facts) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<title>Forecast of {}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n<figure>\n{}"
      "<div id=\"values\" role=\"status\" hidden></div>\n</figure>\n",
      markup_text(table.columns.target, 60), page_style, plot_svg(table, result));
  out += score_table(table, result);
  out += "<h2>About</h2>\n<dl>\n";
  for (const auto& [name, value] : facts) out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", markup_text(name), markup_text(value, 400));
  out += "</dl>\n" + forecast_table(table, result);
  out += fmt::format("<script type=\"application/json\" id=\"steps\">{}</script>\n<script>{}</script>\n",
                     script_json(hover_data(table, result)), page_script);
  return out + "</main>\n</body>\n</html>\n";
}

}  // namespace tutti
