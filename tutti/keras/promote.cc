#include "tutti/keras/promote.h"

#include <array>

namespace tutti::keras {

namespace {

// The lattice's nodes: the dtypes by their own number, then Python's int and float.
constexpr size_t weak_int = std::size(all_dtypes), weak_float = weak_int + 1, node_count = weak_float + 1;
using Nodes = uint32_t;  // a set

constexpr Nodes bit(size_t node) { return Nodes{1} << node; }
constexpr Nodes bit(DType dtype) { return bit(static_cast<size_t>(dtype)); }

// What each node is promoted to next.
constexpr Nodes next(size_t node) {
  if (node == weak_int) return bit(DType::u8) | bit(DType::i8);
  if (node == weak_float) return bit(DType::bf16) | bit(DType::f16);
  switch (static_cast<DType>(node)) {
    case DType::boolean: return bit(weak_int);
    case DType::i8: return bit(DType::i16);
    case DType::i16: return bit(DType::i32);
    case DType::i32: return bit(DType::i64);
    case DType::i64: return bit(weak_float);
    case DType::u8: return bit(DType::i16) | bit(DType::u16);
    case DType::u16: return bit(DType::i32) | bit(DType::u32);
    case DType::u32: return bit(DType::i64) | bit(DType::u64);
    case DType::u64: return bit(weak_float);
    case DType::f16:
    case DType::bf16: return bit(DType::f32);
    case DType::f32: return bit(DType::f64);
    case DType::f64: break;
  }
  return 0;
}

// Every node that a node can be promoted to, itself included.
constexpr std::array<Nodes, node_count> make_upper_bounds() {
  std::array<Nodes, node_count> out{};
  for (size_t node = 0; node < node_count; ++node) out[node] = bit(node) | next(node);
  for (size_t round = 0; round < node_count; ++round)
    for (auto& bounds : out)
      for (size_t node = 0; node < node_count; ++node)
        if ((bounds & bit(node)) != 0) bounds |= next(node);
  return out;
}
constexpr auto upper_bounds = make_upper_bounds();

DType resolve(size_t node) {
  if (node == weak_int) return DType::i32;
  if (node == weak_float) return DType::f32;
  auto dtype = static_cast<DType>(node);
  return dtype == DType::u64 ? DType::u32 : dtype;  // Keras has no result of 64 unsigned bits
}

}  // namespace

DType result_type(std::span<const PromotedType> types) {
  bool all_weak = true;
  for (const auto& type : types) all_weak = all_weak && type.weak;
  Nodes common = ~Nodes{0};
  for (const auto& type : types) {
    bool weak = type.weak && !all_weak;
    size_t node = !weak ? static_cast<size_t>(type.dtype) : is_float(type.dtype) ? weak_float : weak_int;
    common &= upper_bounds[node];
  }
  // The least of the common bounds: the one from which all the others can be reached. f64 is above every node, so there is one.
  for (size_t node = 0; node < node_count; ++node)
    if ((common & bit(node)) != 0 && (common & ~upper_bounds[node] & (bit(node_count) - 1)) == 0) return resolve(node);
  return DType::f32;
}

DType result_type(std::initializer_list<PromotedType> types) {
  return result_type(std::span<const PromotedType>(types.begin(), types.size()));
}

DType float_type(DType dtype) { return is_float(dtype) ? dtype : DType::f32; }

DType sum_type(DType dtype) {
  switch (dtype) {
    case DType::boolean:
    case DType::i8:
    case DType::i16: return DType::i32;
    case DType::u8:
    case DType::u16: return DType::u32;
    default: return dtype;
  }
}

}  // namespace tutti::keras
