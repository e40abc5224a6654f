// Fused loops against the reference device on the same graph: every elementwise op, every way to repeat an operand.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "tests/device/random_data.h"
#include "tests/device/run_graph.h"
#include "tutti/base/error.h"
#include "tutti/device/cpu/loops/fused_loop.h"
#include "tutti/device/step.h"
#include "tutti/graph/build.h"

namespace tutti::cpu {
namespace {

double as_double(const Tensor& tensor, int64_t i) {
  return dispatch(tensor.dtype(), [&](auto zero) { return static_cast<double>(tensor.as<decltype(zero)>()[static_cast<size_t>(i)]); });
}

// The whole graph as one loop: everything but parameters and constants.
std::vector<Tensor> run_fused(const Graph& graph, std::vector<Tensor>& inputs, int threads) {
  std::vector<const Node*> nodes;
  std::vector<ValueId> operands, results;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::parameter) operands.push_back(node.results[0]);
    if (is_fusible(node) || is_looked_through(node)) nodes.push_back(&node);
  }
  std::vector<Tensor> outputs;
  for (const auto& output : graph.outputs()) {
    results.push_back(output.value);
    outputs.emplace_back(graph.type(output.value));
  }
  auto kernel = make_fused_loop(graph, nodes, operands, results, [&](int64_t) { return threads; });
  std::vector<const std::byte*> from(inputs.size());
  std::vector<std::byte*> to(outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) from[i] = inputs[i].bytes().data();
  for (size_t i = 0; i < outputs.size(); ++i) to[i] = outputs[i].bytes().data();
  std::vector<std::byte> workspace(static_cast<size_t>(kernel.workspace));
  kernel.run({from.data(), to.data(), workspace.data()});
  return outputs;
}

void expect_as_reference(const Graph& graph, double tolerance = 1e-6, int most_threads = 2) {
  std::vector<Tensor> inputs;
  for (const Node* node : graph.parameters(Graph::Role::input))
    inputs.push_back(random_tensor(graph.type(node->results[0]), static_cast<unsigned>(inputs.size()) + 1));
  auto want = Runner(graph, "reference")(inputs);
  for (int threads = 1; threads <= most_threads; ++threads) {
    auto got = run_fused(graph, inputs, threads);
    for (size_t k = 0; k < want.size(); ++k) {
      for (int64_t i = 0; i < want[k].shape().elements(); ++i) {
        double a = as_double(want[k], i), b = as_double(got[k], i);
        if (std::isnan(a) && std::isnan(b)) continue;
        ASSERT_TRUE(a == b || std::fabs(a - b) <= tolerance * std::max(1.0, std::fabs(a)))
            << "output " << k << " element " << i << ": " << b << ", expected " << a << "\n"
            << print_graph(graph);
      }
    }
  }
}

TEST(cpu_fused_loop, every_elementwise_op_of_every_dtype) {
  for (const OpRow& row : op_table()) {
    if (row.op_class != OpClass::unary && row.op_class != OpClass::binary && row.op_class != OpClass::ternary) continue;
    if (row.op == Op::bitcast_convert) continue;
    for (DType dtype : all_dtypes) {
      for (int64_t count : {1, 7, 8, 9, 1024, 2500}) {
        Graph graph;
        std::vector<Value> operands;
        if (row.op == Op::select) operands.push_back(graph.input("p", {DType::boolean, {count}}));
        while (static_cast<int>(operands.size()) < row.at_least) operands.push_back(graph.input("x", {dtype, {count}}));
        Attributes attributes;
        if (row.op == Op::compare) attributes.set("direction", std::string("NE"));
        if (row.op == Op::convert) attributes.set("dtype", std::string("f16"));
        try {
          graph.output("y", graph.add(row.op, operands, attributes)[0]);
        } catch (const InvalidArgument&) {
          continue;  // not of this dtype
        }
        expect_as_reference(graph, dtype == DType::f16 || dtype == DType::bf16 ? 1e-2 : 1e-6, 1);
      }
    }
  }
}

