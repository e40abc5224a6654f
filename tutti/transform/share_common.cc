#include <algorithm>
#include <unordered_map>

#include "tutti/transform/passes.h"
#include "tutti/transform/rebuild.h"

namespace tutti {

namespace {

void mix(size_t& hash, size_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15u + (hash >> 31); }

size_t hash_of(const AttributeValue& value) {
  size_t out = value.index();
  if (const auto* ints = std::get_if<Ints>(&value)) {
    for (int64_t i : *ints) mix(out, static_cast<size_t>(i));
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    mix(out, std::hash<std::string>()(*text));
  } else if (const auto* integer = std::get_if<int64_t>(&value)) {
    mix(out, static_cast<size_t>(*integer));
  } else {
    mix(out, std::hash<double>()(std::get<double>(value)));
  }
  return out;
}

// Equal nodes have equal hashes; of literals the beginning is enough to tell most apart.
size_t hash_of(const Node& node, const Type& type) {
  auto out = static_cast<size_t>(node.op);
  for (ValueId id : node.operands) mix(out, static_cast<size_t>(id));
  for (const Attribute& attribute : node.attributes.items()) mix(out, hash_of(attribute.value));
  mix(out, static_cast<size_t>(type.dtype));
  for (int64_t extent : type.shape) mix(out, static_cast<size_t>(extent));
  if (node.op == Op::constant)
    for (std::byte b : node.literal.bytes().first(static_cast<size_t>(std::min<int64_t>(type.bytes(), 32))))
      mix(out, static_cast<size_t>(b));
  return out;
}

bool same_work(const Graph& graph, const Node& a, const Node& b) {
  return a.op == b.op && a.operands == b.operands && a.attributes == b.attributes && same_literal(a.literal, b.literal) &&
         graph.type(a.results[0]) == graph.type(b.results[0]) && (a.body == b.body || (a.body && b.body && same_graph(*a.body, *b.body)));
}

}  // namespace

Graph share_common(const Graph& graph) {
  Rebuild rebuild(graph);
  Graph& to = rebuild.graph();
  std::unordered_multimap<size_t, int32_t> seen;  // hash -> node of the new graph
  for (const Node& node : graph.nodes()) {
    std::shared_ptr<const Graph> body = node.body ? std::make_shared<const Graph>(share_common(*node.body)) : nullptr;
    if (node.op == Op::parameter || node.results.empty()) {
      rebuild.copy(node, body);
      continue;
    }
    Node candidate{node.op, {}, {}, node.attributes, node.literal, body};
    for (Value operand : rebuild.operands(node)) candidate.operands.push_back(operand.id());
    size_t hash = hash_of(candidate, graph.type(node.results[0]));
    const Node* found = nullptr;
    auto [first, last] = seen.equal_range(hash);
    for (auto entry = first; entry != last && found == nullptr; ++entry) {
      const Node& known = to.nodes()[static_cast<size_t>(entry->second)];
      candidate.results = known.results;
      if (graph.type(node.results[0]) == to.type(known.results[0]) && same_work(to, candidate, known)) found = &known;
    }
    if (found != nullptr) {
      for (size_t i = 0; i < node.results.size(); ++i) rebuild.map(node.results[i], Value(&to, found->results[i]));
    } else {
      seen.emplace(hash, static_cast<int32_t>(to.nodes().size()));
      rebuild.copy(node, body);
    }
  }
  return rebuild.finish();
}

}  // namespace tutti
