// What a pass could break, broken through a const_cast: graphs offer no way to do it.
#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/graph/build.h"

namespace tutti {
namespace {

std::string complaint(const Graph& graph) {
  try {
    verify(graph);
  } catch (const InternalError& e) {
    return e.what();
  }
  return "";
}

Node& node(Graph& graph, size_t i) { return const_cast<Node&>(graph.nodes()[i]); }

struct Sample {
  Graph graph;
  Value x, y, state;
  Sample() {
    x = graph.input("x", {DType::f32, {2, 3}});
    state = graph.parameter(Graph::Role::state, "s", {DType::f32, {2, 3}}, Tensor(DType::f32, {2, 3}));
    y = tanh(x) + state;
    graph.output("y", y);
    graph.update(state, y);
  }
};

TEST(verify, takes_a_sound_graph) { EXPECT_EQ(complaint(Sample().graph), ""); }

TEST(verify, sees_a_value_used_before_it_is_made) {
  Sample s;
  node(s.graph, 2).operands[0] = s.y.id();
  EXPECT_NE(complaint(s.graph).find("node 2 (tanh) uses value %3 before it is made"), std::string::npos) << complaint(s.graph);
  node(s.graph, 2).operands[0] = 99;
  EXPECT_NE(complaint(s.graph).find("uses value %99"), std::string::npos);
  node(s.graph, 2).operands[0] = -1;
  EXPECT_NE(complaint(s.graph).find("uses value %-1"), std::string::npos);
}

TEST(verify, sees_a_type_that_the_op_does_not_give) {
  Sample s;
  node(s.graph, 2).op = Op::is_finite;
  EXPECT_NE(complaint(s.graph).find("node 2 (is_finite) should give bool[2, 3], is f32[2, 3]"), std::string::npos) << complaint(s.graph);
}

TEST(verify, sees_operands_and_attributes_that_do_not_fit) {
  Sample s;
  node(s.graph, 3).op = Op::reshape;
  EXPECT_NE(complaint(s.graph).find("reshape takes 1 operands; got 2"), std::string::npos) << complaint(s.graph);
  node(s.graph, 3).operands.pop_back();
  EXPECT_NE(complaint(s.graph).find("reshape needs attribute shape:ints"), std::string::npos) << complaint(s.graph);
}

TEST(verify, sees_a_wrong_number_of_results) {
  Sample s;
  node(s.graph, 3).results.clear();
  EXPECT_NE(complaint(s.graph).find("node 3 (add) has 0 results"), std::string::npos) << complaint(s.graph);
}

TEST(verify, sees_outputs_and_updates_that_do_not_fit) {
  Sample s;
  s.graph.output("z", Value(&s.graph, 50));
  EXPECT_NE(complaint(s.graph).find("output 'z' does not exist"), std::string::npos) << complaint(s.graph);

  Sample t;
  t.graph.update(t.state, reduce(t.y, "add", {0}));
  EXPECT_NE(complaint(t.graph).find("update of %1 does not fit"), std::string::npos) << complaint(t.graph);

  Sample u;
  u.graph.update(u.x, u.y);
  EXPECT_NE(complaint(u.graph).find("%0 is updated and not a state"), std::string::npos) << complaint(u.graph);

  Sample v;
  v.graph.update(v.state, v.x);
  EXPECT_NE(complaint(v.graph).find("%1 is updated twice"), std::string::npos) << complaint(v.graph);
}

TEST(verify, looks_into_bodies) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {2}});
  scan({x}, {}, {}, 3, false, [](Graph&, auto carries, auto, auto) { return ScanStep{{tanh(carries[0])}, {}}; });
  EXPECT_EQ(complaint(graph), "");
  const_cast<Node&>(graph.nodes()[1].body->nodes()[1]).op = Op::is_finite;
  EXPECT_NE(complaint(graph).find("node 1 (is_finite)"), std::string::npos) << complaint(graph);
}

TEST(verify, sees_a_literal_of_another_type) {
  Graph graph;
  scalar(graph, DType::f32, 1);
  node(graph, 0).literal = Tensor(DType::f64, {});
  EXPECT_NE(complaint(graph).find("literal of another type"), std::string::npos) << complaint(graph);
}

}  // namespace
}  // namespace tutti
