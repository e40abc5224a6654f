// Hostile input for readers: systematic damage to good bytes, and the promise that is checked on it. A reader may succeed or throw a
// tutti::Error, within a second of processor time and 256 MiB of memory; it may not crash, hang, or throw anything else.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "tests/sanitized.h"
#include "tutti/base/error.h"

namespace tutti {

using Bytes = std::vector<std::byte>;

// While it lives, the process can take 256 MiB of address space more than it has; beyond, allocations fail with std::bad_alloc.
class MemoryLimit {
 public:
  MemoryLimit() {
    if (sanitized) return;
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    getrlimit(RLIMIT_AS, &before_);
    rlimit limit = before_;
    limit.rlim_cur = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + (256 << 20);
    setrlimit(RLIMIT_AS, &limit);
  }
  ~MemoryLimit() {
    if (!sanitized) setrlimit(RLIMIT_AS, &before_);
  }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  rlimit before_{};
};

struct Outcomes {
  int accepted = 0, refused = 0;
};

// Runs one case; `what` names it when the promise is broken.
inline void expect_contained(Outcomes& outcomes, const std::string& what, const std::function<void()>& run) {
  auto seconds = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  double start = seconds();
  try {
    run();
    ++outcomes.accepted;
  } catch (const InternalError& error) {
    ADD_FAILURE() << what << ": " << error.what();
  } catch (const Error& error) {
    ++outcomes.refused;
    std::string text = error.what();
    EXPECT_EQ(text.find('\n'), text.npos) << what << ": more than one line";
  } catch (const std::bad_alloc&) {
    ADD_FAILURE() << what << ": more than 256 MiB";
  } catch (const std::exception& error) {
    ADD_FAILURE() << what << ": not an error of ours: " << error.what();
  }
  EXPECT_LT(seconds() - start, sanitized ? 10 : 1) << what << ": too slow";
}

// Calls `run` with damaged copies of `good`: cut at many lengths; single bytes replaced among the first and last `dense` bytes and at some
// places between; numbers of four and eight bytes replaced by absurd ones. Sanitized, a quarter of it.
inline void for_each_damage(const Bytes& good, size_t dense, const std::function<void(const Bytes&, const std::string& what)>& run) {
  if (sanitized) dense /= 4;
  auto places = [&](size_t step_beyond) {
    std::vector<size_t> out;
    for (size_t at = 0; at < good.size();) {
      out.push_back(at);
      at += at < dense || at + dense >= good.size() ? 1 : std::min(step_beyond, good.size() - dense - at);
    }
    return out;
  };
  for (size_t length : places(good.size() / 50 + 1))
    run(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length)), "cut to " + std::to_string(length));
  uint32_t random = 1;
  for (size_t at : places(good.size() / 300 + 1)) {
    random = random * 1664525 + 1013904223;
    const std::byte old = good[at], choices[] = {std::byte{0},          std::byte{0xff}, old ^ std::byte{1},
                                                 old ^ std::byte{0x80}, std::byte{8},    old ^ std::byte{4}};
    Bytes bad = good;
    bad[at] = choices[(random >> 16) % 6];
    run(bad, "byte " + std::to_string(at) + " set to " + std::to_string(std::to_integer<int>(bad[at])));
  }
  for (size_t at : places(good.size() / 100 + 1)) {
    if (at % 4 != 0) continue;
    random = random * 1664525 + 1013904223;
    const uint64_t absurd[] = {~uint64_t{0},    uint64_t{1} << 40, uint64_t{1} << 63, good.size(),
                               good.size() - 8, 0x7fffffff,        uint64_t{1} << 31};
    uint64_t value = absurd[(random >> 16) % 7];
    Bytes bad = good;
    std::memcpy(bad.data() + at, &value, std::min<size_t>(random & 0x10000 ? 8 : 4, bad.size() - at));
    run(bad, "number at " + std::to_string(at) + " set to " + std::to_string(value));
  }
}

}  // namespace tutti
