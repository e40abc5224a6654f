// The types the reference device computes in: double for floats, 64 bits for integers (wrapping around), bool for bool; one rounding at
// the end.
#pragma once

#include <cmath>
#include <cstddef>
#include <string_view>

#include "tutti/base/dtype.h"

namespace tutti::reference {

template <class T>
inline constexpr bool is_floating = std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat>;

template <class T>
using Wide =
    std::conditional_t<is_floating<T>, double,
                       std::conditional_t<std::is_same_v<T, bool>, bool, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>>;

template <class T>
Wide<T> widen(T x) {
  return static_cast<Wide<T>>(x);
}

template <class T>
T narrow(Wide<T> x) {
  if constexpr (is_floating<T>) {
    return convert_element<T>(x);
  } else {
    return static_cast<T>(x);  // modulo 2^bits
  }
}

// Rows of a narrow type as rows of the wide one, so that loops need one instance a wide type.
template <class W>
struct Rows {
  using Wide = W;
  int64_t bytes;  // of a narrow element
  void (*read)(const std::byte* from, W* to, int64_t count);
  void (*write)(const W* from, std::byte* to, int64_t count);
};

// Elements widened at a time.
inline constexpr int64_t row_chunk = 256;

template <class T>
Rows<Wide<T>> rows_of() {
  return {sizeof(T),
          [](const std::byte* from, Wide<T>* to, int64_t count) {
            for (int64_t i = 0; i < count; ++i) to[i] = widen(reinterpret_cast<const T*>(from)[i]);
          },
          [](const Wide<T>* from, std::byte* to, int64_t count) {
            for (int64_t i = 0; i < count; ++i) reinterpret_cast<T*>(to)[i] = narrow<T>(from[i]);
          }};
}

inline Rows<double> float_rows(DType dtype) {
  switch (dtype) {
    case DType::f16: return rows_of<Half>();
    case DType::bf16: return rows_of<BFloat>();
    case DType::f32: return rows_of<float>();
    default: return rows_of<double>();
  }
}

// Calls f with the rows of a dtype: one instance of f a wide type.
template <class F>
auto dispatch_rows(DType dtype, F&& f) {
  switch (dtype) {
    case DType::boolean: return f(rows_of<bool>());
    case DType::i8: return f(rows_of<int8_t>());
    case DType::i16: return f(rows_of<int16_t>());
    case DType::i32: return f(rows_of<int32_t>());
    case DType::i64: return f(rows_of<int64_t>());
    case DType::u8: return f(rows_of<uint8_t>());
    case DType::u16: return f(rows_of<uint16_t>());
    case DType::u32: return f(rows_of<uint32_t>());
    case DType::u64: return f(rows_of<uint64_t>());
    default: return f(float_rows(dtype));
  }
}

// One meaning of each arithmetic op for all wide types. On bool, add is or and multiply is and.
struct Add {
  template <class W>
  W operator()(W a, W b) const {
    if constexpr (std::is_same_v<W, double>) {
      return a + b;
    } else if constexpr (std::is_same_v<W, bool>) {
      return a || b;
    } else {
      return static_cast<W>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    }
  }
};

struct Multiply {
  template <class W>
  W operator()(W a, W b) const {
    if constexpr (std::is_same_v<W, double>) {
      return a * b;
    } else if constexpr (std::is_same_v<W, bool>) {
      return a && b;
    } else {
      return static_cast<W>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    }
  }
};

// NaN wins, and +0 is larger than -0.
struct Maximum {
  template <class W>
  W operator()(W a, W b) const {
    if constexpr (std::is_same_v<W, double>) {
      if (a == b) return std::signbit(a) ? b : a;
      return a > b || a != a ? a : b;
    } else {
      return a > b ? a : b;
    }
  }
};

struct Minimum {
  template <class W>
  W operator()(W a, W b) const {
    if constexpr (std::is_same_v<W, double>) {
      if (a == b) return std::signbit(a) ? a : b;
      return a < b || a != a ? a : b;
    } else {
      return a < b ? a : b;
    }
  }
};

// What a reduction of kind F over elements of a dtype starts from.
template <class W, class F>
W identity(DType dtype) {
  if constexpr (std::is_same_v<F, Maximum> || std::is_same_v<F, Minimum>) {
    return dispatch(dtype, [](auto zero) -> W {
      using T = decltype(zero);
      constexpr bool lowest = std::is_same_v<F, Maximum>;
      if constexpr (!std::is_same_v<Wide<T>, W>) {
        return W{};
      } else if constexpr (is_floating<T>) {
        return lowest ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
      } else {
        return lowest ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
      }
    });
  } else {
    return std::is_same_v<F, Multiply> ? W{1} : W{};
  }
}

// Calls f with the functor of a reduction or scatter kind. On bool, "and" is Minimum and "or" is Maximum.
template <class F>
auto dispatch_kind(std::string_view kind, F&& f) {
  if (kind == "add") return f(Add{});
  if (kind == "multiply") return f(Multiply{});
  if (kind == "max" || kind == "or") return f(Maximum{});
  return f(Minimum{});
}

}  // namespace tutti::reference
