// What tests of passes are written with: a graph as text before and after, and the results of both on the reference device.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/device/run_graph.h"
#include "tutti/transform/passes.h"

namespace tutti {

inline std::vector<Tensor> evaluate_on_reference(const Graph& graph) { return Runner(graph, "reference")({}); }

// The graph's own names for values do not matter, so both sides are printed.
template <class PassFunction>
void expect_after(PassFunction&& pass, std::string_view before, std::string_view after) {
  Graph out = pass(parse_graph(before));
  verify(out);
  EXPECT_EQ(print_graph(out), print_graph(parse_graph(after)));
}

template <class PassFunction>
void expect_unchanged(PassFunction&& pass, std::string_view text) {
  expect_after(pass, text, text);
}

// A graph that is a scan of one carry %0, whose body's lines make %c, the next one.
inline std::string in_a_scan(std::string_view lines) {
  return R"(graph { %a = parameter {role = "input", name = "a"} : f32[2]
      %p = scan(%a) {carries = 1, slices = 0, length = 3, reverse = 0} {
        %0 = parameter {role = "input", name = "carry0"} : f32[2] )" +
         std::string(lines) + R"( return %c "carry0" } return %p "p" })";
}

// A constant of numbers around `start`.
inline Value weight(Graph& graph, Shape shape, float start) {
  Tensor out(DType::f32, std::move(shape));
  size_t i = 0;
  for (float& x : out.as<float>()) x = start + static_cast<float>(++i * 37 % 11) / 8;
  return graph.constant(std::move(out));
}

// Inputs of a graph: a little of everything, or with NaN, infinities and both zeros among the numbers.
inline std::vector<Tensor> make_inputs(const Graph& graph, bool special) {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float numbers[] = {0.5f, -1.25f, 3, -0.0f, 0, 1, -2, 0.75f, -0.3f, 1e-20f},
                  odd[] = {nan, inf, -inf, -0.0f, 0.0f, 1e38f, -1e-40f};
  std::vector<Tensor> out;
  size_t count = 0;
  for (const Node* node : graph.parameters(Graph::Role::input)) {
    Tensor& tensor = out.emplace_back(graph.type(node->results[0]));
    if (tensor.dtype() != DType::f32) {
      std::memset(tensor.bytes().data(), 1, tensor.bytes().size());
      continue;
    }
    for (float& x : tensor.as<float>()) {
      x = special && count % 5 == 0 ? odd[count / 5 % std::size(odd)] : numbers[count % std::size(numbers)];
      ++count;
    }
  }
  return out;
}

// Both graphs on the reference device. `tolerance` is relative to the largest number of an output; 0: the same bits, any NaN for a NaN.
inline void expect_same_results(const Graph& before, const Graph& after, double tolerance, bool special) {
  std::vector<Tensor> inputs = make_inputs(before, special);
  Runner run_before(before, "reference"), run_after(after, "reference");
  for (int run = 0; run < 2; ++run) {  // twice: states go on
    std::vector<Tensor> expected = run_before(inputs), actual = run_after(inputs);
    ASSERT_EQ(expected.size(), actual.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(to_string(expected[i].type()), to_string(actual[i].type()));
      Tensor wide = expected[i].converted(DType::f64), found = actual[i].converted(DType::f64);
      auto a = std::as_const(wide).as<double>(), b = std::as_const(found).as<double>();
      double largest = 1e-6;
      for (double x : a)
        if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
      for (size_t j = 0; j < a.size(); ++j) {
        if (std::isnan(a[j]) || !std::isfinite(a[j]) || tolerance == 0) {
          ASSERT_TRUE((std::isnan(a[j]) && std::isnan(b[j])) || (a[j] == b[j] && std::signbit(a[j]) == std::signbit(b[j])))
              << "output " << i << " element " << j << " was " << a[j] << ", is " << b[j];
        } else {
          ASSERT_NEAR(a[j], b[j], tolerance * largest) << "output " << i << " element " << j;
        }
      }
    }
  }
}

// A pass keeps all bits of the results of a graph written as text, whatever the inputs.
template <class PassFunction>
void expect_exact(PassFunction&& pass, std::string_view text) {
  Graph before = parse_graph(text), after = pass(before);
  expect_same_results(before, after, 0, false);
  expect_same_results(before, after, 0, true);
}

}  // namespace tutti
