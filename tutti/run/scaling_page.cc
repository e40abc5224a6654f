// The scaling report as a page: a bar a measurement, divided as its time is, and the tables. Whole in itself.
#include <fmt/format.h>

#include "tutti/run/plot.h"
#include "tutti/run/scaling.h"

namespace tutti {

namespace {

constexpr std::string_view loss_colors[] = {"#e69f00", "#cc79a7", "#d55e00", "#0072b2", "#56b4e9", "#882255", "#999999"};
constexpr double bar_width = 640, bar_height = 22, label_width = 210;

// The ideal in green, then each loss in its colour, to one scale.
std::string loss_bars(const ScalingReport& report) {
  double longest = 0;
  for (const ScalingResult& result : report.results) longest = std::max(longest, result.many.step);
  std::string out;
  double y = 4;
  for (const ScalingResult& result : report.results) {
    out += fmt::format("<text x=\"0\" y=\"{:.0f}\">{} {}, batch {}: {:.2f}x</text>", y + 15, result.many.devices,
                       result.many.devices == 1 ? "device" : "devices", result.many.batch, result.speed_up);
    double x = label_width;
    const auto part = [&](double seconds, std::string_view color, std::string_view what) {
      const double width = bar_width * seconds / longest;
      out +=
          fmt::format("<rect x=\"{:.2f}\" y=\"{:.0f}\" width=\"{:.2f}\" height=\"{:.0f}\" fill=\"{}\"><title>{}: {:.3f} ms</title></rect>",
                      x, y, width, bar_height - 4, color, what, seconds * 1e3);
      x += width;
    };
    part(result.many.step - result.lost, "#009e73", "ideal");
    for (size_t i = 0; i < result.seconds.size(); ++i)
      if (result.seconds[i] > 0) part(result.seconds[i], loss_colors[i], name(static_cast<Loss>(i)));
    y += bar_height;
  }
  return fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"seconds a step by cause\">{}</svg>",
                     label_width + bar_width + 4, y + 4, out);
}

std::string loss_legend() {
  std::string out = "<p class=\"legend\"><span style=\"background:#009e73\"></span>ideal";
  for (size_t i = 0; i < static_cast<size_t>(Loss::count); ++i)
    out += fmt::format(" <span style=\"background:{}\"></span>{}", loss_colors[i], name(static_cast<Loss>(i)));
  return out + "</p>";
}

std::string loss_table(const ScalingReport& report) {
  std::string out =
      "<table><tr><th>scaling</th><th>devices</th><th>batch</th><th>ms a step</th><th>samples/s</th><th>speed-up</th><th>lost ms</th>";
  for (size_t i = 0; i < static_cast<size_t>(Loss::count); ++i) out += fmt::format("<th>{} %</th>", name(static_cast<Loss>(i)));
  out += "</tr>";
  for (const ScalingResult& result : report.results) {
    out += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{:.3f}</td><td>{:.0f}</td><td>{:.2f}</td><td>{:.3f}</td>",
                       result.weak ? "weak" : "strong", result.many.devices, result.many.batch, result.many.step * 1e3,
                       static_cast<double>(result.many.batch) / result.many.step, result.speed_up, result.lost * 1e3);
    for (double share : result.shares) out += result.lost > 0 ? fmt::format("<td>{:.1f}</td>", share * 100) : "<td>-</td>";
    out += "</tr>";
  }
  return out + "</table>";
}

std::string loss_advice(const ScalingReport& report) {
  std::string out = "<ul>";
  for (const ScalingResult& result : report.results) {
    if (result.many.devices == 1) continue;
    out +=
        fmt::format("<li>{} devices, batch {}: {}. Projected: ", result.many.devices, result.many.batch, markup_text(result.advice, 400));
    for (size_t i = 0; i < result.what_if.size(); ++i)
      out += fmt::format("{}{} {:.2f}x", i == 0 ? "" : ", ", result.what_if[i].what, result.what_if[i].gain);
    out += "</li>";
  }
  for (const auto& one : report.projected) out += fmt::format("<li>{} devices: {:.2f}x, projected</li>", one.devices, one.speed_up);
  return out + "</ul>";
}

}  // namespace

std::string scaling_page(const std::vector<ScalingReport>& reports) {
  std::string out =
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>tutti scale</title><style>:root{color-scheme:light dark}"
      "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}svg{width:100%;height:auto}"
      "svg text{font-size:13px;fill:currentColor}table{border-collapse:collapse;font-size:13px}td,th{padding:2px 8px;text-align:right;"
      "border-bottom:1px solid #8884}.legend span{display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 .8em}</style>";
  for (const ScalingReport& report : reports)
    out += fmt::format("<h1>{}</h1><p>{}, {} thread{} a device, {} cores</p>{}{}{}{}\n", markup_text(report.job),
                       markup_text(report.device), report.threads, report.threads == 1 ? "" : "s", report.cores, loss_bars(report),
                       loss_legend(), loss_table(report), loss_advice(report));
  return out + "</html>\n";
}

}  // namespace tutti
