#include "tutti/transform/stack.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <queue>

#include "tutti/base/error.h"
#include "tutti/graph/batching.h"
#include "tutti/graph/compose.h"
#include "tutti/transform/rebuild.h"

namespace tutti {

namespace {

// Made anew wherever it is needed, so it belongs to no region; the graph's inputs come from outside.
bool is_free_leaf(const Node& node) {
  return row(node.op).op_class == OpClass::leaf && !(node.op == Op::parameter && role(node) != Graph::Role::weight);
}

std::vector<size_t> inner_nodes(const Graph& graph, const Region& region) {
  std::vector<size_t> out;
  for (size_t i = region.first; i < region.end; ++i)
    if (row(graph.nodes()[i].op).op_class != OpClass::leaf) out.push_back(i);
  return out;
}

std::string attribute_text(const Attributes& attributes) {
  std::string out;
  for (const auto& [name, value] : attributes.items()) {
    out += fmt::format(" {}=", name);
    if (const auto* integer = std::get_if<int64_t>(&value)) out += fmt::format("{}", *integer);
    if (const auto* number = std::get_if<double>(&value)) out += fmt::format("{}", *number);
    if (const auto* text = std::get_if<std::string>(&value)) out += *text;
    if (const auto* ints = std::get_if<Ints>(&value)) out += fmt::format("[{}]", fmt::join(*ints, ","));
  }
  return out;
}

// What a region does, in words that are equal for regions alike: ops, attributes and types, operands by their place in the region.
std::string structure_of(const Graph& graph, const std::vector<size_t>& nodes) {
  std::map<ValueId, size_t> places;
  std::string out;
  for (size_t i : nodes) {
    const Node& node = graph.nodes()[i];
    out += name(node.op);
    out += attribute_text(node.attributes);
    for (ValueId id : node.operands) {
      const Node& from = graph.maker(id);
      if (auto place = places.find(id); place != places.end())
        out += fmt::format(" %{}", place->second);
      else
        out += fmt::format(" {}{} {}", is_free_leaf(from) ? name(from.op) : "outside",
                           from.op == Op::iota ? attribute_text(from.attributes) : "", to_string(graph.type(id)));
    }
    if (node.body) out += print_graph(*node.body, std::numeric_limits<int64_t>::max());
    for (ValueId id : node.results) {
      out += " -> " + to_string(graph.type(id));
      places.emplace(id, places.size());
    }
    out += '\n';
  }
  return out;
}

// Which group every node belongs to.
class Membership {
 public:
  Membership(const Graph& graph, std::span<const std::vector<Region>> groups) : graph_(graph), group_(graph.nodes().size(), -1) {
    for (size_t g = 0; g < groups.size(); ++g)
      for (const Region& region : groups[g])
        for (size_t i : inner_nodes(graph, region)) group_[i] = static_cast<int32_t>(g);
  }
  // Nodes and whole groups in an order in which each comes after what it needs, groups as -1 - index; nothing when there is none.
  std::optional<std::vector<int64_t>> order(size_t groups) const {
    const size_t count = graph_.nodes().size();
    const auto unit = [&](size_t node) { return group_[node] < 0 ? node : count + static_cast<size_t>(group_[node]); };
    std::vector<std::vector<size_t>> users(count + groups);
    std::vector<int64_t> waits(count + groups);
    for (size_t i = 0; i < count; ++i)
      for (ValueId id : graph_.nodes()[i].operands) {
        const size_t from = unit(static_cast<size_t>(graph_.producer(id))), to = unit(i);
        if (from == to && from >= count) continue;  // within a group: regions_are_apart has looked
        users[from].push_back(to);
        ++waits[to];
      }
    // The earliest node that can, so that what is near stays near.
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
    size_t units = 0;
    for (size_t i = 0; i < count + groups; ++i) {
      if (i < count && group_[i] >= 0) continue;
      ++units;
      if (waits[i] == 0) ready.push(i);
    }
    std::vector<int64_t> out;
    while (!ready.empty()) {
      const size_t next = ready.top();
      ready.pop();
      out.push_back(next < count ? static_cast<int64_t>(next) : -1 - static_cast<int64_t>(next - count));
      for (size_t user : users[next])
        if (--waits[user] == 0) ready.push(user);
    }
    return out.size() == units ? std::optional(std::move(out)) : std::nullopt;
  }

