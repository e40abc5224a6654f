// Every op case for three models at once, with every choice of operands that differ between them.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/ops/op_case.h"
#include "tutti/transform/stack.h"

namespace tutti {
namespace {

constexpr size_t models = 3;

struct Case {
  Graph graph;
  std::vector<Region> regions;
  std::vector<Tensor> inputs;
};

// The case's node for each model; operands with a bit in `own` are each model's own, the others the same for all.
Case three_models(const Graph& one, const std::vector<Tensor>& operands, uint32_t own) {
  Case out;
  const Node& node = one.nodes().back();
  std::vector<std::vector<Value>> inputs(models);
  for (size_t k = 0; k < operands.size(); ++k)
    for (size_t m = 0; m < models; ++m) {
      if (m > 0 && (own >> k & 1) == 0) {
        inputs[m].push_back(inputs[0][k]);
        continue;
      }
      Tensor values(operands[k].type());
      const auto from = operands[k].bytes();
      std::copy(from.begin(), from.end(), values.bytes().begin());
      const auto width = static_cast<std::ptrdiff_t>(byte_size(values.dtype()));
      if (const auto count = values.elements(); count > 1)  // each model's numbers begin elsewhere
        std::rotate(values.bytes().begin(), values.bytes().begin() + static_cast<std::ptrdiff_t>(m) % count * width, values.bytes().end());
      inputs[m].push_back(out.graph.input("x" + std::to_string(k) + "_" + std::to_string(m), values.type()));
      out.inputs.push_back(std::move(values));
    }
  std::vector<std::vector<Value>> results;
  for (size_t m = 0; m < models; ++m) {
    const size_t first = out.graph.nodes().size();
    results.push_back(out.graph.add(node.op, inputs[m], node.attributes, node.body));
    out.regions.push_back({first, out.graph.nodes().size()});
  }
  for (size_t m = 0; m < models; ++m)
    for (size_t i = 0; i < results[m].size(); ++i) out.graph.output("y" + std::to_string(m) + "_" + std::to_string(i), results[m][i]);
  return out;
}

TEST(batching, every_op_case_gives_the_same_for_three_models_at_once) {
  CaseFile file(TUTTI_TEST_DATA "/ops_cases");
  auto device = open_device("reference");
  for (const auto& name : read_op_cases(default_op_cases())) {
    const Graph one = case_graph(name);
    if (row(one.nodes().back().op).op_class == OpClass::leaf) continue;
    const CaseData data = file.load(name, one);
    const auto operands = static_cast<uint32_t>(data.operands.size());
    std::vector<uint32_t> choices{(1u << operands) - 1};
    for (uint32_t own = 1; operands <= 3 && own < choices[0]; ++own) choices.push_back(own);
    for (uint32_t k = 0; operands > 3 && k < operands; ++k) choices.push_back(1u << k);
    for (uint32_t own : choices) {
      const Case all = three_models(one, data.operands, own);
      const auto expected = run_on(*device, all.graph, all.inputs);
      for (Together how : {Together::stacked, Together::looped}) {
        const RegionGroup groups[] = {{all.regions, how}};
        const Graph together = stack(all.graph, groups);
        verify(together);
        const auto got = run_on(*device, together, all.inputs);
        for (size_t i = 0; i < got.size(); ++i)
          ASSERT_EQ(difference(got[i], expected[i], 1e-6, 1e-6), "") << "output " << i << " of " << name << ", own operands " << own
                                                                     << (how == Together::stacked ? ", stacked" : ", looped") << "\n"
                                                                     << print_graph(together);
      }
    }
  }
}

}  // namespace
}  // namespace tutti
