// Where the marks of a plot's axes stand and what they say.
#pragma once

#include <string>
#include <vector>

#include "tutti/data/series.h"

namespace tutti {

struct Tick {
  double at;  // a value, or a step of the series
  std::string label;
};

struct ValueAxis {
  double low = 0, high = 1;
  std::vector<Tick> ticks;
  std::string base;  // what the labels are counted from, where they would be too long; else empty
};
// Round numbers around these values (those that are finite); zero is among them when that costs little room.
ValueAxis value_axis(const std::vector<double>& values, int most_ticks);

// Years, months, days or hours that begin within the steps begin ... end - 1: the finest of them that makes at most so many marks.
std::vector<Tick> time_ticks(const SeriesTable& table, const Series& series, int64_t begin, int64_t end, int most_ticks);

}  // namespace tutti