TEST(cpu_fused_loop, every_conversion) {
  for (DType from : all_dtypes) {
    for (DType to : all_dtypes) {
      Graph graph;
      graph.output("y", graph.add(Op::convert, {graph.input("x", {from, {37}})}, {{"dtype", std::string(name(to))}})[0]);
      expect_as_reference(graph, 0);
    }
  }
}

TEST(cpu_fused_loop, every_comparison) {
  for (auto direction : {Direction::EQ, Direction::NE, Direction::GE, Direction::GT, Direction::LE, Direction::LT}) {
    for (DType dtype : {DType::f32, DType::i32, DType::i64, DType::u8}) {
      Graph graph;
      Value a = graph.input("a", {dtype, {5, 13}}), b = graph.input("b", {dtype, {13}});
      graph.output("y", compare(a, b, direction));
      graph.output("z", compare(a, 1, direction));
      expect_as_reference(graph, 0);
    }
  }
}

TEST(cpu_fused_loop, operands_repeated_along_any_axes) {
  const std::vector<Shape> wholes = {{2, 3, 5, 7}, {1, 40, 1, 48}, {3, 1100}, {5, 1, 3000}, {600, 3}, {2, 9, 600}, {4, 4, 4, 4, 4, 4}};
  for (const Shape& whole : wholes) {
    for (unsigned repeated = 0; repeated < (1u << whole.rank()); ++repeated) {
      Ints extents = whole.extents();
      for (size_t i = 0; i < extents.size(); ++i)
        if ((repeated >> i & 1) != 0) extents[i] = 1;
      Graph graph;
      Value x = graph.input("x", {DType::f32, whole}), y = graph.input("y", {DType::f32, extents});
      Value z = graph.input("z", {DType::i16, extents});
      graph.output("sum", (x + y) * broadcast_to(y, whole) - convert(broadcast_to(z, whole), DType::f32));
      graph.output("which", select(compare(y, x, Direction::LT), x, y));
      expect_as_reference(graph);
    }
  }
}

TEST(cpu_fused_loop, slices_are_read_where_they_lie) {
  for (int64_t columns : {1, 7, 40, 1500}) {
    for (DType dtype : {DType::f32, DType::f16, DType::u8}) {
      Graph graph;
      Value x = graph.input("x", {dtype, {6, 4 * columns}}), row = graph.input("row", {dtype, {3 * columns}});
      Value second = slice(x, {1, columns}, {5, 2 * columns}), third = slice(x, {0, 2 * columns}, {4, 3 * columns});
      Value repeated = broadcast_to(slice(row, {columns}, {2 * columns}), {4, columns});       // a slice, then repeated
      Value cut = slice(broadcast_to(row, {9, 3 * columns}), {2, columns}, {6, 2 * columns});  // the other way round
      graph.output("a", second + third * repeated - cut);
      expect_as_reference(graph, 1e-2);
      Graph steps;
      Value y = steps.input("x", {dtype, {6, 4 * columns}});
      steps.output("b", slice(y, {0, 0}, {5, 2 * columns}, {2, 2}) + slice(y, {1, 1}, {6, 2 * columns + 1}, {2, 2}));
      expect_as_reference(steps, 1e-2);
      Graph nested;
      Value z = nested.input("x", {dtype, {6, 4 * columns}});
      nested.output("c", maximum(slice(slice(z, {1, 1}, {6, 4 * columns}, {2, 3}), {1, 0}, {3, columns}), slice(z, {4, 0}, {6, columns})));
      expect_as_reference(nested, 1e-2);
    }
  }
}

TEST(cpu_fused_loop, the_steps_of_one_element_do_not_count) {
  const int64_t huge = int64_t{1} << 62;
  Graph graph;
  Value x = graph.input("x", {DType::f32, {4, 9}});
  Value row = slice(slice(x, {1, 0}, {4, 9}, {huge, 2}), {0, 0}, {1, 5}, {huge, 1});
  graph.output("sum", row + slice(x, {3, 4}, {4, 9}, {huge, 1}));
  expect_as_reference(graph);
}

