// Every op case of floats held against finite differences, on data that keep away from kinks.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "tests/ops/op_case.h"
#include "tutti/base/error.h"
#include "tutti/graph/build.h"
#include "tutti/graph/compose.h"
#include "tutti/graph/gradient.h"
#include "tutti/keras/activations.h"
#include "tutti/transform/differentiate.h"

namespace tutti {
namespace {

// Ops a gradient cannot flow through, and kinds of ops.
const std::map<std::string, std::string> without_rule = {
    {"lgamma", "its derivative, digamma, is no op"},
    {"select_and_scatter", "a gradient of a gradient; no Keras layer needs one"},
    {"scatter max", "no Keras layer or loss scatters by maximum"},
    {"scatter min", "no Keras layer or loss scatters by minimum"},
    {"scatter multiply", "no Keras layer or loss scatters by product"},
    {"reduce_window multiply", "no Keras layer multiplies over windows"},
};

std::string rule_name(const Node& node) {
  std::string out(name(node.op));
  if (node.op == Op::scatter || node.op == Op::reduce_window) {
    std::string full = out + " " + node.attributes.text("kind");
    if (without_rule.contains(full)) return full;
  }
  return out;
}

// Where an op is differentiable with room to spare.
std::pair<double, double> domain(Op op) {
  switch (op) {
    case Op::log:
    case Op::sqrt:
    case Op::rsqrt:
    case Op::cbrt:
    case Op::power:
    case Op::divide:
    case Op::remainder: return {0.6, 2.4};
    case Op::log_plus_one: return {-0.5, 2};
    case Op::asin:
    case Op::acos:
    case Op::atanh:
    case Op::erf_inv:
    case Op::tan: return {-0.9, 0.9};
    case Op::acosh: return {1.2, 3};
    default: return {-2, 2};
  }
}

Tensor random_operand(const Type& type, Op op, size_t number, std::mt19937& random) {
  const auto range = domain(op);
  Tensor out(type);
  dispatch(type.dtype, [&](auto zero) {
    using T = decltype(zero);
    // Distinct steps apart, so that no two are nearly equal, of other operands neither, and none is nearly 0.
    const auto values = out.as<T>();
    std::vector<int> order(values.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    std::shuffle(order.begin(), order.end(), random);
    for (size_t i = 0; i < values.size(); ++i) {
      const double part = (order[i] + 0.37 + 0.11 * static_cast<double>(number)) / static_cast<double>(values.size());
      values[i] = convert_element<T>(range.first + (range.second - range.first) * part);
    }
  });
  return out;
}

// The case in f64 with a scalar behind it: a sum of its results, each weighed by numbers of its own.
struct Summed {
  Graph graph;
  std::vector<Value> inputs;
  Value loss;
};

void weigh(Summed& s, const std::vector<Value>& results) {
  for (Value result : results) {
    if (result.dtype() != DType::f64) continue;
    const Value finite = select(unary(Op::is_finite, result), result, scalar(s.graph, DType::f64, 0));  // empty windows are infinite
    const Value flat = reshape(finite, {result.shape().elements()});
    const Value weights = unary(Op::cosine, iota(s.graph, flat.type(), 0) * 1.3 + 0.4);
    const Value part = sum(flat * weights, {0});
    s.loss = s.loss ? s.loss + part : part;
  }
}

double evaluate(Device& device, const Graph& graph, const std::vector<Tensor>& inputs) {
  return run_on(device, graph, inputs).back().as<double>()[0];
}

TEST(gradients, agree_with_finite_differences_on_every_case) {
  auto device = open_device("reference");
  std::mt19937 random(5);
  std::map<std::string, int> checked;
  for (const auto& name : read_op_cases(default_op_cases())) {
    if (name.find("f16") != std::string::npos || op_name(name) == "bitcast_convert") continue;
    std::string wide = name;
    for (size_t at = 0; (at = wide.find("f32", at)) != std::string::npos;) wide.replace(at, 3, "f64");
    const Graph one = case_graph(wide);
    const Node& node = one.nodes().back();
    if (row(node.op).op_class == OpClass::leaf) continue;
    Summed s;
    std::vector<Tensor> data;
    bool floats = false;
    for (const Node* parameter : one.parameters(Graph::Role::input)) {
      const Type& type = one.type(parameter->results[0]);
      s.inputs.push_back(s.graph.input("x" + std::to_string(data.size()), type));
      data.push_back(random_operand(type, node.op, data.size(), random));
      floats |= is_float(type.dtype);
    }
    weigh(s, s.graph.add(node.op, s.inputs, node.attributes, node.body));
    if (!floats || !s.loss) continue;
    s.graph.output("loss", s.loss);
    std::vector<ValueId> by;
    for (Value input : s.inputs)
      if (is_float(input.dtype())) by.push_back(input.id());
    if (without_rule.contains(rule_name(node))) {
      EXPECT_THROW(differentiate(s.graph, s.loss.id(), by), Unsupported) << name;
      continue;
    }
    Differentiated d = differentiate(s.graph, s.loss.id(), by);
    verify(d.graph);
    Graph& graph = d.graph;
    for (size_t i = 0; i < by.size(); ++i) graph.output("g" + std::to_string(i), d.gradient(i));
    const auto results = run_on(*device, graph, data);
    size_t next = 1;
    for (size_t k = 0; k < data.size(); ++k) {
      if (!is_float(data[k].dtype())) continue;
      const Tensor& gradient = results[next++];
      ASSERT_EQ(gradient.type(), data[k].type()) << name;
      const auto count = data[k].elements();
      for (int64_t i = 0; i < count; i += 1 + count / 24) {  // some of each operand
        const auto at = static_cast<size_t>(i);
        const double step = 1e-6, old = data[k].as<double>()[at];
        data[k].as<double>()[at] = old + step;
        const double above = evaluate(*device, s.graph, data);
        data[k].as<double>()[at] = old - step;
        const double below = evaluate(*device, s.graph, data);
        data[k].as<double>()[at] = old;
        const double expected = (above - below) / (2 * step), got = gradient.as<double>()[at];
        EXPECT_NEAR(got, expected, 1e-6 * (1 + std::fabs(expected))) << "element " << i << " of operand " << k << " of " << name;
      }
    }
    ++checked[std::string(tutti::name(node.op))];
  }
  for (const OpRow& row : op_table()) {
    if (row.op_class == OpClass::leaf || row.gradient == gradient_rules::none) continue;
    EXPECT_NE(checked.contains(std::string(row.name)), without_rule.contains(std::string(row.name))) << row.name;
  }
}

// The chosen ones of many subgradients.
TEST(gradients, at_kinks_are_those_of_keras) {
  auto device = open_device("reference");
  const auto slope = [&](double at, auto function) {
    Graph graph;
    const Value x = graph.input("x", {DType::f64, {}});
    const Value y = function(x);
    Differentiated d = differentiate(graph, y.id(), {x.id()});
    d.graph.output("g", d.gradient(0));
    return run_on(*device, d.graph, {Tensor::scalar(at)})[0].as<double>()[0];
  };
  const auto slope_at_zero = [&](auto function) { return slope(0, function); };
  EXPECT_EQ(slope_at_zero([](Value x) { return maximum(x, 0.0); }), 0);
  EXPECT_EQ(slope_at_zero([](Value x) { return abs(x); }), 1);  // in JAX; TensorFlow has 0
  EXPECT_EQ(slope_at_zero([](Value x) { return stop_gradient(x) * 3; }), 0);
  EXPECT_EQ(slope_at_zero([](Value x) { return floor(x); }), 0);
  EXPECT_EQ(slope_at_zero([](Value x) { return power(x, 0.0); }), 0);
  EXPECT_EQ(slope_at_zero([](Value x) { return convert(convert(x, DType::i32), DType::f64); }), 0);
  EXPECT_EQ(slope_at_zero([](Value x) { return reduce_max(concatenate({reshape(x, {1}), reshape(x * 2, {1})}, 0), {0}); }), 1.5);
  EXPECT_EQ(slope_at_zero([](Value x) { return product(concatenate({reshape(x, {1}), reshape(x + 2, {1})}, 0), {0}); }), 2);
  for (double bound : {-1, 1}) EXPECT_EQ(slope(bound, keras::hard_tanh), 1);
  const auto bounded_relu = [](double most) { return [=](Value x) { return keras::relu(x, 0, most, 0); }; };
  EXPECT_EQ(slope(3, bounded_relu(3)), 1);  // in TensorFlow; JAX has 0.5
  EXPECT_EQ(slope(6, bounded_relu(6)), 0);
  EXPECT_EQ(slope(0, bounded_relu(3)), 0);
}

TEST(gradients, are_of_scalars_only) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2}});
  EXPECT_THROW(differentiate(graph, x.id(), {x.id()}), InvalidArgument);
}

}  // namespace
}  // namespace tutti
