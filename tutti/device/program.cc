#include "tutti/base/error.h"
#include "tutti/device/device.h"
#include "tutti/graph/cost.h"

namespace tutti {

Program::Program(const Graph& graph) {
  for (const Node* node : graph.parameters(Graph::Role::input)) input_types_.push_back(graph.type(node->results[0]));
  for (const auto& output : graph.outputs()) output_types_.push_back(graph.type(output.value));
  Cost total = cost(graph);
  stats_ = {0, total.flops, total.bytes, 0, weight_bytes(graph)};
}

void Program::run_timed(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs, std::span<double>) { run(inputs, outputs); }

std::optional<Speed> Device::measure(int) { return {}; }

void Program::check_arguments(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs) const {
  auto check = [](std::span<Buffer* const> buffers, const std::vector<Type>& types, std::string_view what) {
    if (buffers.size() != types.size()) fail<InvalidArgument>("run", "the program has {} {}s; got {}", types.size(), what, buffers.size());
    for (size_t i = 0; i < types.size(); ++i) {
      if (buffers[i] == nullptr) fail<InvalidArgument>("run", "{} {} is {}; got no buffer", what, i, to_string(types[i]));
      if (!(buffers[i]->type() == types[i]))
        fail<InvalidArgument>("run", "{} {} is {}; got {}", what, i, to_string(types[i]), to_string(buffers[i]->type()));
    }
  };
  check(inputs, input_types_, "input");
  check(outputs, output_types_, "output");
}

}  // namespace tutti
