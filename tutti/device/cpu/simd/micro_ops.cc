#include "tutti/device/cpu/simd/micro_ops.h"

#include <functional>

#include "tutti/base/dtype.h"
#include "tutti/device/cpu/simd/micro_ops_f32.h"

namespace tutti::cpu {

namespace {

template <class T>
const T* as(const std::byte* data) {
  return reinterpret_cast<const T*>(data);
}

// Plain loops, left to the compiler: masks, indices and images, where models spend little.
template <class From, class To>
void convert(const std::byte* const* operands, std::byte* result, int64_t count) {
  const auto* x = as<From>(operands[0]);
  auto* to = reinterpret_cast<To*>(result);
  for (int64_t i = 0; i < count; ++i) to[i] = convert_element<To>(x[i]);
}

template <class T, class To, class F>
void zip(const std::byte* const* operands, std::byte* result, int64_t count) {
  const T *a = as<T>(operands[0]), *b = as<T>(operands[1]);
  auto* to = reinterpret_cast<To*>(result);
  for (int64_t i = 0; i < count; ++i) to[i] = F{}(a[i], b[i]);
}

template <class T>
void select(const std::byte* const* operands, std::byte* result, int64_t count) {
  const auto* first = as<bool>(operands[0]);
  const T *a = as<T>(operands[1]), *b = as<T>(operands[2]);
  auto* to = reinterpret_cast<T*>(result);
  for (int64_t i = 0; i < count; ++i) to[i] = first[i] ? a[i] : b[i];
}

void invert(const std::byte* const* operands, std::byte* result, int64_t count) {
  const auto* x = as<bool>(operands[0]);
  auto* to = reinterpret_cast<bool*>(result);
  for (int64_t i = 0; i < count; ++i) to[i] = !x[i];
}

MicroOp find_convert(DType from, DType to) {
  return dispatch(
      from, [to](auto source) { return dispatch(to, [](auto target) -> MicroOp { return convert<decltype(source), decltype(target)>; }); });
}

MicroOp find_select(int64_t bytes) {
  switch (bytes) {
    case 1: return select<uint8_t>;
    case 2: return select<uint16_t>;
    case 8: return select<uint64_t>;
    default: return nullptr;
  }
}

template <class T>
MicroOp find_compare(std::string_view direction) {
  if (direction == "EQ") return zip<T, bool, std::equal_to<>>;
  if (direction == "NE") return zip<T, bool, std::not_equal_to<>>;
  if (direction == "GE") return zip<T, bool, std::greater_equal<>>;
  if (direction == "GT") return zip<T, bool, std::greater<>>;
  if (direction == "LE") return zip<T, bool, std::less_equal<>>;
  return zip<T, bool, std::less<>>;
}

// Wraps around.
template <class F>
struct Unsigned {
  template <class T>
  T operator()(T a, T b) const {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(F{}(static_cast<U>(a), static_cast<U>(b)));
  }
};
struct Largest {
  template <class T>
  T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};
struct Smallest {
  template <class T>
  T operator()(T a, T b) const {
    return a < b ? a : b;
  }
};

// Of i32 and i64: indices and positions.
template <class T>
MicroOp find_integer(Op op) {
  switch (op) {
    case Op::add: return zip<T, T, Unsigned<std::plus<>>>;
    case Op::subtract: return zip<T, T, Unsigned<std::minus<>>>;
    case Op::multiply: return zip<T, T, Unsigned<std::multiplies<>>>;
    case Op::maximum: return zip<T, T, Largest>;
    case Op::minimum: return zip<T, T, Smallest>;
    default: return nullptr;
  }
}

MicroOp find_bool(Op op) {
  switch (op) {
    case Op::and_: return zip<bool, bool, std::logical_and<>>;
    case Op::or_: return zip<bool, bool, std::logical_or<>>;
    case Op::xor_: return zip<bool, bool, std::not_equal_to<>>;
    case Op::not_: return invert;
    default: return nullptr;
  }
}

MicroOp find_plain(const Graph& graph, const Node& node) {
  DType dtype = graph.type(node.operands[0]).dtype;
  switch (node.op) {
    case Op::convert:
      if (dtype == DType::boolean && graph.type(node.results[0]).dtype == DType::f32) return find_bools_to_f32();
      return find_convert(dtype, graph.type(node.results[0]).dtype);
    case Op::select: return find_select(byte_size(graph.type(node.results[0]).dtype));
    case Op::compare:
      if (dtype == DType::i32) return find_compare<int32_t>(node.attributes.text("direction"));
      if (dtype == DType::i64) return find_compare<int64_t>(node.attributes.text("direction"));
      return nullptr;
    default: break;
  }
  if (dtype == DType::boolean) return find_bool(node.op);
  if (dtype == DType::i32) return find_integer<int32_t>(node.op);
  if (dtype == DType::i64) return find_integer<int64_t>(node.op);
  return nullptr;
}

}  // namespace

MicroOp find_micro_op(const Graph& graph, const Node& node, unsigned scalars) {
  if (node.operands.empty()) return nullptr;
  // A choice moves bits: every type of four bytes is as good as a float.
  if (node.op == Op::select && byte_size(graph.type(node.results[0]).dtype) == 4) return find_select_f32(scalars);
  if (graph.type(node.operands[0]).dtype == DType::f32 && node.op != Op::convert) {
    if (node.op == Op::compare) return find_compare_f32(node.attributes.text("direction"), scalars);
    if (node.operands.size() == 2) return find_binary_f32(node.op, scalars);
    return scalars == 0 ? find_unary_f32(node.op) : nullptr;
  }
  return scalars == 0 ? find_plain(graph, node) : nullptr;
}

}  // namespace tutti::cpu
