// A .csv of series: any bytes are series on a regular grid, with times that go on after them, or refused with an Error.
#include <cmath>
#include <cstdint>

#include "tutti/base/error.h"
#include "tutti/data/series.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti;
  auto bytes = std::as_bytes(std::span(data, size));
  try {
    SeriesTable table = read_series(memory_source({bytes.begin(), bytes.end()}), "fuzz.csv", {"y", {"x"}, "", "id"});
    for (const Series& series : table.series) {
      for (double value : series.target)
        if (!std::isfinite(value)) __builtin_trap();
      if (series.features[0].size() < series.target.size()) __builtin_trap();
      for (int64_t step = 0; step < series.length() + 3; ++step) table.time(series, step);
    }
  } catch (const Error&) {
  }
  return 0;
}
