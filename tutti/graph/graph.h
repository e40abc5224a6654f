// The graph: nodes in topological order, immutable values, static shapes. A model, a training step and an ensemble are all one of these.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "tutti/graph/op.h"

namespace tutti {

using ValueId = int32_t;
inline size_t at(ValueId id) { return static_cast<size_t>(id); }  // where a table by value has its row

// A handle on a value of a graph under construction; build.h gives it arithmetic.
class Value {
 public:
  Value() = default;
  Value(Graph* graph, ValueId id) : graph_(graph), id_(id) {}
  Graph& graph() const { return *graph_; }
  ValueId id() const { return id_; }
  explicit operator bool() const { return graph_ != nullptr; }
  const Type& type() const;
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
  int64_t rank() const { return shape().rank(); }
  int64_t extent(int64_t axis) const;  // negative axes count from the end; throws InvalidArgument outside of the rank

 private:
  Graph* graph_ = nullptr;
  ValueId id_ = -1;
};

struct Node {
  Op op;
  std::vector<ValueId> operands, results;
  Attributes attributes;
  Tensor literal;                     // a constant's value; a weight's or state's initial value
  std::shared_ptr<const Graph> body;  // of scan
  int32_t origin = -1;                // which of the graph's origins it comes from; -1: none
};

class Graph {
 public:
  Graph() = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;
  Graph(const Graph&) = delete;  // values point at their graph; clone() says it aloud
  Graph& operator=(const Graph&) = delete;
  Graph clone() const;

  enum class Role { input, weight, state };
  Value parameter(Role role, std::string name, Type type, Tensor initial = {});
  Value input(std::string name, Type type) { return parameter(Role::input, std::move(name), std::move(type)); }
  Value constant(Tensor literal);
  Value iota(Type type, int64_t dimension);
  // Infers the result types; throws InvalidArgument when the operands do not fit.
  std::vector<Value> add(Op op, const std::vector<Value>& operands, Attributes attributes = {}, std::shared_ptr<const Graph> body = {});

  void output(std::string name, Value value);
  // A state parameter's new value after each run.
  void update(Value state, Value next);

  struct Output {
    std::string name;
    ValueId value;
  };
  struct Update {
    ValueId state, next;
  };
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Output>& outputs() const { return outputs_; }
  const std::vector<Update>& updates() const { return updates_; }
  size_t value_count() const { return values_.size(); }
  const Type& type(ValueId id) const { return values_[at(id)].type; }
  int32_t producer(ValueId id) const { return values_[at(id)].node; }
  const Node& maker(ValueId id) const { return nodes_[static_cast<size_t>(producer(id))]; }  // the node whose result it is
  // Where nodes come from, for people: names of layers. Passes keep them as well as they can.
  using Origins = std::shared_ptr<const std::vector<std::string>>;
  const Origins& origins() const { return origins_; }
  void set_origins(Origins origins) { origins_ = std::move(origins); }
  // The nodes [first, end) that have no origin yet, or all of them, come from there.
  void set_origin(size_t first, size_t end, int32_t origin, bool all = false);
  // The nodes that are parameters of a role, in order of creation.
  std::vector<const Node*> parameters(Role role) const;

 private:
  struct ValueInfo {
    Type type;
    int32_t node;
  };
  std::vector<Value> append(Node node, const Type* declared);
  std::vector<Node> nodes_;
  std::deque<ValueInfo> values_;  // types stay where they are while the graph grows: Value::shape() is a reference
  std::vector<Output> outputs_;
  std::vector<Update> updates_;
  Origins origins_;
};

// A leaf of `from` (parameter, constant, iota) in another graph; a parameter's name gets the prefix.
Value copy_leaf(Graph& to, const Graph& from, const Node& leaf, const std::string& prefix = "");

std::string_view name(Graph::Role role);
// The role of a parameter node.
Graph::Role role(const Node& parameter);

// Rechecks everything a pass could have broken: order, types, attributes, bodies, outputs. Throws InternalError.
void verify(const Graph& graph);

// One line a node; parse_graph reads it back (weights come back without data). Constants longer than `longest` elements are elided and
// cannot be parsed.
std::string print_graph(const Graph& graph, int64_t longest = 64);
Graph parse_graph(std::string_view text);

}  // namespace tutti
