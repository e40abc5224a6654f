// Where so many threads wait for each other, again and again: of one process or, where the barrier lies in memory that they share, of
// several. Who waits looks for the others before it sleeps, as long as each has a core of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace tutti {

class Barrier {
 public:
  Barrier(int threads, bool spins) : threads_(threads), spins_(spins) {}
  void wait() {
    wait_unless([] { return false; });
  }
  // The same; but who has to sleep asks that now and then, some fifty times a second. False, for good, once it says so: the barrier is then
  // worth nothing.
  bool wait_unless(const std::function<bool()>& gives_up);

 private:
  const int threads_;
  const bool spins_;
  alignas(64) std::atomic<int> arrived_ = 0;
  std::atomic<int> sleepers_ = 0;
  alignas(64) std::atomic<uint32_t> round_ = 0;
};

}  // namespace tutti
