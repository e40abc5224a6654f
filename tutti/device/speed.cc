#include "tutti/device/speed.h"

#include <algorithm>
#include <cmath>

namespace tutti {

double Speed::bytes_per_second(int64_t bytes) const {
  auto above = std::find_if(bandwidth.begin(), bandwidth.end(), [&](const Bandwidth& level) { return bytes <= level.bytes; });
  if (above == bandwidth.end()) return bandwidth.back().bytes_per_second;
  if (above == bandwidth.begin()) return above->bytes_per_second;
  const Bandwidth& below = above[-1];
  const double part = std::log(static_cast<double>(bytes) / static_cast<double>(below.bytes)) /
                      std::log(static_cast<double>(above->bytes) / static_cast<double>(below.bytes));
  return below.bytes_per_second + part * (above->bytes_per_second - below.bytes_per_second);
}

}  // namespace tutti
