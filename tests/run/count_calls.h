// What this test program asks of the C library, counted: allocations and locks.
#pragma once

#include <cstdint>

namespace tutti {

struct Calls {
  int64_t allocations = 0, locks = 0, bytes = 0;  // bytes asked for
  bool operator==(const Calls&) const = default;
};

// So far, by all threads. Sanitizers have an allocator of their own: under them nothing is counted.
Calls count_calls();
inline constexpr bool calls_are_counted =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    false;
#else
    true;
#endif

}  // namespace tutti
