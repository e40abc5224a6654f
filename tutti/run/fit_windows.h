// Windows of series to train by: what came before as the input, what came next as the target, scaled as `tutti forecast` scales them.
#pragma once

#include "tutti/data/row_source.h"
#include "tutti/data/series.h"
#include "tutti/run/series_scale.h"

namespace tutti {

struct WindowOptions {
  int64_t lags = 1, horizon = 1, stride = 1;  // stride: between the beginnings of windows
  SeriesScale scale = SeriesScale::standard;
  double known = 1;  // the share of each series whose values say the scale: the rest is for validation
};

struct SeriesWindows {
  std::shared_ptr<const RowSource> x, y;  // f32 [windows, lags, columns], the target being column 0; [windows, horizon]
};

// All windows with their targets, in the order of time. Throws InvalidArgument when a series is too short for any.
SeriesWindows series_windows(const SeriesTable& table, const WindowOptions& options);

}  // namespace tutti
