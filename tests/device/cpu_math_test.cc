// The vector functions of tutti/device/cpu/simd/math_inl.h against the same in double, for every target that this machine can run.
#include "tutti/device/cpu/simd/targets.h"
//
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/device/cpu_math_test.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
//
#include "tutti/device/cpu/simd/math_inl.h"
#include "tutti/device/cpu/simd/sine_inl.h"

#ifndef TUTTI_TESTS_DEVICE_CPU_MATH_TEST
#define TUTTI_TESTS_DEVICE_CPU_MATH_TEST
namespace tutti::cpu {
enum class Function {
  exponential,
  exponential_minus_one,
  logistic,
  tanh,
  log,
  log_plus_one,
  erf,
  sine,
  cosine,
  rsqrt,
  root,
  gate_of_itself,
  gate_of_its_opposite,
  silu,
  gelu,
  gelu_by_tanh,
  relu
};
}
#endif

HWY_BEFORE_NAMESPACE();
namespace tutti::cpu::HWY_NAMESPACE {
namespace {

// `n` is a multiple of every target's lanes.
template <class F>
void map(const float* from, float* to, size_t n, F f) {
  const hn::ScalableTag<float> d;
  for (size_t i = 0; i < n; i += hn::Lanes(d)) hn::StoreU(f(hn::LoadU(d, from + i)), d, to + i);
}

void run(Function function, const float* from, float* to, size_t n) {
  switch (function) {
    case Function::exponential: return map(from, to, n, [](auto x) HWY_ATTR { return exponential(x); });
    case Function::exponential_minus_one: return map(from, to, n, [](auto x) HWY_ATTR { return exponential_minus_one(x); });
    case Function::logistic: return map(from, to, n, [](auto x) HWY_ATTR { return logistic(x); });
    case Function::tanh: return map(from, to, n, [](auto x) HWY_ATTR { return tanh(x); });
    case Function::log: return map(from, to, n, [](auto x) HWY_ATTR { return log(x); });
    case Function::log_plus_one: return map(from, to, n, [](auto x) HWY_ATTR { return log_plus_one(x); });
    case Function::erf: return map(from, to, n, [](auto x) HWY_ATTR { return erf(x); });
    case Function::sine: return map(from, to, n, [](auto x) HWY_ATTR { return sine(x); });
    case Function::cosine: return map(from, to, n, [](auto x) HWY_ATTR { return cosine(x); });
    case Function::rsqrt: return map(from, to, n, [](auto x) HWY_ATTR { return rsqrt(x); });
    case Function::root: return map(from, to, n, [](auto x) HWY_ATTR { return root(x); });
    case Function::gate_of_itself: return map(from, to, n, [](auto x) HWY_ATTR { return logistic_times_tanh(x, x); });
    case Function::gate_of_its_opposite: return map(from, to, n, [](auto x) HWY_ATTR { return logistic_times_tanh(x, hn::Neg(x)); });
    case Function::silu: return map(from, to, n, [](auto x) HWY_ATTR { return silu(x); });
    case Function::gelu: return map(from, to, n, [](auto x) HWY_ATTR { return gelu(x); });
    case Function::gelu_by_tanh: return map(from, to, n, [](auto x) HWY_ATTR { return gelu_by_tanh(x); });
    case Function::relu: return map(from, to, n, [](auto x) HWY_ATTR { return relu(x); });
  }
}

void extremes(const float* a, const float* b, float* largest, float* smallest, size_t n) {
  const hn::ScalableTag<float> d;
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    hn::StoreU(maximum(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, largest + i);
    hn::StoreU(minimum(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, smallest + i);
  }
}

}  // namespace
}  // namespace tutti::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numbers>
#include <vector>

namespace tutti::cpu {
namespace {

HWY_EXPORT(run);
HWY_EXPORT(extremes);

constexpr float infinity = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();

// Every 1019th float from -infinity to infinity, NaNs included; a multiple of 64 of them.
std::vector<float> sweep() {
  std::vector<float> values = {0.0f, -0.0f, infinity, -infinity, none, 1.0f, -1.0f};
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 1019) values.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  values.resize((values.size() + 63) / 64 * 64);
  return values;
}

// The distance of `got` from the true value in units of the last place of the float nearest to it.
double ulps(float got, double want) {
  auto nearest = static_cast<float>(want);
  if (std::isnan(want)) return std::isnan(got) ? 0 : infinity;
  if (got == nearest) return 0;
  if (!std::isfinite(got) || !std::isfinite(nearest)) {
    // Next to the overflow either side is near.
    return std::fabs(std::isfinite(got) ? got : nearest) > 3.4028e38f && std::signbit(got) == std::signbit(nearest) ? 1 : infinity;
  }
  int exponent = 0;
  std::frexp(std::max(std::fabs(nearest), std::numeric_limits<float>::min()), &exponent);
  return std::fabs(got - want) / std::ldexp(1.0, exponent - 24);
}

template <class F>
void on_each_target(F f) {
  for (int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1) {
    hwy::SetSupportedTargetsForTest(rest & -rest);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    f(hwy::TargetName(rest & -rest));
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// `unfused` is the limit of targets that round each product before they add to it.
void expect_within(double limit, Function function, double (*exact)(double), double unfused = 0) {
  const std::vector<float> x = sweep();
  std::vector<float> y(x.size());
  on_each_target([&](const char* target) {
    HWY_DYNAMIC_DISPATCH(run)(function, x.data(), y.data(), x.size());
    double worst = 0;
    size_t where = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      double error = ulps(y[i], exact(x[i]));
      if (error > worst) worst = error, where = i;
    }
    const bool fused = std::string_view(target) != "SCALAR";
    EXPECT_LE(worst, fused ? limit : std::max(limit, unfused))
        << target << ": f(" << x[where] << ") = " << y[where] << ", expected " << exact(x[where]);
    ::testing::Test::RecordProperty(target, std::to_string(worst));
  });
}

TEST(cpu_math, exponential) { expect_within(1.2, Function::exponential, std::exp); }
TEST(cpu_math, exponential_minus_one) { expect_within(2.5, Function::exponential_minus_one, std::expm1); }
TEST(cpu_math, logistic) {
  expect_within(
      2.3, Function::logistic, [](double x) { return 1 / (1 + std::exp(-x)); }, 2.9);
}
TEST(cpu_math, tanh) { expect_within(2.5, Function::tanh, std::tanh, 3.2); }
TEST(cpu_math, logistic_times_tanh) {
  expect_within(
      4.4, Function::gate_of_itself, [](double x) { return std::tanh(x) / (1 + std::exp(-x)); }, 5);
  expect_within(
      4.4, Function::gate_of_its_opposite, [](double x) { return std::tanh(-x) / (1 + std::exp(-x)); }, 5);
}
TEST(cpu_math, log) { expect_within(1.2, Function::log, std::log); }
TEST(cpu_math, log_plus_one) { expect_within(1.5, Function::log_plus_one, std::log1p); }
TEST(cpu_math, erf) { expect_within(1.5, Function::erf, std::erf); }
TEST(cpu_math, sine) { expect_within(1.6, Function::sine, std::sin); }
TEST(cpu_math, cosine) { expect_within(1.6, Function::cosine, std::cos); }
// Near their zeros, where nearly all of x is taken away.
TEST(cpu_math, sine_and_cosine_at_multiples_of_a_quarter_turn) {
  std::vector<float> x, y;
  for (int n = -64000; n < 64000; ++n) {
    const auto zero = static_cast<float>(n * std::numbers::pi / 2);
    x.insert(x.end(), {zero, std::nextafter(zero, infinity)});
  }
  y.resize(x.size());
  on_each_target([&](const char* target) {
    for (const auto& [function, exact] :
         {std::pair<Function, double (*)(double)>{Function::sine, std::sin}, {Function::cosine, std::cos}}) {
      HWY_DYNAMIC_DISPATCH(run)(function, x.data(), y.data(), x.size());
      for (size_t i = 0; i < x.size(); ++i) ASSERT_LE(ulps(y[i], exact(x[i])), 1.6) << target << ": f(" << x[i] << ") = " << y[i];
    }
  });
}
TEST(cpu_math, rsqrt) {
  expect_within(1.5, Function::rsqrt, [](double x) { return 1 / std::sqrt(x); });
}
TEST(cpu_math, root) {
  expect_within(1, Function::root, [](double x) { return std::sqrt(x); });
}
TEST(cpu_math, relu) {
  expect_within(0, Function::relu, [](double x) { return x <= 0 ? 0.0 : x; });
}

// Where the sum nearly cancels, only the absolute error can be small.
void expect_near(Function function, double (*exact)(double)) {
  std::vector<float> x(4096), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(static_cast<double>(i) / 200 - 10);
  on_each_target([&](const char* target) {
    HWY_DYNAMIC_DISPATCH(run)(function, x.data(), y.data(), x.size());
    for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], exact(x[i]), 3e-7 * std::max(1.0f, std::fabs(x[i]))) << target << " " << x[i];
  });
}
TEST(cpu_math, silu) {
  expect_near(Function::silu, [](double x) { return x / (1 + std::exp(-x)); });
}
TEST(cpu_math, gelu) {
  expect_near(Function::gelu, [](double x) { return x / 2 * (1 + std::erf(x / std::numbers::sqrt2)); });
}
TEST(cpu_math, gelu_far_out) {
  std::vector<float> x = {none, infinity, -infinity, 1e30f, -1e30f, 5.75f, -5.75f, 5.76f, -5.76f, 0.0f, -0.0f, 1e-30f, -1e-40f}, y(64);
  x.resize(64);
  on_each_target([&](const char* target) {
    HWY_DYNAMIC_DISPATCH(run)(Function::gelu, x.data(), y.data(), x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = double{x[i]} / 2 * (1 + std::erf(x[i] / std::numbers::sqrt2));
      if (std::isfinite(want)) {
        EXPECT_NEAR(y[i], want, 6e-8 * std::max(1.0f, std::fabs(x[i]))) << target << " " << x[i];
      } else {
        EXPECT_TRUE(std::isnan(want) ? std::isnan(y[i]) : y[i] == want) << target << " " << x[i] << " gives " << y[i];
      }
    }
    EXPECT_EQ(y[4], 0) << target;
  });
}
TEST(cpu_math, gelu_by_tanh) {
  expect_near(Function::gelu_by_tanh,
              [](double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))); });
}

