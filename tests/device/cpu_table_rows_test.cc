// Gathers and scatters of whole rows against the reference device, bit by bit.
#include <gtest/gtest.h>

#include "tests/device/random_data.h"
#include "tests/device/run_graph.h"
#include "tutti/device/report.h"
#include "tutti/graph/build.h"
#include "tutti/graph/compose.h"

namespace tutti::cpu {
namespace {

// Inside and outside of a table of so many rows, many of them again and again; negative ones count from the end.
Tensor indices(const Shape& shape, int64_t rows) {
  Tensor out(DType::i32, shape);
  auto values = out.as<int32_t>();
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<int32_t>((i * i * 7 + i) % static_cast<size_t>(2 * rows + 3)) - static_cast<int32_t>(rows);
  return out;
}

bool uses(const Graph& graph, std::string_view kernel) {
  CompileReport report;
  CompileSettings settings{.report = &report};
  open_device("cpu")->compile(graph, settings);
  return std::any_of(report.steps.begin(), report.steps.end(), [&](const auto& step) { return step.kernel == kernel; });
}

void expect_as_reference(const Graph& graph, const std::vector<Tensor>& inputs) {
  const auto want = Runner(graph, "reference")(inputs);
  for (int threads : {1, 3}) {
    Runner runner(graph, "cpu", threads);
    for (int turn = 0; turn < 2; ++turn) {
      const auto got = runner(inputs);
      for (size_t i = 0; i < want.size(); ++i)
        ASSERT_TRUE(std::ranges::equal(got[i].bytes(), want[i].bytes())) << threads << " threads, output " << i << "\n"
                                                                         << print_graph(graph);
    }
  }
}

TEST(cpu_table_rows, of_indices_outside_are_what_take_makes_of_them) {
  for (const int64_t width : {1, 3, 64, 200}) {
    Graph graph;
    const Value table = graph.input("table", {DType::f32, {50, width}}), at = graph.input("at", {DType::i32, {400, 9}});
    graph.output("y", take(table, at, 0));
    EXPECT_TRUE(uses(graph, width == 1 ? "gather rows" : "gather rows+select"));
    expect_as_reference(graph, {f32({50, width}, random_floats(50 * width, -1, 1, 7)), indices({400, 9}, 50)});
  }
}

// As many truths as there are indices, but not one for each of them.
TEST(cpu_table_rows, of_a_choice_within_rows_are_chosen_after_they_are_gathered) {
  Graph graph;
  const Value table = graph.input("table", {DType::f32, {50, 6}}), at = graph.input("at", {DType::i32, {6, 8}});
  const Value limits = graph.input("limits", {DType::f32, {1, 8, 6}});
  const Value rows = gather(table, reshape(at, {6, 8, 1}), {{2}, {0}, {}, {}, {0}, 2}, {1, 6});
  const Value chosen = broadcast_in_dim(compare(limits, 0, Direction::GT), {6, 8, 6}, {0, 1, 2});
  graph.output("y", select(chosen, rows, broadcast_in_dim(scalar(graph, DType::f32, -1), {6, 8, 6}, {})));
  EXPECT_TRUE(uses(graph, "gather rows"));
  expect_as_reference(graph,
                      {f32({50, 6}, random_floats(300, -1, 1, 7)), indices({6, 8}, 50), f32({1, 8, 6}, random_floats(48, -1, 1, 8))});
}

TEST(cpu_table_rows, are_summed_in_the_order_of_the_indices) {
  for (const bool from_zero : {true, false}) {
    Graph graph;
    const Value table = graph.input("table", {DType::f32, {300, 40}}), at = graph.input("at", {DType::i32, {5000}});
    const Value updates = graph.input("updates", {DType::f32, {5000, 40}});
    const Value begin = from_zero ? broadcast_in_dim(scalar(graph, DType::f32, 0), {300, 40}, {}) : table * table;
    const ScatterDims dims{{1}, {0}, {}, {}, {0}, 1};
    graph.output("y", scatter(begin, at, updates, dims, "add"));
    EXPECT_TRUE(uses(graph, "scatter rows"));
    expect_as_reference(graph, {f32({300, 40}, random_floats(300 * 40, -1, 1, 7)), indices({5000}, 300),
                                f32({5000, 40}, random_floats(5000 * 40, -1, 1, 8))});
  }
}

TEST(cpu_table_rows, of_stacked_tables) {
  Graph graph;
  const Value table = graph.input("table", {DType::f32, {3, 70, 20}}), at = graph.input("at", {DType::i32, {3, 600, 1}});
  const Value rows = gather(table, at,
                            {.offset_dims = {2},
                             .collapsed_slice_dims = {1},
                             .operand_batching_dims = {0},
                             .start_indices_batching_dims = {0},
                             .start_index_map = {1},
                             .index_vector_dim = 2},
                            {1, 1, 20});
  graph.output("rows", rows);
  graph.output("sums", scatter(-table, at, rows,
                               {.update_window_dims = {2},
                                .inserted_window_dims = {1},
                                .input_batching_dims = {0},
                                .scatter_indices_batching_dims = {0},
                                .scatter_dims_to_operand_dims = {1},
                                .index_vector_dim = 2},
                               "add"));
  EXPECT_TRUE(uses(graph, "gather rows") && uses(graph, "scatter rows"));
  expect_as_reference(graph, {f32({3, 70, 20}, random_floats(3 * 70 * 20, -1, 1, 7)), indices({3, 600, 1}, 70)});
}

}  // namespace
}  // namespace tutti::cpu
