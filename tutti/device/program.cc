#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/device/device.h"
#include "tutti/graph/cost.h"

namespace tutti {

Program::Program(const Graph& graph, size_t replicas) {
  for (size_t i = 0; i < replicas; ++i) {
    for (const Node* node : graph.parameters(Graph::Role::input)) input_types_.push_back(graph.type(node->results[0]));
    for (const auto& output : graph.outputs()) output_types_.push_back(graph.type(output.value));
  }
  Cost total = cost(graph);
  stats_ = {0, total.flops, total.bytes, 0, weight_bytes(graph)};
}

void Program::run_timed(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs, std::span<double>) { run(inputs, outputs); }

void Program::run_telling(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs, const Ready& ready,
                          std::span<double> seconds) {
  run_timed(inputs, outputs, seconds);
  for (size_t i = 0; i < outputs.size(); ++i) ready(i);
}

void Program::join(Collective* collective) {
  if (collective != nullptr)
    fail<Unsupported>("run", "programs of this device do not run beside replicas of themselves; hint: --device cpu");
}

std::string Program::executable() const {
  fail<Unsupported>("compile", "programs of this device live in memory alone; hint: --device cuda");
}

std::optional<Speed> Device::measure(int) { return {}; }

void Device::side_by_side(int, int64_t pieces, const std::function<void(int64_t piece, int slot)>& body) {
  for (int64_t piece = 0; piece < pieces; ++piece) body(piece, 0);
}

std::string_view name(Precision precision) { return precision_names()[static_cast<size_t>(precision)]; }

const std::vector<std::string>& precision_names() {
  static const std::vector<std::string> names = {"float32", "tf32", "bfloat16"};
  return names;
}

Precision precision_of(std::string_view name) {
  const auto& names = precision_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) fail<InvalidArgument>("device", "no precision '{}'{}", name, did_you_mean(name, names));
  return static_cast<Precision>(found - names.begin());
}

void require_plain(const CompileSettings& settings, std::string_view device) {
  if (settings.replicas.size() > 1)
    fail<Unsupported>(device, "one program runs on one device here; got {} replicas", settings.replicas.size());
  if (settings.precision != Precision::float32)
    fail<Unsupported>(device, "products are computed in float32 here; got --precision {}", name(settings.precision));
}

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
