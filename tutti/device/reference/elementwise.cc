// Elementwise ops of one operand, and iota.
#include <algorithm>
#include <array>
#include <bit>
#include <numbers>

#include "tutti/device/reference/kernel.h"
#include "tutti/device/reference/wide.h"

namespace tutti::reference {

namespace {

// f on every element, some at a time: read as wide numbers, written as narrow ones of the same or another wide type.
template <class From, class To, class F>
Kernel map(int64_t count, Rows<From> from, Rows<To> to, F f) {
  return {[=](const Pointers& p) {
            std::array<From, row_chunk> x;
            std::array<To, row_chunk> y;
            for (int64_t start = 0; start < count; start += row_chunk) {
              int64_t length = std::min(row_chunk, count - start);
              from.read(p.operands[0] + start * from.bytes, x.data(), length);
              for (size_t i = 0; i < static_cast<size_t>(length); ++i) y[i] = f(x[i]);
              to.write(y.data(), p.results[0] + start * to.bytes, length);
            }
          },
          0};
}

template <class W, class F>
Kernel map(int64_t count, Rows<W> rows, F f) {
  return map(count, rows, rows, f);
}

// A function of doubles, on any float type.
template <auto f>
Kernel real(const Graph& graph, const Node& node) {
  const Type& type = result_type(graph, node);
  return map(type.shape.elements(), float_rows(type.dtype), f);
}

// A function of any wide type.
template <auto f>
Kernel any(const Graph& graph, const Node& node) {
  const Type& type = result_type(graph, node);
  return dispatch_rows(type.dtype, [&](auto rows) { return map(type.shape.elements(), rows, f); });
}

constexpr auto absolute = []<class W>(W x) -> W {
  if constexpr (std::is_same_v<W, double>) {
    return std::fabs(x);
  } else if constexpr (std::is_same_v<W, int64_t>) {
    return x < 0 ? static_cast<W>(0 - static_cast<uint64_t>(x)) : x;
  } else {
    return x;
  }
};

constexpr auto negated = []<class W>(W x) -> W {
  if constexpr (std::is_same_v<W, double>) {
    return -x;
  } else {
    return static_cast<W>(0 - static_cast<uint64_t>(x));
  }
};

constexpr auto signed_one = []<class W>(W x) -> W {
  if constexpr (std::is_same_v<W, double>) {
    return x > 0 ? 1.0 : x < 0 ? -1.0 : x;  // zeros keep their sign, NaN stays
  } else if constexpr (std::is_same_v<W, int64_t>) {
    return (x > 0) - (x < 0);
  } else {
    return static_cast<W>(x != W{});
  }
};

constexpr auto inverted = []<class W>(W x) -> W {
  if constexpr (std::is_same_v<W, bool>) {
    return !x;
  } else if constexpr (std::is_same_v<W, double>) {
    return x;
  } else {
    return static_cast<W>(~static_cast<uint64_t>(x));
  }
};

// Halley's steps on erf(x) = y, or on erfc(x) = 1 - y where erf is flat; from Winitzki's estimate (relative error 2e-3).
double erf_inverse(double y) {
  double size = std::fabs(y);
  if (!(size < 1)) return size == 1 ? std::copysign(std::numeric_limits<double>::infinity(), y) : std::numeric_limits<double>::quiet_NaN();
  if (size < 1e-150) return y * (std::sqrt(std::numbers::pi) / 2);
  constexpr double a = 0.147;
  double logarithm = std::log1p(-size * size), half = 2 / (std::numbers::pi * a) + logarithm / 2;
  // For small y the difference below cancels; the first term of the series is better.
  double x = size < 1e-3 ? size * (std::sqrt(std::numbers::pi) / 2) : std::sqrt(std::sqrt(half * half - logarithm / a) - half);
  for (int step = 0; step < 4; ++step) {
    double error = size < 0.5 ? std::erf(x) - size : (1 - size) - std::erfc(x);
    double slope = 2 / std::sqrt(std::numbers::pi) * std::exp(-x * x);
    double newton = error / slope;
    x -= newton / (1 + x * newton);
  }
  return std::copysign(x, y);
}

double log_gamma(double x) {
  int sign = 0;  // std::lgamma writes it to a global
  return ::lgamma_r(x, &sign);
}

Kernel is_finite(const Graph& graph, const Node& node) {
  const Type& type = operand_type(graph, node, 0);
  return dispatch_rows(type.dtype, [&](auto rows) {
    return map(type.shape.elements(), rows, rows_of<bool>(), [](auto x) {
      if constexpr (std::is_same_v<decltype(x), double>) {
        return std::isfinite(x);
      } else {
        return true;
      }
    });
  });
}

Kernel population_count(const Graph& graph, const Node& node) {
  const Type& type = operand_type(graph, node, 0);
  int bits = static_cast<int>(byte_size(type.dtype)) * 8;
  return dispatch_rows(type.dtype, [&](auto rows) {
    return map(type.shape.elements(), rows, [bits](auto x) {
      // A negative number was widened with ones.
      return static_cast<decltype(x)>(std::popcount(static_cast<uint64_t>(x) << (64 - bits)));
    });
  });
}

Kernel converted(const Graph& graph, const Node& node) {
  const Type &from = operand_type(graph, node, 0), &to = result_type(graph, node);
  return dispatch_rows(from.dtype, [&](auto rows) {
    using From = typename decltype(rows)::Wide;
    return dispatch(to.dtype, [&](auto zero) -> Kernel {
      using To = decltype(zero);
      return {[rows, count = to.shape.elements()](const Pointers& p) {
                std::array<From, row_chunk> x;
                auto* out = reinterpret_cast<To*>(p.results[0]);
                for (int64_t start = 0; start < count; start += row_chunk) {
                  int64_t length = std::min(row_chunk, count - start);
                  rows.read(p.operands[0] + start * rows.bytes, x.data(), length);
                  for (int64_t i = 0; i < length; ++i) out[start + i] = convert_element<To>(x[static_cast<size_t>(i)]);
                }
              },
              0};
    });
  });
}

Kernel counted(const Graph& graph, const Node& node) {
  const Type& type = result_type(graph, node);
  int64_t axis = node.attributes.integer("dimension"), inner = type.shape.strides()[static_cast<size_t>(axis)], extent = type.shape[axis];
  int64_t outer = type.shape.elements() == 0 ? 0 : type.shape.elements() / (inner * extent);
  return dispatch(type.dtype, [&](auto zero) -> Kernel {
    using T = decltype(zero);
    return {[=](const Pointers& p) {
              auto* to = reinterpret_cast<T*>(p.results[0]);
              for (int64_t o = 0; o < outer; ++o)
                for (int64_t i = 0; i < extent; ++i)
                  for (int64_t k = 0; k < inner; ++k)
                    *to++ = is_floating<T> ? convert_element<T>(static_cast<double>(i)) : static_cast<T>(i);
            },
            0};
  });
}

}  // namespace

std::span<const KernelRow> elementwise_kernels() {
  static constexpr KernelRow rows[] = {
      {Op::iota, counted},
      {Op::abs, any<absolute>},
      {Op::negate, any<negated>},
      {Op::sign, any<signed_one>},
      {Op::exponential, real<[](double x) { return std::exp(x); }>},
      {Op::exponential_minus_one, real<[](double x) { return std::expm1(x); }>},
      {Op::log, real<[](double x) { return std::log(x); }>},
      {Op::log_plus_one, real<[](double x) { return std::log1p(x); }>},
      {Op::logistic, real<[](double x) { return 1 / (1 + std::exp(-x)); }>},
      {Op::sqrt, real<[](double x) { return std::sqrt(x); }>},
      {Op::rsqrt, real<[](double x) { return 1 / std::sqrt(x); }>},
      {Op::cbrt, real<[](double x) { return std::cbrt(x); }>},
      {Op::ceil, real<[](double x) { return std::ceil(x); }>},
      {Op::floor, real<[](double x) { return std::floor(x); }>},
      {Op::round_nearest_even, real<[](double x) { return std::nearbyint(x); }>},
      {Op::round_nearest_afz, real<[](double x) { return std::round(x); }>},
      {Op::sine, real<[](double x) { return std::sin(x); }>},
      {Op::cosine, real<[](double x) { return std::cos(x); }>},
      {Op::tan, real<[](double x) { return std::tan(x); }>},
      {Op::tanh, real<[](double x) { return std::tanh(x); }>},
      {Op::asin, real<[](double x) { return std::asin(x); }>},
      {Op::acos, real<[](double x) { return std::acos(x); }>},
      {Op::atan, real<[](double x) { return std::atan(x); }>},
      {Op::sinh, real<[](double x) { return std::sinh(x); }>},
      {Op::cosh, real<[](double x) { return std::cosh(x); }>},
      {Op::asinh, real<[](double x) { return std::asinh(x); }>},
      {Op::acosh, real<[](double x) { return std::acosh(x); }>},
      {Op::atanh, real<[](double x) { return std::atanh(x); }>},
      {Op::erf, real<[](double x) { return std::erf(x); }>},
      {Op::erf_inv, real<erf_inverse>},
      {Op::lgamma, real<log_gamma>},
      {Op::is_finite, is_finite},
      {Op::not_, any<inverted>},
      {Op::popcnt, population_count},
      {Op::convert, converted},
  };
  return rows;
}

}  // namespace tutti::reference