 private:
  const Graph& graph_;
  std::vector<int32_t> group_;  // -1 for none
};

// Whether no region takes a value straight from another one.
bool regions_are_apart(const Graph& graph, const std::vector<Region>& regions) {
  std::vector<int32_t> owner(graph.nodes().size(), -1);
  for (size_t r = 0; r < regions.size(); ++r)
    for (size_t i : inner_nodes(graph, regions[r])) {
      if (owner[i] >= 0) return false;
      owner[i] = static_cast<int32_t>(r);
    }
  for (size_t i = 0; i < owner.size(); ++i)
    for (ValueId id : graph.nodes()[i].operands)
      if (int32_t from = owner[static_cast<size_t>(graph.producer(id))]; owner[i] >= 0 && from >= 0 && from != owner[i]) return false;
  return true;
}

class Stacker {
 public:
  Stacker(const Graph& from, std::span<const RegionGroup> groups) : from_(from), values_(from.value_count()), homes_(from.value_count()) {
    to_.set_origins(from.origins());
    for (const RegionGroup& group : groups) groups_.push_back({group.regions, group.how, {}, {}});
    for (size_t g = 0; g < groups_.size(); ++g)
      for (size_t r = 0; r < groups_[g].regions.size(); ++r) {
        groups_[g].nodes.push_back(inner_nodes(from, groups_[g].regions[r]));
        size_t place = 0;
        for (size_t i : groups_[g].nodes.back())
          for (ValueId id : from.nodes()[i].results) homes_[at(id)] = {static_cast<int32_t>(g), static_cast<int32_t>(r), place++};
      }
  }

  Graph run() {
    std::vector<std::vector<Region>> regions;
    for (const Group& group : groups_) regions.push_back(group.regions);
    const auto order = Membership(from_, regions).order(groups_.size());
    if (!order) fail<InternalError>("stack", "models that wait for each other cannot be stacked");
    for (const Node& node : from_.nodes())
      if (node.op == Op::parameter && !is_free_leaf(node)) value(node.results[0]);
    for (int64_t unit : *order) {
      if (unit < 0)
        together(groups_[static_cast<size_t>(-1 - unit)]);
      else if (const Node& node = from_.nodes()[static_cast<size_t>(unit)]; row(node.op).op_class != OpClass::leaf)
        copy(node);
    }
    for (const auto& update : from_.updates()) to_.update(value(update.state), value(update.next));
    for (const auto& output : from_.outputs()) to_.output(output.name, value(output.value));
    return std::move(to_);
  }

 private:
  struct Group {
    std::vector<Region> regions;
    Together how;
    std::vector<std::vector<size_t>> nodes;  // by region
    std::vector<Batched> results;            // by place in a region
    int64_t models() const { return static_cast<int64_t>(regions.size()); }
  };
  struct Home {
    int32_t group = -1, region = 0;
    size_t place = 0;
  };

  // What stands for a value of the old graph; leaves are made when first asked for, and members' parts cut out of what is stacked.
  Value value(ValueId id) {
    Value& found = values_[at(id)];
    if (found) return found;
    const Home& home = homes_[at(id)];
    if (home.group >= 0) {
      const Batched& result = groups_[static_cast<size_t>(home.group)].results[home.place];
      found = result.stacked ? index_axis(result.value, 0, home.region) : result.value;
    } else {
      found = copy_leaf(to_, from_, from_.maker(id));
    }
    return found;
  }

  void copy(const Node& node) {
    std::vector<Value> operands;
    for (ValueId id : node.operands) operands.push_back(value(id));
    const auto results = to_.add(node.op, operands, node.attributes, node.body);
    for (size_t i = 0; i < results.size(); ++i) values_[at(node.results[i])] = results[i];
    to_.set_origin(to_.nodes().size() - 1, to_.nodes().size(), node.origin);
  }

