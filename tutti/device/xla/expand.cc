#include "tutti/device/xla/expand.h"

#include <algorithm>
#include <array>

#include "tutti/graph/build.h"
#include "tutti/graph/compose.h"
#include "tutti/transform/rebuild.h"

namespace tutti::xla {

namespace {

// A number of 64 bits, which a double does not hold.
Value wide(Graph& graph, uint64_t value) { return constant<uint64_t>(graph, {}, {value}); }
Value narrow(Graph& graph, uint32_t value) { return constant<uint32_t>(graph, {}, {value}); }

Value low_word(Value x) { return convert(x, DType::u32); }
Value high_word(Value x) { return low_word(binary(Op::shift_right_logical, x, wide(x.graph(), 32))); }

// Philox4x32-10: keys u64[..., 2 or 3] -> u32[..., shape...].
Value philox(Value keys, const Shape& shape) {
  Graph& graph = keys.graph();
  const Ints outer(keys.shape().begin(), keys.shape().end() - 1);
  const bool placed = keys.extent(-1) == 3;  // then an element may be any word of its block, and each has a block of its own
  const int64_t rank = static_cast<int64_t>(outer.size()), count = shape.elements(), blocks = placed ? count : (count + 3) / 4;
  Ints result = outer;
  result.insert(result.end(), shape.begin(), shape.end());
  Ints per_block = outer, words = outer;
  per_block.push_back(blocks);
  words.push_back(blocks * 4);
  if (Shape(result).elements() == 0) return full(graph, {DType::u32, result}, 0);

  Ints one = outer;
  one.push_back(1);
  const auto part = [&](int64_t i) {  // seed or counter, for each block
    Ints start(one.size(), 0), limit = keys.shape().extents();
    start.back() = i;
    limit.back() = i + 1;
    return broadcast_to(slice(keys, start, limit), per_block);
  };
  const Value seed = part(0), counter = part(1), number = iota(graph, {DType::u64, per_block}, rank);
  const Value place = placed ? number + part(2) : number, block = placed ? binary(Op::shift_right_logical, place, wide(graph, 2)) : number;
  std::array<Value, 4> c{low_word(block), high_word(block), low_word(counter), high_word(counter)};
  Value low = low_word(seed), high = high_word(seed);
  for (int round = 0; round < 10; ++round) {
    const Value first = convert(c[0], DType::u64) * wide(graph, 0xd2511f53), second = convert(c[2], DType::u64) * wide(graph, 0xcd9e8d57);
    c = {binary(Op::xor_, binary(Op::xor_, high_word(second), c[1]), low), low_word(second),
         binary(Op::xor_, binary(Op::xor_, high_word(first), c[3]), high), low_word(first)};
    low = low + narrow(graph, 0x9e3779b9);
    high = high + narrow(graph, 0xbb67ae85);
  }
  if (placed) {
    const Value word = binary(Op::and_, low_word(place), narrow(graph, 3));
    Value out = c[3];
    for (uint32_t i = 0; i < 3; ++i) out = select(compare(word, static_cast<double>(i), Direction::EQ), c[i], out);
    return reshape(out, result);
  }
  std::vector<Value> columns;
  for (const Value& word : c) columns.push_back(expand_dims(word, {rank + 1}));
  Ints limit = words;
  limit.back() = count;
  return reshape(slice(reshape(concatenate(columns, rank + 1), words), Ints(words.size(), 0), limit), result);
}

bool is_plain(const Attributes& a) {
  const auto all = [](const Ints& list, auto&& good) { return std::all_of(list.begin(), list.end(), good); };
  const auto one = [](int64_t x) { return x == 1; };
  const auto not_negative = [](int64_t x) { return x >= 0; };
  return all(a.ints("base_dilation"), one) && all(a.ints("window_dilation"), one) && all(a.ints("low"), not_negative) &&
         all(a.ints("high"), not_negative);
}

// Each place of a window in turn: the elements of all windows that stand there are a strided slice of the padded operand.
Value select_and_scatter(Value x, Value cotangents, const Attributes& a) {
  const Ints &window = a.ints("window"), &strides = a.ints("strides"), &dilation = a.ints("window_dilation"), &low = a.ints("low"),
             &high = a.ints("high");
  const size_t rank = window.size();
  Ints interior = a.ints("base_dilation");
  for (int64_t& extent : interior) --extent;
  const bool largest = a.text("kind") == "max";
  const Value padded = pad(x, 0, low, high, interior);
  const Value there = pad(full(x.graph(), {DType::i32, x.shape()}, 1), 0, low, high, interior);  // 0 where padding stands
  const Shape &all = padded.shape(), &windows = cotangents.shape();
  const auto begin_of = [&](int64_t place) {
    Ints begin(rank);
    for (size_t axis = rank; axis-- > 0; place /= window[axis]) begin[axis] = place % window[axis] * dilation[axis];
    return begin;
  };
  const auto extent = [&](size_t axis) { return (windows[static_cast<int64_t>(axis)] - 1) * strides[axis] + 1; };
  const int64_t places = Shape(window).elements();
  Value best, found, chosen = full(x.graph(), {DType::i32, windows}, 0);
  for (int64_t place = 0; place < places; ++place) {
    const Ints begin = begin_of(place);
    Ints limit(rank);
    for (size_t axis = 0; axis < rank; ++axis) limit[axis] = begin[axis] + extent(axis);
    const Value here = slice(padded, begin, limit, strides), counts = compare(slice(there, begin, limit, strides), 1, Direction::EQ);
    if (place == 0) {
      best = here;
      found = counts;
      continue;
    }
    const Value larger =
        logical_or(compare(here, best, largest ? Direction::GT : Direction::LT), logical_and(is_nan(here), logical_not(is_nan(best))));
    const Value better = logical_and(counts, logical_or(logical_not(found), larger));
    found = logical_or(found, counts);
    best = select(better, here, best);
    chosen = select(better, full_like(chosen, static_cast<double>(place)), chosen);
  }
  Value sum;
  Ints gaps = strides;
  for (int64_t& gap : gaps) --gap;
  for (int64_t place = 0; place < places; ++place) {
    const Ints begin = begin_of(place);
    Ints behind(rank);
    for (size_t axis = 0; axis < rank; ++axis) behind[axis] = all[static_cast<int64_t>(axis)] - begin[axis] - extent(axis);
    const Value here = select(compare(chosen, static_cast<double>(place), Direction::EQ), cotangents, full_like(cotangents, 0));
    const Value back = pad(here, 0, begin, behind, gaps);
    sum = sum ? sum + back : back;
  }
  Ints less_low = low, less_high = high;
  for (int64_t& edge : less_low) edge = -edge;
  for (int64_t& edge : less_high) edge = -edge;
  const Value cropped = pad(sum, 0, less_low, less_high);
  return slice(cropped, Ints(rank, 0), cropped.shape().extents(), a.ints("base_dilation"));
}

bool has_any(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
    return node.op == Op::random_bits || node.op == Op::select_and_scatter || (node.body && has_any(*node.body));
  });
}

}  // namespace

Graph expand(const Graph& graph) {
  if (!has_any(graph)) return graph.clone();
  Rebuild out(graph);
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::random_bits) {
      out.map(node.results[0], philox(out[node.operands[0]], node.attributes.ints("shape")));
    } else if (node.op == Op::select_and_scatter && (!is_plain(node.attributes) || graph.type(node.operands[0]).shape.elements() == 0)) {
      out.map(node.results[0], select_and_scatter(out[node.operands[0]], out[node.operands[1]], node.attributes));
    } else {
      out.copy(node, node.body ? std::make_shared<const Graph>(expand(*node.body)) : nullptr);
    }
  }
  return out.finish();
}

}  // namespace tutti::xla
