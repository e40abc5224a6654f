#include "tutti/transform/pass.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/graph/build.h"

namespace tutti {
namespace {

Graph two_nodes() {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {2}});
  graph.output("y", tanh(x));
  return graph;
}

Graph nothing(const Graph& graph) { return graph.clone(); }

// One node more each time, up to five.
Graph lengthen(const Graph& graph) {
  Graph out = graph.clone();
  if (out.nodes().size() < 5) out.add(Op::tanh, {Value(&out, 0)});
  return out;
}

TEST(Passes, run_in_order_until_nothing_changes) {
  std::vector<PassReport> report;
  Pass passes[] = {{"lengthen", lengthen}, {"nothing", nothing}};
  Graph out = run_passes(two_nodes(), passes, {.rounds = 10, .report = &report});
  EXPECT_EQ(out.nodes().size(), 5u);
  ASSERT_EQ(report.size(), 8u);  // three rounds that change something, one that does not
  EXPECT_EQ(report[0].name, "lengthen");
  EXPECT_EQ(report[0].nodes_before, 2u);
  EXPECT_EQ(report[0].nodes_after, 3u);
  EXPECT_EQ(report[1].name, "nothing");
  EXPECT_EQ(report[7].nodes_after, 5u);
  EXPECT_GE(report[0].microseconds, 0);
}

TEST(Passes, end_after_the_given_rounds) {
  Pass passes[] = {{"lengthen", lengthen}};
  EXPECT_EQ(run_passes(two_nodes(), passes, {.rounds = 2}).nodes().size(), 4u);
}

TEST(Passes, are_skipped_by_name) {
  std::vector<PassReport> report;
  Pass passes[] = {{"lengthen", lengthen}, {"nothing", nothing}};
  Graph out = run_passes(two_nodes(), passes, {.skip = {"lengthen"}, .report = &report});
  EXPECT_EQ(out.nodes().size(), 2u);
  EXPECT_EQ(report.size(), 1u);
}

TEST(Passes, refuse_to_skip_what_is_not_there) {
  Pass passes[] = {{"lengthen", lengthen}};
  try {
    run_passes(two_nodes(), passes, {.skip = {"lenghten"}});
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'lengthen'"), std::string::npos) << error.what();
  }
}

TEST(Passes, that_break_a_graph_are_named) {
  Pass passes[] = {{"nothing", nothing}, {"break_it", [](const Graph& graph) {
                                            Graph out = graph.clone();
                                            out.update(Value(&out, 0), Value(&out, 0));  // an input is no state
                                            return out;
                                          }}};
  try {
    run_passes(two_nodes(), passes, {.verify = true});
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("after break_it"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tutti
