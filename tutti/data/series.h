// Time series from a CSV file with a header: a time column, a target, features, and where there are several series a column of their names.
//
// One rule for what is missing. A series goes from its first to its last known target; its rows are put on a regular grid (time_axis.h). A
// row or value that is missing inside is interpolated linearly, a feature's edges take the nearest known value, and a series of which more
// than half would be made up so is refused. Missing is written as an empty field, NA, N/A, NaN, null or None. Rows may stand in any order;
// a time that occurs twice is an error. Rows after the last known target give the features' future values.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tutti/base/file.h"
#include "tutti/data/time_axis.h"

namespace tutti {

struct SeriesColumns {
  std::string target;
  std::vector<std::string> features = {};
  std::string time = {};  // empty: the first column of dates (one named date, time, month, ... before others), else of such a name
  std::string id = {};    // empty: the file is one series
};

struct Series {
  std::string id;                             // empty without a column of them
  int64_t first = 0;                          // ordinal of the first target
  std::vector<double> target;                 // [time]
  std::vector<bool> made_up;                  // [time]: interpolated
  std::vector<std::vector<double>> features;  // each [time + future values known]
  std::vector<std::vector<bool>> made_up_features;
  int64_t length() const { return static_cast<int64_t>(target.size()); }
};

struct SeriesTable {
  SeriesColumns columns;  // with the time column that was found
  TimeAxis axis;
  std::vector<Series> series;         // in the order of their first rows
  std::vector<std::string> warnings;  // what was made up, counted
  std::string time(const Series& one, int64_t step) const { return axis.text(one.first + step * axis.count()); }
};

// `file` names the source in messages. Throws InvalidArgument with the line and the column.
SeriesTable read_series(std::shared_ptr<const ByteSource> source, const std::string& file, const SeriesColumns& columns);
SeriesTable read_series(const std::string& path, const SeriesColumns& columns);

}  // namespace tutti
