// What this test program asks of the C library, counted: allocations and locks.
#pragma once

#include <cstdint>

#include "tests/sanitized.h"

namespace tutti {

struct Calls {
  int64_t allocations = 0, locks = 0, bytes = 0;  // bytes asked for
  bool operator==(const Calls&) const = default;
};

// So far, by all threads.
Calls count_calls();
inline constexpr bool calls_are_counted = !sanitized;

}  // namespace tutti