  // A value from outside for each of the models: one for all, or theirs side by side.
  Batched joined(const std::vector<ValueId>& ids) {
    if (auto known = joined_.find(ids); known != joined_.end()) return known->second;
    std::vector<Tensor> literals;
    for (ValueId id : ids)
      if (const Node& node = from_.maker(id); is_free_leaf(node) && !node.literal.empty()) literals.push_back(node.literal);
    const Node& first = from_.maker(ids[0]);
    bool same = std::all_of(ids.begin(), ids.end(), [&](ValueId id) { return id == ids[0]; });
    if (!same && first.op == Op::iota) same = is_free_leaf(first);  // alike, so equal
    if (!same && literals.size() == ids.size())
      same = std::all_of(literals.begin(), literals.end(), [&](const Tensor& literal) { return same_literal(literal, literals[0]); });
    Batched out;
    if (same) {
      out = {value(ids[0]), false};
    } else if (literals.size() == ids.size()) {
      Tensor literal = Tensor::stacked(literals);  // no copy where they lie side by side already
      const Type type = literal.type();
      const Value made = first.op == Op::constant
                             ? to_.constant(std::move(literal))
                             : to_.parameter(Graph::Role::weight, first.attributes.text("name"), type, std::move(literal));
      out = {made, true};
    } else {
      std::vector<Value> parts;
      for (ValueId id : ids) parts.push_back(value(id));
      out = {tutti::stack(parts, 0), true};
    }
    joined_.emplace(ids, out);
    return out;
  }

  // Operand k of node j of every region; nothing when it is made within the region.
  std::optional<std::vector<ValueId>> outside(const Group& group, size_t j, size_t k) const {
    std::vector<ValueId> ids;
    for (const auto& nodes : group.nodes) ids.push_back(from_.nodes()[nodes[j]].operands[k]);
    const Home& home = homes_[at(ids[0])];
    const bool inside = home.group >= 0 && &groups_[static_cast<size_t>(home.group)] == &group;
    return inside ? std::nullopt : std::optional(std::move(ids));
  }

  void together(Group& group) {
    if (group.how == Together::stacked)
      stack_group(group);
    else
      loop_group(group);
  }

  void stack_group(Group& group) {
    for (size_t j = 0; j < group.nodes[0].size(); ++j) {
      const Node& node = from_.nodes()[group.nodes[0][j]];
      const size_t made = to_.nodes().size();
      BatchedNode batched{to_, node, group.models(), {}};
      for (size_t k = 0; k < node.operands.size(); ++k) {
        const auto ids = outside(group, j, k);
        batched.operands.push_back(ids ? joined(*ids) : group.results[homes_[at(node.operands[k])].place]);
      }
      for (const Batched& result : batch(batched)) group.results.push_back(result);
      to_.set_origin(made, to_.nodes().size(), node.origin);
    }
  }

  // The places in a region whose values are read elsewhere.
  std::vector<bool> needed(const Group& group) const {
    const auto g = static_cast<int32_t>(&group - groups_.data());
    std::vector<bool> out;
    const auto need = [&](ValueId id) {
      const Home& home = homes_[at(id)];
      if (home.group != g) return;
      if (out.size() <= home.place) out.resize(home.place + 1);
      out[home.place] = true;
    };
    for (const Node& node : from_.nodes()) {
      const bool inside = !node.results.empty() && homes_[at(node.results[0])].group == g;
      if (!inside)
        for (ValueId id : node.operands) need(id);
    }
    for (const auto& output : from_.outputs()) need(output.value);
    for (const auto& update : from_.updates()) need(update.next);
    return out;
  }

  void loop_group(Group& group) {
    std::vector<Value> slices, whole;
    std::map<std::vector<ValueId>, std::pair<bool, size_t>> operands;  // outside: whether a slice, and which
    for (size_t j = 0; j < group.nodes[0].size(); ++j)
      for (size_t k = 0; k < from_.nodes()[group.nodes[0][j]].operands.size(); ++k)
        if (const auto ids = outside(group, j, k); ids && !operands.contains(*ids)) {
          const Batched found = joined(*ids);
          std::vector<Value>& list = found.stacked ? slices : whole;
          operands.emplace(*ids, std::pair(found.stacked, list.size()));
          list.push_back(found.value);
        }
    std::vector<bool> wanted = needed(group);
    std::vector<size_t> stacked_places;
    const auto step = [&](Graph& body, const std::vector<Value>&, const std::vector<Value>& own, const std::vector<Value>& all) {
      std::vector<Value> results;
      for (size_t j = 0; j < group.nodes[0].size(); ++j) {
        const Node& node = from_.nodes()[group.nodes[0][j]];
        std::vector<Value> inputs;
        for (size_t k = 0; k < node.operands.size(); ++k) {
          const auto ids = outside(group, j, k);
          if (!ids) {
            inputs.push_back(results[homes_[at(node.operands[k])].place]);
            continue;
          }
          const auto [sliced, index] = operands.at(*ids);
          inputs.push_back(sliced ? own[index] : all[index]);
        }
        for (Value result : body.add(node.op, inputs, node.attributes, node.body)) results.push_back(result);
      }
      ScanStep out;
      for (size_t place = 0; place < wanted.size(); ++place)
        if (wanted[place]) {
          stacked_places.push_back(place);
          out.stacked.push_back(results[place]);
        }
      return out;
    };
    const ScanResult found = scan({}, slices, whole, group.models(), false, step);
    group.results.resize(wanted.size());
    for (size_t i = 0; i < found.stacked.size(); ++i) group.results[stacked_places[i]] = {found.stacked[i], true};
  }

