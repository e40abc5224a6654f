#include "tests/graph/evaluate.h"

#include "tutti/device/device.h"

namespace tutti {

Tensor evaluate(Value value) {
  Graph graph = value.graph().clone();
  graph.output("value", Value(&graph, value.id()));
  verify(graph);
  auto device = open_device("reference");
  auto program = device->compile(graph);
  auto buffer = device->allocate(value.type());
  Buffer* outputs[] = {buffer.get()};
  program->run({}, outputs);
  Tensor out(value.type());
  device->to_host(*buffer, out.bytes());
  return out;
}

std::vector<double> numbers(Value value) {
  Tensor wide = evaluate(value).converted(DType::f64);
  auto elements = wide.as<double>();
  return {elements.begin(), elements.end()};
}

}  // namespace tutti
