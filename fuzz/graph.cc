// Graph text: any text is parsed or refused with an Error; what is parsed prints and parses back to the same text; and what is small
// enough runs on the reference device, whose kernels may not touch anything but their values.
#include <cstdint>
#include <cstring>

#include "tutti/base/error.h"
#include "tutti/device/device.h"
#include "tutti/graph/cost.h"

namespace {

using namespace tutti;

// Steps of all scans, and whether everything is small: an execution takes milliseconds.
bool is_small(const Graph& graph, int64_t steps = 1) {
  constexpr int64_t most_steps = 100, most_work = 1 << 20;
  for (const auto& node : graph.nodes()) {
    for (ValueId id : node.results)
      if (graph.type(id).bytes() > most_work) return false;
    if (!node.body) continue;
    int64_t length = node.attributes.integer("length");
    if (length > most_steps / steps || !is_small(*node.body, steps * std::max<int64_t>(length, 1))) return false;
  }
  Cost total = cost(graph);
  return total.flops <= most_work && total.bytes <= most_work;
}

void run(const Graph& graph) {
  auto device = open_device("reference");
  auto program = device->compile(graph);
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<Buffer*> inputs, outputs;
  for (const auto& type : program->input_types()) {
    buffers.push_back(device->allocate(type));
    auto bytes = buffers.back()->host();
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(type.dtype == DType::boolean ? i % 2 : i * 37);
    inputs.push_back(buffers.back().get());
  }
  for (const auto& type : program->output_types()) {
    buffers.push_back(device->allocate(type));
    outputs.push_back(buffers.back().get());
  }
  program->run(inputs, outputs);
  program->run(inputs, outputs);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    Graph graph = parse_graph({reinterpret_cast<const char*>(data), size});
    verify(graph);
    std::string text = print_graph(graph, int64_t{1} << 40);
    if (print_graph(parse_graph(text), int64_t{1} << 40) != text) __builtin_trap();
    open_device("null")->compile(graph);
    if (is_small(graph)) run(graph);
  } catch (const InternalError&) {
    __builtin_trap();
  } catch (const Error&) {
  }
  return 0;
}