  const Graph& from_;
  Graph to_;
  std::vector<Value> values_;  // by value of the old graph
  std::vector<Home> homes_;
  std::vector<Group> groups_;
  std::map<std::vector<ValueId>, Batched> joined_;
};

}  // namespace

std::vector<std::vector<size_t>> group_alike(const Graph& graph, std::span<const Region> regions) {
  std::map<std::string, size_t> known;
  std::vector<std::vector<size_t>> candidates, out;
  for (size_t r = 0; r < regions.size(); ++r) {
    const auto nodes = inner_nodes(graph, regions[r]);
    if (nodes.empty()) continue;
    const auto [found, is_new] = known.emplace(structure_of(graph, nodes), candidates.size());
    if (is_new) candidates.emplace_back();
    candidates[found->second].push_back(r);
  }
  std::vector<std::vector<Region>> accepted;
  for (const auto& candidate : candidates) {
    if (candidate.size() < 2) continue;
    std::vector<Region> members;
    for (size_t r : candidate) members.push_back(regions[r]);
    if (!regions_are_apart(graph, members)) continue;
    accepted.push_back(std::move(members));
    if (Membership(graph, accepted).order(accepted.size()))
      out.push_back(candidate);
    else
      accepted.pop_back();
  }
  return out;
}

Graph stack(const Graph& graph, std::span<const RegionGroup> groups) { return Stacker(graph, groups).run(); }

std::string structure_of(const Graph& graph) {
  std::string out;
  for (const Node& node : graph.nodes()) {
    out += name(node.op);
    if (node.op == Op::parameter)
      out += fmt::format(" {}", name(role(node)));
    else
      out += attribute_text(node.attributes);
    out += fmt::format(" ({})", fmt::join(node.operands, " "));
    if (node.body) out += print_graph(*node.body, std::numeric_limits<int64_t>::max());
    for (ValueId id : node.results) out += fmt::format(" {} {}", id, to_string(graph.type(id)));
    out += '\n';
  }
  for (const auto& output : graph.outputs()) out += fmt::format("output {}\n", output.value);
  for (const auto& update : graph.updates()) out += fmt::format("update {} {}\n", update.state, update.next);
  return out;
}

Graph stack_models(const Graph& graph, int64_t models, const std::function<Tensor(const Node& state)>& initial) {
  Graph to;
  std::vector<Batched> values(graph.value_count());
  const auto stacked = [&](ValueId id) {
    const Batched& found = values[at(id)];
    return found.stacked ? found.value : repeat_for_models(found.value, models);
  };
  for (const Node& node : graph.nodes()) {
    Batched& first = values[at(node.results[0])];
    if (node.op == Op::parameter && !is_free_leaf(node)) {
      Ints extents = graph.type(node.results[0]).shape.extents();
      extents.insert(extents.begin(), models);
      const Type type{graph.type(node.results[0]).dtype, extents};
      const Graph::Role own = role(node);
      first = {to.parameter(own, node.attributes.text("name"), type, own == Graph::Role::state ? initial(node) : Tensor()), true};
      continue;
    }
    if (row(node.op).op_class == OpClass::leaf) {
      first = {copy_leaf(to, graph, node), false};
      continue;
    }
    BatchedNode batched{to, node, models, {}};
    for (ValueId id : node.operands) batched.operands.push_back(values[at(id)]);
    const auto results = batch(batched);
    for (size_t i = 0; i < results.size(); ++i) values[at(node.results[i])] = results[i];
  }
  for (const auto& update : graph.updates()) to.update(stacked(update.state), stacked(update.next));
  for (const auto& output : graph.outputs()) to.output(output.name, stacked(output.value));
  return to;
}

}  // namespace tutti
