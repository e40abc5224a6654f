#include "tutti/transform/differentiate.h"

#include "tutti/base/error.h"
#include "tutti/graph/build.h"
#include "tutti/graph/gradient.h"

namespace tutti {

Differentiated differentiate(const Graph& graph, ValueId of, const std::vector<ValueId>& by) {
  const Type& type = graph.type(of);
  if (!is_float(type.dtype) || type.shape.rank() != 0)
    fail<InvalidArgument>("differentiate", "takes the gradient of a floating-point scalar; got {}", to_string(type));
  Graph longer = graph.clone();
  std::vector<Replacement> replacements;
  const Cotangents found = backpropagate(longer, {{of, scalar(longer, type.dtype, 1)}}, by, replacements);
  std::vector<ValueId> gradients;
  for (size_t i = 0; i < by.size(); ++i) gradients.push_back(found[i] ? found[i].id() : full(longer, graph.type(by[i]), 0).id());
  Replaced replaced = replace(longer, replacements);
  Differentiated out{std::move(replaced.graph), {}, std::move(replaced.values)};
  for (ValueId id : gradients) out.gradients.push_back(out.values[at(id)]);
  out.values.resize(graph.value_count());
  return out;
}

}  // namespace tutti
