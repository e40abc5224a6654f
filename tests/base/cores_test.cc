#include "tutti/base/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>
#include <vector>

namespace tutti {
namespace {

std::vector<int> usable_cores() {
  cpu_set_t all;
  EXPECT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  std::vector<int> out;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(static_cast<unsigned>(core), &all)) out.push_back(core);
  return out;
}

// Where a thread finds itself that begins so; the system may have taken it elsewhere the moment after, but will not again and again.
bool begins_at(int core, size_t i, int wanted) {
  bool found = false;
  for (int attempt = 0; attempt < 50 && !found; ++attempt)
    std::thread([&] {
      begin_beside(core, i);
      found = this_core() == wanted;
    }).join();
  return found;
}

TEST(cores, a_thread_begins_on_the_core_behind_another_one) {
  const std::vector<int> usable = usable_cores();
  if (usable.size() < 2) GTEST_SKIP() << "there is one core";
  const size_t count = usable.size();
  for (size_t first : {size_t{0}, count - 1})
    for (size_t i : {size_t{1}, count - 1, count + 1})
      EXPECT_TRUE(begins_at(usable[first], i, usable[(first + i) % count])) << "behind " << usable[first] << ", number " << i;
}

TEST(cores, a_thread_may_run_where_it_might_before) {
  const std::vector<int> before = usable_cores();
  for (int core : {before[0], -1, CPU_SETSIZE + 1})
    std::thread([&] {
      begin_beside(core, 1);
      EXPECT_EQ(usable_cores(), before);
    }).join();
}

}  // namespace
}  // namespace tutti
