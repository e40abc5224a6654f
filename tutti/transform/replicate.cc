#include "tutti/transform/replicate.h"

#include <algorithm>
#include <numeric>

#include "tutti/graph/build.h"
#include "tutti/transform/rebuild.h"

namespace tutti {

namespace {

constexpr int64_t least_divided = 256;  // elements: below, to divide costs more than to do it twice
constexpr int64_t cache_line = 16;      // elements: what two replicas write is never in one cache line

// Which values of an update may be divided between replicas: those connected by elementwise nodes alone.
class UpdateDivision {
 public:
  explicit UpdateDivision(const Graph& graph) : graph_(graph), parent_(graph.value_count()), whole_(graph.value_count()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (const Node& node : graph.nodes())
      if (is_elementwise(node.op) && is_long(node.results[0])) {
        for (ValueId id : node.operands) join(id, node.results[0]);
      } else {
        for (ValueId id : node.results) make_whole_unless_leaf(node, id);
        for (ValueId id : node.operands) set_whole(id);
      }
    for (const auto& update : graph.updates()) {
      if (repeats_one(update.next)) set_whole(update.state);
      if (is_long(update.state)) join(update.next, update.state);
    }
    for (const auto& output : graph.outputs()) set_whole(output.value);
  }

  bool divided(ValueId id) const { return is_long(id) && !repeats_one(id) && !whole_[static_cast<size_t>(find(id))]; }
  // One number in all elements: each replica repeats it as often as it needs.
  bool repeats_one(ValueId id) const {
    const Node& node = graph_.maker(id);
    return node.op == Op::broadcast_in_dim && graph_.type(node.operands[0]).shape.elements() == 1;
  }

 private:
  bool is_long(ValueId id) const { return graph_.type(id).shape.elements() >= least_divided; }
  ValueId find(ValueId id) const {
    while (parent_[at(id)] != id) id = parent_[at(id)];
    return id;
  }
  void join(ValueId a, ValueId b) {
    if (repeats_one(a) || repeats_one(b)) return;
    a = find(a), b = find(b);
    if (a == b) return;
    parent_[at(a)] = b;
    if (whole_[at(a)]) whole_[at(b)] = true;
  }
  void set_whole(ValueId id) { whole_[at(find(id))] = true; }
  void make_whole_unless_leaf(const Node& node, ValueId id) {
    if (node.op != Op::parameter && !repeats_one(id)) set_whole(id);
  }

  const Graph& graph_;
  std::vector<ValueId> parent_;  // towards the one that stands for all that are connected
  std::vector<bool> whole_;
};

Value part_of_leaf(Graph& to, const Graph& from, const Node& node, ElementRange range) {
  const ValueId id = node.results[0];
  const Type type{from.type(id).dtype, {range.size()}};
  Tensor initial(type);
  const auto all = node.literal.bytes();
  const auto width = static_cast<size_t>(byte_size(type.dtype));
  std::ranges::copy(all.subspan(static_cast<size_t>(range.begin) * width, initial.bytes().size()), initial.bytes().begin());
  return to.parameter(Graph::Role::state, node.attributes.text("name"), type, initial);
}

}  // namespace

int64_t bucket_for(double latency_seconds, double bytes_per_second) {
  int64_t out = least_bucket_bytes;
  while (out < most_bucket_bytes && static_cast<double>(out) < 9 * latency_seconds * bytes_per_second) out *= 2;
  return out;
}

std::vector<std::vector<size_t>> buckets_of(std::span<const Type> types, int64_t bytes) {
  std::vector<std::vector<size_t>> out;
  int64_t room = 0;
  for (size_t i = types.size(); i-- > 0;) {
    if (room <= 0 || types[out.back().back()].dtype != types[i].dtype) {
      out.emplace_back();
      room = bytes;
    }
    out.back().push_back(i);
    room -= types[i].bytes();
  }
  return out;
}

std::vector<Value> reduce_in_buckets(const std::vector<Value>& values, int64_t replicas, int64_t bytes) {
  std::vector<Type> types;
  for (Value value : values) types.push_back(value.type());
  std::vector<Value> out(values.size());
  for (const auto& bucket : buckets_of(types, bytes)) {
    std::vector<Value> some;
    for (size_t i : bucket) some.push_back(values[i]);
    const auto sums = all_reduce(some, replicas);
    for (size_t i = 0; i < bucket.size(); ++i) out[bucket[i]] = sums[i];
  }
  return out;
}

Graph reduce_inputs(const Graph& update, int64_t replicas, int64_t bytes) {
  Rebuild rebuild(update);
  std::vector<ValueId> ids;
  std::vector<Value> own;
  for (const Node* node : update.parameters(Graph::Role::input)) {
    ids.push_back(node->results[0]);
    own.push_back(rebuild.graph().input(node->attributes.text("name"), update.type(ids.back())));
  }
  const std::vector<Value> sums = reduce_in_buckets(own, replicas, bytes);
  for (size_t i = 0; i < ids.size(); ++i) rebuild.map(ids[i], sums[i]);
  for (const Node& node : update.nodes())
    if (!rebuild[node.results[0]]) rebuild.copy(node);
  return rebuild.finish();
}

ElementRange range_of_part(int64_t elements, int64_t part, int64_t parts) {
  const int64_t lines = (elements + cache_line - 1) / cache_line;
  const auto place = [&](int64_t i) { return std::min(elements, lines * i / parts * cache_line); };
  return {place(part), place(part + 1)};
}

SharedUpdate share_update(const Graph& update, int64_t part, int64_t parts) {
  const UpdateDivision division(update);
  SharedUpdate out;
  Rebuild rebuild(update);
  Graph& to = rebuild.graph();
  const auto range = [&](ValueId id) { return range_of_part(update.type(id).shape.elements(), part, parts); };
  const auto operand = [&](ValueId id, ValueId like) {  // of an elementwise node that is divided
    const Node& node = update.maker(id);
    if (!division.repeats_one(id)) return rebuild[id];
    return broadcast_in_dim(reshape(rebuild[node.operands[0]], {}), {range(like).size()}, {});
  };
  for (const Node& node : update.nodes()) {
    const ValueId id = node.results[0];
    const bool divided = division.divided(id);
    if (node.op == Op::parameter && role(node) == Graph::Role::input) {
      out.divided_inputs.push_back(divided);
      const Type type = divided ? Type{update.type(id).dtype, {range(id).size()}} : update.type(id);
      Value sum;
      for (int64_t replica = 0; replica < parts; ++replica) {
        const Value own = to.input(node.attributes.text("name"), type);
        sum = sum ? sum + own : own;
      }
      rebuild.map(id, sum);
    } else if (!divided) {
      rebuild.copy(node);
    } else if (node.op == Op::parameter) {
      out.divided_states.push_back(node.attributes.text("name"));
      rebuild.map(id, part_of_leaf(to, update, node, range(id)));
    } else {
      std::vector<Value> operands;
      for (ValueId from : node.operands) operands.push_back(operand(from, id));
      rebuild.map(id, to.add(node.op, operands, node.attributes)[0]);
    }
  }
  out.graph = rebuild.finish();
  return out;
}

}  // namespace tutti
