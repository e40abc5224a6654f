// Elementwise ops of two and three operands.
#include "tutti/base/error.h"
#include "tutti/device/reference/kernel.h"
#include "tutti/device/reference/wide.h"

namespace tutti::reference {

namespace {

template <class T, class To, class F>
Kernel zip(int64_t count, F f) {
  return {[count, f](const Pointers& p) {
            auto* a = reinterpret_cast<const T*>(p.operands[0]);
            auto* b = reinterpret_cast<const T*>(p.operands[1]);
            auto* to = reinterpret_cast<To*>(p.results[0]);
            for (int64_t i = 0; i < count; ++i) to[i] = f(a[i], b[i]);
          },
          0};
}

template <auto f>
Kernel arithmetic(const Graph& graph, const Node& node) {
  const Type& type = result_type(graph, node);
  return dispatch(type.dtype, [&](auto zero) -> Kernel {
    using T = decltype(zero);
    return zip<T, T>(type.shape.elements(), [](T a, T b) { return narrow<T>(f(widen(a), widen(b))); });
  });
}

constexpr auto difference = []<class W>(W a, W b) -> W {
  if constexpr (std::is_same_v<W, double>) {
    return a - b;
  } else {
    return static_cast<W>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  }
};

// Integers divided by zero give -1 (all bits set), and the least integer over -1 wraps around to itself.
constexpr auto quotient = []<class W>(W a, W b) -> W {
  if constexpr (std::is_same_v<W, double>) {
    return a / b;
  } else if constexpr (std::is_same_v<W, bool>) {
    return a;
  } else {
    if (b == 0) return static_cast<W>(-1);
    if constexpr (std::is_same_v<W, int64_t>)
      if (b == -1) return static_cast<W>(0 - static_cast<uint64_t>(a));
    return a / b;
  }
};

// The sign of the dividend; modulo zero integers keep the dividend.
constexpr auto rest = []<class W>(W a, W b) -> W {
  if constexpr (std::is_same_v<W, double>) {
    return std::fmod(a, b);
  } else if constexpr (std::is_same_v<W, bool>) {
    return a;
  } else {
    if (b == 0) return a;
    if constexpr (std::is_same_v<W, int64_t>)
      if (b == -1) return 0;
    return a % b;
  }
};

// Integers: by squaring, wrapping around; a negative exponent gives the truncated inverse.
constexpr auto raised = []<class W>(W a, W b) -> W {
  if constexpr (std::is_same_v<W, double>) {
    return std::pow(a, b);
  } else if constexpr (std::is_same_v<W, bool>) {
    return a;
  } else {
    if constexpr (std::is_same_v<W, int64_t>)
      if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
    uint64_t result = 1, base = static_cast<uint64_t>(a);
    for (auto bits = static_cast<uint64_t>(b); bits != 0; bits >>= 1) {
      if (bits & 1) result *= base;
      base *= base;
    }
    return static_cast<W>(result);
  }
};

enum class Bits { both, either, differing };

template <Bits how>
Kernel bitwise(const Graph& graph, const Node& node) {
  const Type& type = result_type(graph, node);
  return dispatch(type.dtype, [&](auto zero) -> Kernel {
    using T = decltype(zero);
    if constexpr (is_floating<T>) {
      return {};
    } else {
      return zip<T, T>(type.shape.elements(), [](T a, T b) {
        return static_cast<T>(how == Bits::both ? a & b : how == Bits::either ? a | b : a ^ b);
      });
    }
  });
}

enum class Shift { left, arithmetic, logical };

// A shift by the width or more (a negative one counts as such) leaves zeros, or the sign.
template <Shift how, class T>
T shifted(T a, T b) {
  constexpr int width = sizeof(T) * 8;
  using Unsigned = std::make_unsigned_t<T>;
  bool beyond = static_cast<Unsigned>(b) >= width;
  if constexpr (how == Shift::left) {
    return beyond ? T{0} : static_cast<T>(static_cast<uint64_t>(static_cast<Unsigned>(a)) << b);
  } else if constexpr (how == Shift::logical) {
    return beyond ? T{0} : static_cast<T>(static_cast<Unsigned>(a) >> b);
  } else {
    auto value = static_cast<std::make_signed_t<T>>(a);
    return static_cast<T>(value >> (beyond ? width - 1 : static_cast<int>(b)));
  }
}

template <Shift how>
Kernel shift(const Graph& graph, const Node& node) {
  const Type& type = result_type(graph, node);
  return dispatch(type.dtype, [&](auto zero) -> Kernel {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      return zip<T, T>(type.shape.elements(), shifted<how, T>);
    } else {
      return {};
    }
  });
}

Kernel compare(const Graph& graph, const Node& node) {
  const Type& type = operand_type(graph, node, 0);
  int64_t count = type.shape.elements();
  const std::string& direction = node.attributes.text("direction");
  return dispatch(type.dtype, [&](auto zero) {
    using T = decltype(zero);
    auto with = [&](auto f) { return zip<T, bool>(count, [f](T a, T b) { return f(widen(a), widen(b)); }); };
    if (direction == "EQ") return with([](auto a, auto b) { return a == b; });
    if (direction == "NE") return with([](auto a, auto b) { return a != b; });
    if (direction == "GE") return with([](auto a, auto b) { return a >= b; });
    if (direction == "GT") return with([](auto a, auto b) { return a > b; });
    if (direction == "LE") return with([](auto a, auto b) { return a <= b; });
    return with([](auto a, auto b) { return a < b; });
  });
}

Kernel select(const Graph& graph, const Node& node) {
  const Type& type = result_type(graph, node);
  return dispatch(type.dtype, [&](auto zero) -> Kernel {
    using T = decltype(zero);
    return {[count = type.shape.elements()](const Pointers& p) {
              auto* predicate = reinterpret_cast<const bool*>(p.operands[0]);
              auto* a = reinterpret_cast<const T*>(p.operands[1]);
              auto* b = reinterpret_cast<const T*>(p.operands[2]);
              auto* to = reinterpret_cast<T*>(p.results[0]);
              for (int64_t i = 0; i < count; ++i) to[i] = predicate[i] ? a[i] : b[i];
            },
            0};
  });
}

constexpr KernelRow rows[] = {
    {Op::add, arithmetic<Add{}>},
    {Op::subtract, arithmetic<difference>},
    {Op::multiply, arithmetic<Multiply{}>},
    {Op::divide, arithmetic<quotient>},
    {Op::remainder, arithmetic<rest>},
    {Op::maximum, arithmetic<Maximum{}>},
    {Op::minimum, arithmetic<Minimum{}>},
    {Op::power, arithmetic<raised>},
    {Op::atan2, arithmetic<[]<class W>(W a, W b) -> W {
       if constexpr (std::is_same_v<W, double>) {
         return std::atan2(a, b);
       } else {
         return a;
       }
     }>},
    {Op::and_, bitwise<Bits::both>},
    {Op::or_, bitwise<Bits::either>},
    {Op::xor_, bitwise<Bits::differing>},
    {Op::shift_left, shift<Shift::left>},
    {Op::shift_right_arithmetic, shift<Shift::arithmetic>},
    {Op::shift_right_logical, shift<Shift::logical>},
    {Op::compare, compare},
    {Op::select, select},
};

}  // namespace

std::span<const KernelRow> binary_kernels() { return rows; }

}  // namespace tutti::reference