TEST(cpu_fused_loop, several_results) {
  for (int64_t count : {1, 9, 3000}) {
    Graph graph;
    Value x = graph.input("x", {DType::f32, {3, count}}), state = tanh(x) + 1.0, positive = compare(state, 1, Direction::GT);
    graph.output("state", state);
    graph.output("positive", positive);
    graph.output("gated", logistic(state) * x);
    expect_as_reference(graph);
  }
}

TEST(cpu_fused_loop, more_axes_than_any_model_has) {
  Ints whole(20, 1), every_other(20, 1);
  for (size_t i = 0; i < 14; ++i) whole[i] = 2;
  for (size_t i = 0; i < 14; i += 2) every_other[i] = 2;
  Graph graph;
  Value x = graph.input("x", {DType::f32, whole}), y = graph.input("y", {DType::f32, every_other});
  graph.output("y", tanh(x + y) * y);
  expect_as_reference(graph);
}

TEST(cpu_fused_loop, registers_are_used_again) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {3, 2000}}), y = graph.input("y", {DType::f32, {3, 2000}});
  Value a = x * 2.0, b = y + 1.0, sum = x;
  for (int i = 0; i < 20; ++i) {
    sum = tanh(sum * a * 0.1 + b) - logistic(sum);
    if (i % 5 == 0) graph.output("s", sum);
  }
  graph.output("a", a);
  graph.output("y", select(compare(sum, 0.1, Direction::GT), sum * sum, minimum(maximum(b, 0.0), 6.0)));
  expect_as_reference(graph, 1e-5);
}

TEST(cpu_fused_loop, constants_on_either_side) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {50}});
  std::vector<Value> values = {x + 1.5,
                               1.5 - x,
                               x - 1.5,
                               x * 3.0,
                               2.0 / x,
                               maximum(x, 0.0),
                               minimum(x, 0.0),
                               maximum(x, -1.0),
                               power(x, 2),
                               power(abs(x), 0.5),
                               power(abs(x), 1.7),
                               power(x, 3.0),
                               power(x, -1.0),
                               power(abs(x), -0.5),
                               power(full_like(x, 2), x)};
  for (Value value : values) graph.output("y", value);
  expect_as_reference(graph, 2e-6);
}

TEST(cpu_fused_loop, composites_of_every_operand_order) {
  for (int64_t count : {5, 8, 1500}) {
    Graph graph;
    Value x = graph.input("x", {DType::f32, {3, count}}), row = graph.input("r", {DType::f32, {count}});
    Value column = graph.input("c", {DType::f32, {3, 1}}), one = graph.input("o", {DType::f32, {1, 1}});
    std::vector<Value> all = {x};
    for (Value small : {row, column, one}) all.push_back(broadcast_to(small, x.shape()));
    for (Value a : all) {
      for (Value b : all) {
        graph.output("y", maximum(x + a + b, 0.0));
        for (Value c : all) {
          graph.output("y", a * b + c);
          graph.output("y", maximum(c + a * b, 0.0));
          graph.output("y", a + (b - a) * c);
          graph.output("y", c * (b * b - a) + a);
          graph.output("y", a - b / (abs(c) + 1.0));
          graph.output("y", a - b / c);
        }
      }
    }
    for (Value a : all) {  // what an LSTM is made of
      const Value gate = logistic(x * 2), other = row - column;
      graph.output("y", logistic(a) * other);
      graph.output("y", a * logistic(other));
      graph.output("y", logistic(a) * tanh(other));
      graph.output("y", tanh(a) * logistic(other));
      graph.output("y", logistic(a) * x + logistic(x * 3) * tanh(other));
      graph.output("y", tanh(other) * logistic(x * 3) + x * logistic(a));
      graph.output("y", logistic(a) * tanh(x) + logistic(x) * tanh(a));
      graph.output("y", gate * x + gate * tanh(a));  // a gate that two read
    }
    for (Value scale : all) {
      graph.output("y", all[1] - x * scale / (sqrt(abs(x)) + 1e-3));  // what Adam ends with
      graph.output("y", x - scale * all[1] / (sqrt(x * x) + 1e-3));
    }
    graph.output("y", sqrt(abs(x)) + 1e-3);
    graph.output("y", sqrt(abs(x)) + row);
    graph.output("y", x + (row - x) * (row - x));  // a difference of the same in both places
    graph.output("y", x * logistic(x));
    graph.output("y", logistic(x) * x);
    graph.output("y", x * 0.5 * (erf(x * (1 / std::sqrt(2.0))) + 1));
    graph.output("y", x * 0.5 * (erf(x * 0.7) + 1));  // nearly one
    graph.output("y", x * (clamp(x + 3, 0, 6) / 6));
    graph.output("y", select(compare(x, 0, Direction::GE), x, x * 0.3));
    graph.output("y", select(compare(x, 0, Direction::LT), x, x * 0.3));
    Value product = x * row;
    graph.output("y", product + column);
    graph.output("y", product);  // read twice
    expect_as_reference(graph);
  }
}