TEST(cpu_math, of_two_numbers_nan_wins_and_zeros_are_ordered) {
  const float ends[] = {none, infinity, 2, 0.0f, -0.0f, -2, -infinity};
  std::vector<float> a, b;
  for (float x : ends)
    for (float y : ends) a.push_back(x), b.push_back(y);
  a.resize(64), b.resize(64);
  std::vector<float> largest(64), smallest(64);
  on_each_target([&](const char* target) {
    HWY_DYNAMIC_DISPATCH(extremes)(a.data(), b.data(), largest.data(), smallest.data(), a.size());
    for (size_t i = 0; i < std::size(ends); ++i) {
      for (size_t j = 0; j < std::size(ends); ++j) {
        // Descending, and NaN first: the larger one stands before the other.
        float high = largest[i * std::size(ends) + j], low = smallest[i * std::size(ends) + j];
        EXPECT_EQ(std::bit_cast<uint32_t>(high), std::bit_cast<uint32_t>(ends[std::min(i, j)]))
            << target << " " << ends[i] << " " << ends[j];
        size_t least = i == 0 || j == 0 ? 0 : std::max(i, j);
        EXPECT_EQ(std::bit_cast<uint32_t>(low), std::bit_cast<uint32_t>(ends[least])) << target << " " << ends[i] << " " << ends[j];
      }
    }
  });
}

}  // namespace
}  // namespace tutti::cpu
#endif
