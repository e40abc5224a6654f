#include "tutti/run/barrier.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace tutti {

namespace {

constexpr int looks = 20'000;  // for the others: some hundred microseconds

void look_again() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// std::atomic's own wait() knows threads of this process only.
void sleep_while(std::atomic<uint32_t>& value, uint32_t expected) {
  const timespec longest{0, 20'000'000};
  syscall(SYS_futex, &value, FUTEX_WAIT, expected, &longest, nullptr, 0);
}

void wake_all(std::atomic<uint32_t>& value) { syscall(SYS_futex, &value, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

}  // namespace

bool Barrier::wait_unless(const std::function<bool()>& gives_up) {
  const uint32_t round = round_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    arrived_.store(0, std::memory_order_relaxed);
    round_.store(round + 1);
    if (sleepers_.load() > 0) wake_all(round_);
    return true;
  }
  for (int i = 0; spins_ && i < looks; ++i) {
    if (round_.load(std::memory_order_acquire) != round) return true;
    look_again();
  }
  sleepers_.fetch_add(1);
  bool comes = true;
  while (round_.load() == round && (comes = !gives_up())) sleep_while(round_, round);
  sleepers_.fetch_sub(1);
  return comes;
}

}  // namespace tutti
