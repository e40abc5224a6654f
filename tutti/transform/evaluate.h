// What constant folding needs from outside: something that computes, and a memory of what was computed.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tutti/graph/graph.h"

namespace tutti {

// The outputs of a graph that has no inputs. Devices come after transforms, so one is handed in: the reference device, for its exactness.
using Evaluate = std::function<std::vector<Tensor>(const Graph&)>;

// Remembers folded values by the expression they come from: op, attributes, and the identity of the tensors at its leaves. Programs of one
// model at different batch sizes that fold with the same memo hold the same bytes once. Used by one thread at a time.
class FoldMemo {
 public:
  using Expression = int64_t;
  // A tensor: by its bytes when small (each lowering makes its own numbers), else by where they lie.
  Expression leaf(const Tensor& tensor);
  Expression apply(Op op, const Attributes& attributes, const Type& result, const std::vector<Expression>& operands);

  // Its value, or nullptr before it is stored.
  const Tensor* find(Expression expression) const;
  void store(Expression expression, Tensor value);

 private:
  Expression intern(std::string key);
  std::unordered_map<std::string, Expression> expressions_;
  std::vector<Tensor> values_;  // by expression, empty before it is stored; leaves stay alive here, for their addresses are keys
};

}  // namespace tutti
