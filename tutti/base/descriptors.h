// How many files and connections a process may have open: 1024 on most systems, unless it asks for more.
#pragma once

#include <sys/resource.h>

namespace tutti {

// Asks for all that it may have. False where that is no more than it has.
inline bool ask_for_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return false;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

}  // namespace tutti
