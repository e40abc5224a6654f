// Elementwise ops of two and three operands.
#include <algorithm>
#include <array>
#include <cstring>

#include "tutti/device/reference/kernel.h"
#include "tutti/device/reference/wide.h"

namespace tutti::reference {

namespace {

// f on every pair of elements, some at a time.
template <class From, class To, class F>
Kernel zip(int64_t count, Rows<From> from, Rows<To> to, F f) {
  return {[=](const Pointers& p) {
            std::array<From, row_chunk> a, b;
            std::array<To, row_chunk> out;
            for (int64_t start = 0; start < count; start += row_chunk) {
              int64_t length = std::min(row_chunk, count - start);
              from.read(p.operands[0] + start * from.bytes, a.data(), length);
              from.read(p.operands[1] + start * from.bytes, b.data(), length);
              for (size_t i = 0; i < static_cast<size_t>(length); ++i) out[i] = f(a[i], b[i]);
              to.write(out.data(), p.results[0] + start * to.bytes, length);
            }
          },
          0};
}

template <auto f>
Kernel arithmetic(const Graph& graph, const Node& node) {
  const Type& type = result_type(graph, node);
  return dispatch_rows(type.dtype, [&](auto rows) { return zip(type.shape.elements(), rows, rows, f); });
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

constexpr auto both = []<class W>(W a, W b) -> W { return static_cast<W>(static_cast<uint64_t>(a) & static_cast<uint64_t>(b)); };
constexpr auto either = []<class W>(W a, W b) -> W { return static_cast<W>(static_cast<uint64_t>(a) | static_cast<uint64_t>(b)); };
constexpr auto differing = []<class W>(W a, W b) -> W { return static_cast<W>(static_cast<uint64_t>(a) ^ static_cast<uint64_t>(b)); };

template <auto f>
Kernel bitwise(const Graph& graph, const Node& node) {
  const Type& type = result_type(graph, node);
  return dispatch_rows(type.dtype, [&](auto rows) -> Kernel {
    if constexpr (std::is_same_v<typename decltype(rows)::Wide, double>) {
      return {};
    } else {
      return zip(type.shape.elements(), rows, rows, f);
    }
  });
}

enum class Shift { left, arithmetic, logical };

// A shift by the width or more (a negative one counts as such) leaves zeros, or the sign. Numbers of `width` bits, widened.
template <Shift how>
uint64_t shifted(uint64_t a, uint64_t b, int width) {
  const uint64_t mask = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  const bool beyond = (b & mask) >= static_cast<uint64_t>(width);
  if constexpr (how == Shift::left) {
    return beyond ? 0 : a << b;
  } else if constexpr (how == Shift::logical) {
    return beyond ? 0 : (a & mask) >> b;
  } else {
    auto value = static_cast<int64_t>(a << (64 - width)) >> (64 - width);  // the top bit is the sign, of unsigned numbers too
    return static_cast<uint64_t>(value >> (beyond ? width - 1 : static_cast<int>(b)));
  }
}

template <Shift how>
Kernel shift(const Graph& graph, const Node& node) {
  const Type& type = result_type(graph, node);
  return dispatch_rows(type.dtype, [&](auto rows) -> Kernel {
    using W = typename decltype(rows)::Wide;
    if constexpr (std::is_same_v<W, double> || std::is_same_v<W, bool>) {
      return {};
    } else {
      return zip(type.shape.elements(), rows, rows, [width = static_cast<int>(rows.bytes) * 8](W a, W b) {
        return static_cast<W>(shifted<how>(static_cast<uint64_t>(a), static_cast<uint64_t>(b), width));
      });
    }
  });
}

Kernel compare(const Graph& graph, const Node& node) {
  const Type& type = operand_type(graph, node, 0);
  const std::string& direction = node.attributes.text("direction");
  return dispatch_rows(type.dtype, [&](auto rows) {
    auto with = [&](auto f) { return zip(type.shape.elements(), rows, rows_of<bool>(), f); };
    if (direction == "EQ") return with([](auto a, auto b) { return a == b; });
    if (direction == "NE") return with([](auto a, auto b) { return a != b; });
    if (direction == "GE") return with([](auto a, auto b) { return a >= b; });
    if (direction == "GT") return with([](auto a, auto b) { return a > b; });
    if (direction == "LE") return with([](auto a, auto b) { return a <= b; });
    return with([](auto a, auto b) { return a < b; });
  });
}

template <class Bytes>
Kernel select_bytes(int64_t count) {
  return {[count](const Pointers& p) {
            for (int64_t i = 0; i < count; ++i) {
              bool first = reinterpret_cast<const bool*>(p.operands[0])[i];
              std::memcpy(p.results[0] + i * static_cast<int64_t>(sizeof(Bytes)),
                          p.operands[first ? 1 : 2] + i * static_cast<int64_t>(sizeof(Bytes)), sizeof(Bytes));
            }
          },
          0};
}

Kernel select(const Graph& graph, const Node& node) {
  const Type& type = result_type(graph, node);
  switch (byte_size(type.dtype)) {
    case 1: return select_bytes<uint8_t>(type.shape.elements());
    case 2: return select_bytes<uint16_t>(type.shape.elements());
    case 4: return select_bytes<uint32_t>(type.shape.elements());
    default: return select_bytes<uint64_t>(type.shape.elements());
  }
}

}  // namespace

std::span<const KernelRow> binary_kernels() {
  static constexpr KernelRow rows[] = {
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
      {Op::and_, bitwise<both>},
      {Op::or_, bitwise<either>},
      {Op::xor_, bitwise<differing>},
      {Op::shift_left, shift<Shift::left>},
      {Op::shift_right_arithmetic, shift<Shift::arithmetic>},
      {Op::shift_right_logical, shift<Shift::logical>},
      {Op::compare, compare},
      {Op::select, select},
  };
  return rows;
}

}  // namespace tutti::reference
