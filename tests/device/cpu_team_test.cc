// The threads that kernels share.
#include "tutti/device/cpu/team.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

#include "tutti/base/denormals.h"

namespace tutti::cpu {
namespace {

TEST(cpu_team, each_piece_once) {
  for (int threads : {1, 2, 3, 7, 255, 1000}) {
    for (int64_t pieces : {0, 1, 2, 3, 8, 1000}) {
      std::vector<int> runs(1000);
      team(threads, pieces, [&](int64_t piece, int slot) {
        EXPECT_LT(slot, threads);
        ++runs[static_cast<size_t>(piece)];
      });
      for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(runs[static_cast<size_t>(i)], i < pieces) << threads << " " << i;
    }
  }
}

TEST(cpu_team, things_are_shared_whole) {
  for (int threads : {1, 2, 5}) {
    for (int64_t count : {0, 1, 2, 7, 41}) {
      for (int64_t least : {1, 3}) {
        const int64_t pieces = pieces_of(count, threads, least);
        EXPECT_LE(pieces, 4 * threads);
        for (bool backwards : {false, true}) {
          for (int64_t granule : {1, 4}) {
            std::vector<std::atomic<int>> seen(41);
            share(
                count, threads, pieces,
                [&](int64_t begin, int64_t end, int) {
                  EXPECT_LT(begin, end);
                  for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
                },
                backwards, granule);
            for (int64_t i = 0; i < 41; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], i < count) << threads << " " << count << " " << i;
          }
        }
      }
    }
  }
  EXPECT_EQ(pieces_of(100, 2), 8);
  EXPECT_EQ(pieces_of(100, 2, 20), 4);
  EXPECT_EQ(pieces_of(3, 2, 20), 2);
  EXPECT_EQ(pieces_of(100, 1), 1);
}

TEST(cpu_team, denormals_are_to_all_threads_what_they_are_to_the_caller) {
  const auto half_of_least = [] {
    volatile float least = std::numeric_limits<float>::min();
    return least / 2;
  };
  for (int round = 0; round < 20; ++round) {
    std::vector<float> made(64);
    const auto fill = [&] {
      team(4, 64, [&](int64_t piece, int) {
        made[static_cast<size_t>(piece)] = half_of_least();
        std::this_thread::sleep_for(std::chrono::microseconds(20));  // the others come
      });
    };
    {
      const FlushDenormals flushing;
      fill();
    }
    for (float x : made) EXPECT_EQ(x, 0);
    fill();
    for (float x : made) EXPECT_GT(x, 0);
  }
}

// Two pieces that run at the same time have different slots, also when a smaller team follows a larger one.
TEST(cpu_team, slots_are_not_shared) {
  std::vector<std::atomic<int>> busy(6);
  for (int round = 0; round < 300; ++round) {
    for (int threads : {6, 2, 4}) {
      team(threads, 12, [&](int64_t, int slot) {
        ASSERT_LT(slot, threads);
        EXPECT_EQ(busy[static_cast<size_t>(slot)].exchange(1), 0);
        std::this_thread::yield();
        busy[static_cast<size_t>(slot)] = 0;
      });
    }
  }
}

// What pieces write is there when the team is done, again and again, after the threads have gone to sleep too.
TEST(cpu_team, memory_of_threads_stands_apart_and_at_the_same_place_for_any_size_that_fits) {
  std::vector<float> all(size_t{2} << 20);
  for (int64_t each : {16, 1000, 96 * 1024}) {
    EXPECT_EQ(own(0, all.data(), each), all.data());
    EXPECT_EQ(own(2, all.data(), each) - all.data(), 2 * 128 * 1024) << each;
    EXPECT_EQ(size_for<float>(3, each), 2 * 128 * 1024 + each);
    EXPECT_EQ(size_for<float>(1, each), each);
  }
  EXPECT_EQ(size_for<float>(4, 0), 0);
  const int64_t large = int64_t{1} << 20;
  EXPECT_GE(own(1, all.data(), large) - all.data(), large + 32 * 1024);
  EXPECT_EQ((own(1, all.data(), large) - all.data()) % 16, 0);
}

TEST(cpu_team, results_are_there_afterwards) {
  std::vector<int64_t> numbers(3000);
  for (int round = 0; round < 2000; ++round) {
    if (round % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    share(3000, 3, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) numbers[static_cast<size_t>(i)] += i;
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
        for (int round = 0; round < 500; ++round) team(3, 5, [&](int64_t piece, int) { sum += piece + 1; });
      });
  }
  EXPECT_EQ(sum, 4 * 500 * 15);
}

TEST(cpu_team, threads_keep_away_from_the_callers_core) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one core";
  int together = 0, on_one_core = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (int job = 0; together < 200 && std::chrono::steady_clock::now() < end; ++job) {
    const int before = sched_getcpu();
    std::array<int, 2> cores{-1, -1};
    team(2, 2, [&](int64_t, int slot) {
      for (int i = 0; i < 20'000; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
      cores[static_cast<size_t>(slot)] = sched_getcpu();
    });
    // The scheduler chose its first place; the caller did both pieces; it has moved.
    if (job < 100 || cores[1] < 0 || cores[0] != before) continue;
    ++together;
    on_one_core += cores[0] == cores[1];
  }
  EXPECT_LE(on_one_core, together / 10);
}

}  // namespace
}  // namespace tutti::cpu
