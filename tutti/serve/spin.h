// Looking again and again for what comes soon, instead of falling asleep: as long as nobody else needs the core.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace tutti::serve {

class Spin {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Spin(std::chrono::nanoseconds longest) : longest_(longest) {}

  // Whether it is worth while, begun at `since`: what is waited for comes fast of late, and the cores are ours.
  bool is_worth_it(Clock::time_point now, Clock::time_point since) const {
    return usual_ < longest_ && now - since < longest_ && now >= forbidden_until_;
  }

  // Lets others run for a moment. Where that takes as long as programs that only compute are given, they would be: a sleeper is woken
  // before them, one who yields stands behind them. So then it is better to sleep, for a while that doubles.
  void pause(Clock::time_point now) {
    ::sched_yield();
    const auto back = Clock::now();
    if (back - now < foreign) return;
    pause_ = back - forbidden_until_ > 4 * pause_ ? shortest_pause : std::min(2 * pause_, longest_pause);
    forbidden_until_ = back + pause_;
  }

  // How long it took in the end. Now and then it is tried again: to be woken may itself take longer than what was waited for.
  void add(std::chrono::nanoseconds waited) {
    usual_ = (7 * usual_ + std::min(waited, 4 * longest_)) / 8;
    if (++waits_ % 16 == 0) usual_ = std::min(usual_, longest_ * 3 / 4);
  }

 private:
  static constexpr std::chrono::nanoseconds foreign = std::chrono::microseconds(500), shortest_pause = std::chrono::milliseconds(20),
                                            longest_pause = std::chrono::milliseconds(200);
  std::chrono::nanoseconds longest_;
  uint32_t waits_ = 0;
  std::chrono::nanoseconds usual_{0}, pause_ = shortest_pause;
  Clock::time_point forbidden_until_{};
};

}  // namespace tutti::serve
