#include "tutti/transform/repeat.h"

#include <gtest/gtest.h>

#include "tutti/device/device.h"
#include "tutti/graph/build.h"

namespace tutti {
namespace {

// A sum that forgets a little, a weight that stays, and a state that only reads.
Graph accumulator() {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2}});
  const Value sum = graph.parameter(Graph::Role::state, "sum", {DType::f32, {2}}, Tensor::of<float>({2}, std::vector<float>{1, 2}));
  const Value rate =
      graph.parameter(Graph::Role::state, "rate", {DType::f32, {2}}, Tensor::of<float>({2}, std::vector<float>{0.5F, 0.25F}));
  const Value weight = graph.parameter(Graph::Role::weight, "weight", {DType::f32, {2}}, Tensor::of<float>({2}, std::vector<float>{3, -1}));
  const Value next = sum * rate + x * weight;
  graph.output("before", sum);
  graph.output("product", next * x);
  graph.update(sum, next);
  return graph;
}

std::vector<std::vector<float>> run(Device& device, Program& program, const std::vector<float>& input) {
  auto x = device.allocate(program.input_types()[0]);
  device.to_device(std::as_bytes(std::span(input)), *x);
  std::vector<std::unique_ptr<Buffer>> outputs;
  std::vector<Buffer*> from{x.get()}, to;
  for (const Type& type : program.output_types()) to.push_back(outputs.emplace_back(device.allocate(type)).get());
  program.run(from, to);
  std::vector<std::vector<float>> out;
  for (Buffer* buffer : to) {
    out.emplace_back(static_cast<size_t>(buffer->type().shape.elements()));
    device.to_host(*buffer, std::as_writable_bytes(std::span(out.back())));
  }
  return out;
}

TEST(repeat, is_the_same_as_run_after_run) {
  for (const char* name : {"reference", "cpu"}) {
    const auto device = open_device(name);
    const Graph once = accumulator(), three = repeat(once, 3);
    verify(three);
    const auto one = device->compile(once), all = device->compile(three);
    const std::vector<float> x = {1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, -6};
    for (size_t launch = 0; launch < 2; ++launch) {
      const auto together = run(
          *device, *all, {x.begin() + static_cast<std::ptrdiff_t>(6 * launch), x.begin() + static_cast<std::ptrdiff_t>(6 * launch + 6)});
      for (size_t i = 0; i < 3; ++i) {
        const size_t first = 6 * launch + 2 * i;
        const auto alone = run(*device, *one, {x[first], x[first + 1]});
        for (size_t output = 0; output < alone.size(); ++output)
          for (size_t k = 0; k < 2; ++k)
            EXPECT_EQ(together[output][2 * i + k], alone[output][k]) << name << " launch " << launch << " run " << i;
      }
    }
  }
}

}  // namespace
}  // namespace tutti
