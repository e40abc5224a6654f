// The threads that kernels share.
#include "tutti/device/cpu/team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

namespace tutti::cpu {
namespace {

TEST(cpu_team, each_member_once) {
  for (int members : {1, 2, 3, 7, 255, 1000}) {
    std::vector<int> runs(1000);
    int64_t told = 0;
    team(members, [&](int64_t member, int64_t all) {
      ++runs[static_cast<size_t>(member)];
      if (member == 0) told = all;
    });
    EXPECT_EQ(told, std::min(members, most_members));
    for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(runs[static_cast<size_t>(i)], i < told) << members << " " << i;
  }
}

// What members write is there when the team is done, again and again, after the threads have gone to sleep too.
TEST(cpu_team, results_are_there_afterwards) {
  std::vector<int64_t> numbers(3000);
  for (int round = 0; round < 2000; ++round) {
    if (round % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    team(3, [&](int64_t member, int64_t members) {
      for (int64_t i = 3000 * member / members; i < 3000 * (member + 1) / members; ++i) numbers[static_cast<size_t>(i)] += i;
    });
  }
  EXPECT_EQ(std::accumulate(numbers.begin(), numbers.end(), int64_t{0}), int64_t{2000} * (2999 * 3000 / 2));
}

TEST(cpu_team, callers_at_the_same_time_do_not_wait_for_each_other) {
  std::atomic<int64_t> sum = 0;
  {
    std::vector<std::jthread> callers;
    for (int caller = 0; caller < 4; ++caller)
      callers.emplace_back([&] {
        for (int round = 0; round < 500; ++round) team(3, [&](int64_t member, int64_t) { sum += member + 1; });
      });
  }
  EXPECT_EQ(sum, 4 * 500 * 6);
}

}  // namespace
}  // namespace tutti::cpu
