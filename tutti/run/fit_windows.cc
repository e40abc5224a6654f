#include "tutti/run/fit_windows.h"

#include <algorithm>
#include <cmath>

#include "tutti/base/error.h"

namespace tutti {

namespace {

// The series, scaled, and where windows begin in them.
struct ScaledSeries {
  struct Window {
    uint32_t series, begin;
  };
  std::vector<std::vector<float>> values;  // each [time, columns]
  std::vector<Window> windows;
  int64_t columns = 1;
};

// A part of each window: `first` rows after its beginning, so many rows of so many columns. Windows overlap, and are not held.
class WindowRows : public RowSource {
 public:
  WindowRows(std::shared_ptr<const ScaledSeries> all, const Shape& row, int64_t first, int64_t count, int64_t columns)
      : RowSource({DType::f32, with_rows(std::ssize(all->windows), row)}),
        all_(std::move(all)),
        first_(first),
        count_(count),
        columns_(columns) {}

  void read(std::span<const int64_t> rows, std::span<std::byte> to) const override {
    auto* out = reinterpret_cast<float*>(to.data());
    for (int64_t row : rows) {
      const auto [series, begin] = all_->windows[static_cast<size_t>(row)];
      const float* from = all_->values[series].data() + (static_cast<int64_t>(begin) + first_) * all_->columns;
      for (int64_t i = 0; i < count_; ++i, from += all_->columns) out = std::copy_n(from, columns_, out);
    }
  }
  bool waits() const override { return false; }

 private:
  std::shared_ptr<const ScaledSeries> all_;
  int64_t first_, count_, columns_;
};

}  // namespace

SeriesWindows series_windows(const SeriesTable& table, const WindowOptions& options) {
  auto all = std::make_shared<ScaledSeries>();
  all->columns = static_cast<int64_t>(table.columns.features.size()) + 1;
  std::vector<std::pair<int64_t, ScaledSeries::Window>> windows;  // by time
  for (const Series& series : table.series) {
    const int64_t length = series.length(), last = length - options.lags - options.horizon;
    if (last < 0)
      fail<InvalidArgument>("fit", "{} has {} values; a window of {} and {} after it need {}",
                            series.id.empty() ? "the series" : fmt::format("series '{}'", escape(series.id, 40)), length, options.lags,
                            options.horizon, options.lags + options.horizon);
    const auto known = static_cast<size_t>(
        std::clamp<int64_t>(static_cast<int64_t>(std::floor(static_cast<double>(length) * options.known)), options.lags, length));
    auto& values = all->values.emplace_back(static_cast<size_t>(length * all->columns));
    for (size_t column = 0; column < static_cast<size_t>(all->columns); ++column) {
      const auto& from = column == 0 ? series.target : series.features[column - 1];
      const ColumnScale scale = fit_scale(std::span(from).first(known), options.scale);
      for (size_t time = 0; time < static_cast<size_t>(length); ++time)
        values[time * static_cast<size_t>(all->columns) + column] = scale.forward(from[time]);
    }
    for (int64_t begin = 0; begin <= last; begin += options.stride)
      windows.push_back(
          {series.first + begin * table.axis.count(), {static_cast<uint32_t>(all->values.size() - 1), static_cast<uint32_t>(begin)}});
  }
  std::stable_sort(windows.begin(), windows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& window : windows) all->windows.push_back(window.second);
  return {std::make_shared<WindowRows>(all, Shape{options.lags, all->columns}, 0, options.lags, all->columns),
          std::make_shared<WindowRows>(all, Shape{options.horizon}, options.lags, options.horizon, 1)};
}

}  // namespace tutti
