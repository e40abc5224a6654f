#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tutti/device/cpu/measure.cc"
#include "tutti/device/cpu/simd/targets.h"
//
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tutti/device/cpu/gemm/vectors_inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::cpu::HWY_NAMESPACE {
namespace {

// Independent sums, so that no multiply-add waits for another: as many as there are registers for.
constexpr int64_t kSums = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON ? 24 : 12;

// Gives something that depends on all the work, and in `operations` how much it was.
float multiply_adds(int64_t rounds, int64_t& operations) {
  const Tag d;
  const Vector factor = hn::Set(d, 0.5f), term = hn::Set(d, 1.0f);
  Vector sum[kSums];
#pragma GCC unroll 32
  for (int i = 0; i < kSums; ++i) sum[i] = hn::Set(d, static_cast<float>(i));
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 32
    for (int i = 0; i < kSums; ++i) sum[i] = hn::MulAdd(sum[i], factor, term);
  }
#pragma GCC unroll 32
  for (int i = 1; i < kSums; ++i) sum[0] = hn::Add(sum[0], sum[i]);
  operations = rounds * kSums * kLanes * 2;
  return hn::GetLane(sum[0]);
}

// Reads `count` floats, a multiple of 256.
float read_floats(const float* x, int64_t count) {
  const Tag d;
  constexpr int64_t lanes = kLanes;
  Vector sum[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) sum[i] = hn::Zero(d);
  for (const float* end = x + count; x < end; x += 8 * lanes) {
#pragma GCC unroll 8
    for (int64_t i = 0; i < 8; ++i) sum[i] = hn::Add(sum[i], hn::Load(d, x + i * lanes));
  }
#pragma GCC unroll 8
  for (int i = 1; i < 8; ++i) sum[0] = hn::Add(sum[0], sum[i]);
  return hn::GetLane(sum[0]);
}

}  // namespace
}  // namespace tutti::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <numeric>

#include "tutti/base/memory.h"
#include "tutti/base/stopwatch.h"
#include "tutti/device/cpu/measure.h"
#include "tutti/device/cpu/team.h"
#include "tutti/device/host.h"

namespace tutti::cpu {

HWY_EXPORT(multiply_adds);
HWY_EXPORT(read_floats);

namespace {

std::atomic<float> kept;  // what was computed, so that it has to be

// The best of many tries; work(member, members) does a thread's part and says how much that was. What threads do not share (registers, the
// inner caches) is the sum of their rates, so that it does not matter if they never ran at the same time. What they share is the rate of
// all together, or of the fastest alone where others kept them apart.
template <class Work>
double best_rate(int threads, bool shared, const Work& work) {
  std::vector<double> amounts(static_cast<size_t>(threads)), rates(amounts.size());
  double best = 0;
  int tries = 0;
  for (const Stopwatch all; tries < 3 || all.seconds() < 0.015; ++tries) {
    const Stopwatch watch;
    team(threads, threads, [&](int64_t member, int) {
      const Stopwatch own;
      const double amount = work(member, int64_t{threads});
      amounts[static_cast<size_t>(member)] = amount;
      rates[static_cast<size_t>(member)] = amount / own.seconds();
    });
    const double together = std::accumulate(amounts.begin(), amounts.end(), 0.0) / watch.seconds();
    best = std::max(best, shared ? std::max(together, *std::max_element(rates.begin(), rates.end()))
                                 : std::accumulate(rates.begin(), rates.end(), 0.0));
  }
  return best;
}

double flops_per_second(int threads) {
  return best_rate(threads, false, [&](int64_t, int64_t) {
    int64_t operations = 0;
    kept = HWY_DYNAMIC_DISPATCH(multiply_adds)(100'000, operations);  // some tenths of a millisecond
    return static_cast<double>(operations);
  });
}

constexpr int64_t part = 4096, inner_caches = 256 << 10;  // bytes

// Each thread reads its part of the bytes, again and again until that is some tenths of a millisecond's work.
double bytes_per_second(const float* data, int64_t bytes, int threads) {
  const int64_t again = std::max<int64_t>(1, (int64_t{8} << 20) / bytes), parts = bytes / part;
  return best_rate(threads, bytes > inner_caches, [&](int64_t member, int64_t members) {
    const int64_t begin = parts * member / members, end = parts * (member + 1) / members;
    float sum = 0;
    for (int64_t i = 0; i < again; ++i) sum += HWY_DYNAMIC_DISPATCH(read_floats)(data + begin * (part / 4), (end - begin) * (part / 4));
    kept = sum;
    return static_cast<double>((end - begin) * part * again);
  });
}

// More than a core's share of the last cache; virtual machines report the whole host's.
int64_t beyond_caches() {
  const int64_t cache = std::max<int64_t>(0, sysconf(_SC_LEVEL3_CACHE_SIZE));
  return std::clamp<int64_t>(2 * cache, int64_t{64} << 20, int64_t{128} << 20);
}

}  // namespace

Speed measure_speed(int threads) {
  Speed speed{.threads = threads, .flops_per_second = flops_per_second(threads), .bandwidth = {}};
  // In the first, second and third cache of any processor of these years, and in none.
  const int64_t all = beyond_caches();
  require_memory(all, "measuring the memory's speed");
  const auto memory = allocate(static_cast<size_t>(all));
  if (!memory) throw std::bad_alloc();
  auto* data = reinterpret_cast<float*>(memory.get());
  std::fill_n(data, all / 4, 1.0f);  // pages that nobody wrote are all the same one
  for (int64_t bytes : {int64_t{16} << 10, inner_caches, int64_t{4} << 20, int64_t{32} << 20, all})
    speed.bandwidth.push_back({bytes, bytes_per_second(data, bytes, threads)});
  return speed;
}

}  // namespace tutti::cpu
#endif
