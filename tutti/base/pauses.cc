#include "tutti/base/pauses.h"

#include "tutti/base/stopwatch.h"

namespace tutti {

Pauses measure_pauses(double seconds) {
  constexpr double least = 2e-6;
  double count = 0, total = 0, last = 0;
  for (const Stopwatch watch; last < seconds;) {
    const double now = watch.seconds(), passed = now - last;
    last = now;
    if (passed < least) continue;
    ++count;
    total += passed;
  }
  return {count / last, count > 0 ? total / count : 0};
}

}  // namespace tutti
