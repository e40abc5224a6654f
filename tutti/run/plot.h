// A forecast to look at: an SVG picture (history, band, mean, members, back-test against truth), and a page around it with its figures.
// Both are whole in themselves, follow the reader's light or dark scheme, and say everything without a script; the page's script adds
// values under the pointer. Text from files is escaped.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tutti/run/forecast.h"

namespace tutti {

// Of several series, so many are drawn, in the file's order.
inline constexpr size_t most_plotted_series = 12;

std::string plot_svg(const SeriesTable& table, const ForecastResult& result);
// `facts`: what the page lists below the picture, as name and value.
std::string plot_page(const SeriesTable& table, const ForecastResult& result,
                      const std::vector<std::pair<std::string, std::string>>& facts);

// For XML and HTML: markup, control characters and invalid UTF-8 escaped.
std::string markup_text(const std::string& text, size_t longest = 200);

// What is drawn of a series: the steps begin ... end - 1, its history and then its future.
struct PlotRange {
  int64_t begin, end;
};
PlotRange plot_range(const Series& series, const ForecastResult& result);
// The horizontal place of a step in the picture of the i-th of `count` series: at x = first + (step - begin) * width / (end - 1 - begin).
struct PlotPlace {
  double left, top, width, height;  // of the area of values
};
PlotPlace plot_place(size_t i, size_t count);

}  // namespace tutti
