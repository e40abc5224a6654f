#include "tutti/base/cores.h"

#include <sched.h>

#include <algorithm>
#include <vector>

namespace tutti {

int this_core() { return sched_getcpu(); }

void begin_beside(int core, size_t i) {
  cpu_set_t all;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  std::vector<int> usable;
  for (int one = 0; one < CPU_SETSIZE; ++one)
    if (CPU_ISSET(static_cast<unsigned>(one), &all)) usable.push_back(one);
  const auto found = std::find(usable.begin(), usable.end(), core);
  if (found == usable.end() || i % usable.size() == 0) return;
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(static_cast<unsigned>(usable[(static_cast<size_t>(found - usable.begin()) + i) % usable.size()]), &own);
  if (sched_setaffinity(0, sizeof own, &own) == 0) sched_setaffinity(0, sizeof all, &all);
}

}  // namespace tutti