TEST(cpu_fused_loop, composites_keep_nan_and_infinity) {
  constexpr float infinity = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::function<Value(Value)>> functions = {[](Value x) { return x * logistic(x); },
                                                              [](Value x) { return x * (clamp(x + 3, 0, 6) / 6); },
                                                              [](Value x) { return x * 0.5 * (erf(x * (1 / std::sqrt(2.0))) + 1); },
                                                              [](Value x) { return select(compare(x, 0, Direction::GE), x, x * 0.3); },
                                                              [](Value x) { return logistic(x + 1) * x; },
                                                              [](Value x) { return logistic(x) * tanh(x + 1); },
                                                              [](Value x) { return logistic(x + 1) * x + logistic(x) * tanh(x); },
                                                              [](Value x) { return maximum(x * 2.0 + 1.0, 0.0); },
                                                              [](Value x) { return maximum(x + x, 0.0); }};
  for (size_t k = 0; k < functions.size(); ++k) {
    Graph graph;
    graph.output("y", functions[k](graph.input("x", {DType::f32, {5}})));
    std::vector<Tensor> inputs = {f32({5}, {none, infinity, -infinity, 0.0f, 2.0f})};
    auto want = floats(Runner(graph, "reference")(inputs)[0]), got = floats(run_fused(graph, inputs, 1)[0]);
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_TRUE((std::isnan(want[i]) && std::isnan(got[i])) || want[i] == got[i] || std::fabs(want[i] - got[i]) < 1e-6f)
          << k << " " << i << " " << want[i] << " " << got[i];
  }
}

TEST(cpu_fused_loop, nan_and_infinity_stay) {
  constexpr float infinity = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
  Graph graph;
  Value x = graph.input("x", {DType::f32, {9}});
  graph.output("relu", maximum(x, 0.0));
  graph.output("relu6", minimum(maximum(x, 0.0), 6.0));
  graph.output("root", power(x, 0.5));
  graph.output("inverse root", power(x, -0.5));
  graph.output("sign", sign(x));
  std::vector<Tensor> inputs = {f32({9}, {none, infinity, -infinity, 0.0f, -0.0f, 7, -7, 1e-40f, -1e-40f})};
  auto want = Runner(graph, "reference")(inputs), got = run_fused(graph, inputs, 1);
  for (size_t k = 0; k < want.size(); ++k) {
    for (int64_t i = 0; i < 9; ++i) {
      double a = as_double(want[k], i), b = as_double(got[k], i);
      EXPECT_TRUE((std::isnan(a) && std::isnan(b)) || (std::fabs(a - b) <= 1e-6 * std::fabs(a)) || a == b)
          << k << " " << i << " " << a << " " << b;
      EXPECT_TRUE(std::isnan(a) || std::signbit(a) == std::signbit(b)) << k << " " << i << " " << a << " " << b;
    }
  }
}

TEST(cpu_fused_loop, empty_spaces_and_scalars) {
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{3, 0, 2}, Shape{1, 1}}) {
    Graph graph;
    Value x = graph.input("x", {DType::f32, shape}), y = graph.input("y", {DType::f32, {}});
    graph.output("y", tanh(x) + y);
    expect_as_reference(graph);
  }
}

}  // namespace
}  // namespace tutti::cpu
