#include "tutti/run/fit_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "tutti/run/plot.h"
#include "tutti/run/plot_axis.h"

namespace tutti {

namespace {

constexpr double chart_width = 920, chart_height = 300, chart_left = 64, chart_top = 12, chart_bottom = 34;
constexpr size_t most_rows = 1000, most_charts = 8, most_points = 60'000;  // in all curves of a chart

constexpr const char* fit_style = R"(
:root { color-scheme: light dark; --ink: #243b53; --strong: #102a43; --soft: #52606d; --line: #d9e2ec; --page: #f5f7fa; --paper: #fff; --curve: #0b69c7; --val: #c2410c; }
@media (prefers-color-scheme: dark) { :root { --ink: #d9e2ec; --strong: #f0f4f8; --soft: #9fb3c8; --line: #223040; --page: #0a0f16; --paper: #101822; --curve: #5aa9f8; --val: #fb923c; } }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1000px; margin: 0 auto; padding: 24px 20px 48px; }
h1 { font-size: 20px; margin: 0 0 4px; color: var(--strong); }
h2 { margin: 26px 0 8px; font-size: 16px; color: var(--strong); }
p { margin: 4px 0; color: var(--soft); }
figure { margin: 0; border: 1px solid var(--line); border-radius: 10px; background: var(--paper); overflow-x: auto; }
figure svg { display: block; width: 100%; min-width: 640px; height: auto; }
svg text { fill: var(--soft); font-size: 12px; }
svg .grid { stroke: var(--line); stroke-width: 1; }
polyline { fill: none; stroke: var(--curve); stroke-width: 1.5; stroke-linejoin: round; }
polyline.val { stroke: var(--val); stroke-dasharray: 5 3; }
.key i { display: inline-block; width: 22px; border-top: 2px solid var(--curve); vertical-align: middle; margin: 0 6px 0 12px; }
.key i.val { border-top: 2px dashed var(--val); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 14px 4px 0; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { font-weight: 600; color: var(--soft); }
th:first-child, td:first-child { text-align: left; max-width: 320px; overflow: hidden; text-overflow: ellipsis; }
tr[data-job] { cursor: pointer; }
tr[data-job]:hover, tr.chosen { background: color-mix(in srgb, var(--curve) 14%, transparent); }
.failed { color: var(--val); }
svg.chosen polyline { opacity: 0.08; }
svg.chosen polyline.on { opacity: 1; stroke-width: 2.5; }
)";

// The curves of the job under the pointer stand out.
constexpr const char* fit_script = R"(
(() => {
  const charts = document.querySelectorAll("figure svg");
  let kept = null;
  const mark = (job) => {
    for (const chart of charts) {
      chart.classList.toggle("chosen", job !== null);
      for (const curve of chart.querySelectorAll("polyline")) curve.classList.toggle("on", curve.dataset.job === job);
    }
  };
  for (const row of document.querySelectorAll("tr[data-job]")) {
    row.addEventListener("mouseenter", () => mark(row.dataset.job));
    row.addEventListener("mouseleave", () => mark(kept));
    row.addEventListener("click", () => {
      kept = kept === row.dataset.job ? null : row.dataset.job;
      for (const other of document.querySelectorAll("tr.chosen")) other.classList.remove("chosen");
      if (kept !== null) row.classList.add("chosen");
      mark(kept);
    });
  }
})();
)";

std::optional<size_t> column(const ReportedJob& job, const std::string& name) {
  const auto found = std::find(job.columns.begin(), job.columns.end(), name);
  return found == job.columns.end() ? std::nullopt : std::optional(static_cast<size_t>(found - job.columns.begin()));
}

double last_of(const ReportedJob& job, const std::string& name) {
  const auto at = column(job, name);
  return at && !job.history.empty() ? job.history.back()[*at] : std::numeric_limits<double>::quiet_NaN();
}

// What jobs are ordered by: the loss on data that they did not train by, where they have some.
double score(const ReportedJob& job) { return last_of(job, column(job, "val_loss") ? "val_loss" : "loss"); }

std::string short_number(double value) { return std::isfinite(value) ? fmt::format("{:.5g}", value) : "–"; }

// One quantity by epoch: a curve a job, and a second one for the validation.
class FitChart {
 public:
  FitChart(const std::vector<ReportedJob>& jobs, const std::string& name) : jobs_(jobs), name_(name) {
    size_t curves = 0;
    for (const ReportedJob& job : jobs)
      for (const std::string& each : {name, "val_" + name})
        if (const auto at = column(job, each)) {
          ++curves;
          epochs_ = std::max(epochs_, job.history.size());
          for (const auto& row : job.history) {
            if (!std::isfinite(row[*at])) continue;
            values_.push_back(row[*at]);
            least_ = std::min(least_, row[*at]);
          }
        }
    points_ = std::max<size_t>(12, most_points / std::max<size_t>(curves, 1));
    const auto most = values_.empty() ? 1 : *std::max_element(values_.begin(), values_.end());
    logarithmic_ = least_ > 0 && most / least_ > 50;
    if (logarithmic_)
      for (double& value : values_) value = std::log10(value);
    axis_ = value_axis(values_, 6);
  }

  std::string figure() const {
    std::string out =
        fmt::format("<h2>{}{}</h2>\n<figure><svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{} by epoch\">\n", markup_text(name_, 60),
                    logarithmic_ ? " (log scale)" : "", chart_width, chart_height, markup_text(name_, 60));
    for (const Tick& tick : axis_.ticks) {
      const std::string label = logarithmic_ ? fmt::format("{:.3g}", std::pow(10, tick.at)) : tick.label;
      out += fmt::format(
          "<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text x=\"{:.1f}\" y=\"{:.1f}\" "
          "text-anchor=\"end\">{}</text>\n",
          chart_left, chart_width - 12, y(tick.at), y(tick.at), chart_left - 8, y(tick.at) + 4, label);
    }
    for (size_t i = 0; i <= 5 && epochs_ > 0; ++i) {
      const size_t epoch = (epochs_ - 1) * i / 5;
      if (i > 0 && epoch == (epochs_ - 1) * (i - 1) / 5) continue;
      out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", x(epoch), chart_height - 12, epoch + 1);
    }
    for (size_t i = 0; i < jobs_.size(); ++i) {
      out += curve(i, name_, "");
      out += curve(i, "val_" + name_, " class=\"val\"");
    }
    return out + "</svg></figure>\n";
  }

 private:
  double x(size_t epoch) const {
    return chart_left +
           (epochs_ < 2 ? 0.5 : static_cast<double>(epoch) / static_cast<double>(epochs_ - 1)) * (chart_width - 12 - chart_left);
  }
  double y(double value) const {
    const double high = chart_height - chart_bottom, share = (value - axis_.low) / (axis_.high - axis_.low);
    return high - share * (high - chart_top);
  }
  std::string curve(size_t number, const std::string& name, std::string_view style) const {
    const ReportedJob& job = jobs_[number];
    const auto at = column(job, name);
    if (!at || job.history.empty()) return "";
    std::string points;
    const size_t count = std::min(points_, job.history.size());
    for (size_t i = 0; i < count; ++i) {
      const size_t epoch = count < 2 ? 0 : (job.history.size() - 1) * i / (count - 1);
      const double value = job.history[epoch][*at];
      if (!std::isfinite(value) || (logarithmic_ && value <= 0)) continue;
      const double height = y(logarithmic_ ? std::log10(value) : value);
      points += fmt::format("{:.1f},{:.1f} ", x(epoch), height);
      if (count == 1) points += fmt::format("{:.1f},{:.1f} ", x(epoch) + 4, height);  // a dot
    }
    return fmt::format(
        "<polyline{} data-job=\"{}\" points=\"{}\"{}><title>{}</title></polyline>\n", style, number, points,
        jobs_.size() > 8 ? fmt::format(" stroke-opacity=\"{:.2f}\"", std::max(0.15, 2 / std::sqrt(static_cast<double>(jobs_.size())))) : "",
        markup_text(job.name, 80));
  }

  const std::vector<ReportedJob>& jobs_;
  std::string name_;
  size_t epochs_ = 0, points_ = 0;
  std::vector<double> values_;
  double least_ = std::numeric_limits<double>::infinity();
  bool logarithmic_ = false;
  ValueAxis axis_;
};

// Quantities that any job measured, without their validations, in order of appearance.
std::vector<std::string> quantities(const std::vector<ReportedJob>& jobs) {
  std::vector<std::string> out;
  for (const ReportedJob& job : jobs)
    for (const std::string& name : job.columns)
      if (!name.starts_with("val_") && std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  if (out.size() > most_charts) out.resize(most_charts);
  return out;
}

std::string job_table(const std::vector<ReportedJob>& jobs, const std::vector<std::string>& names) {
  std::vector<size_t> order(jobs.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto rank = [&](size_t i) { return std::isfinite(score(jobs[i])) ? score(jobs[i]) : std::numeric_limits<double>::infinity(); };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
  std::vector<std::string> columns;
  for (const std::string& name : names)
    for (const std::string& each : {name, "val_" + name})
      if (std::any_of(jobs.begin(), jobs.end(), [&](const ReportedJob& job) { return column(job, each).has_value(); }))
        columns.push_back(each);
  std::string out =
      "<h2>Jobs, best first</h2>\n<div class=\"scroll\"><table><thead><tr><th>job</th><th>epochs</th><th>steps</th><th>seconds</th>";
  for (const std::string& name : columns) out += fmt::format("<th>{}</th>", markup_text(name, 40));
  out += "<th>ended by</th></tr></thead><tbody>\n";
  for (size_t i = 0; i < std::min(order.size(), most_rows); ++i) {
    const ReportedJob& job = jobs[order[i]];
    out += fmt::format("<tr data-job=\"{}\"><td>{}</td><td>{}</td><td>{}</td><td>{:.3f}</td>", order[i], markup_text(job.name, 80),
                       job.history.size(), job.steps, job.seconds);
    for (const std::string& name : columns) out += fmt::format("<td>{}</td>", short_number(last_of(job, name)));
    out += job.error.empty() ? fmt::format("<td>{}</td></tr>\n", markup_text(job.stopped_because, 40))
                             : fmt::format("<td class=\"failed\" title=\"{}\">error: {}</td></tr>\n", markup_text(job.error, 400),
                                           markup_text(job.error, 80));
  }
  out += "</tbody></table></div>\n";
  if (order.size() > most_rows) out += fmt::format("<p>and {} more; each has its history.csv</p>\n", order.size() - most_rows);
  return out;
}

}  // namespace

std::string fit_page(const std::vector<ReportedJob>& jobs, const FitFacts& facts) {
  const std::vector<std::string> names = quantities(jobs);
  const auto failed = std::count_if(jobs.begin(), jobs.end(), [](const ReportedJob& job) { return !job.error.empty(); });
  int64_t steps = 0;
  for (const ReportedJob& job : jobs) steps += job.steps;
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">"
      "<title>tutti fit</title><style>";
  out += fit_style;
  out += fmt::format("</style></head><body><main>\n<h1>{} {} trained{}</h1>\n<p>{} steps in {:.3f} s on {}</p>\n", jobs.size(),
                     jobs.size() == 1 ? "model" : "models", failed > 0 ? fmt::format(", {} failed", failed) : "", steps, facts.seconds,
                     markup_text(facts.device, 60));
  for (const std::string& plan : facts.plans) out += fmt::format("<p>{}</p>\n", markup_text(plan, 300));
  if (std::any_of(jobs.begin(), jobs.end(), [](const ReportedJob& job) { return column(job, "val_loss").has_value(); }))
    out += "<p class=\"key\"><i></i>training<i class=\"val\"></i>validation</p>\n";
  for (const std::string& name : names) out += FitChart(jobs, name).figure();
  out += job_table(jobs, names);
  out += "</main><script>";
  out += fit_script;
  return out + "</script></body></html>\n";
}

}  // namespace tutti
