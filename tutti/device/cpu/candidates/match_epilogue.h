// The nodes behind a matmul or convolution that its kernel does on the way: bias, residual, activation.
#pragma once

#include <utility>

#include "tutti/device/bytes.h"
#include "tutti/device/cpu/candidate.h"
#include "tutti/device/cpu/gemm/epilogue.h"

namespace tutti::cpu {

struct EpilogueMatch {
  std::vector<int32_t> nodes;       // in order
  ValueId result;                   // the last one's, or the given value
  std::optional<ValueId> residual;  // of the result's type
  std::optional<Tensor> bias;       // [columns], or [products, columns]
  Epilogue epilogue;                // without its pointers
  std::string name;                 // "+bias+relu"
};

// What follows `value`, whose last axes are the columns, and whose first ones are products of which each has a bias of its own. The nodes
// that make the bias and numbers are not part of it: what they make is known at compile time.
EpilogueMatch match_epilogue(const Selection& selection, ValueId value, int64_t columns, int64_t products = 1);

// The step of a node and its epilogue: it reads `operand`, then the residual if there is one.
Step step_with_epilogue(std::string_view kernel, int32_t node, ValueId operand, const EpilogueMatch& match);

// The epilogue with its pointers, when such a step runs.
class BoundEpilogue {
 public:
  BoundEpilogue(const EpilogueMatch& match, int64_t columns)
      : epilogue_(match.epilogue), bias_(match.bias), residual_(match.residual.has_value()), columns_(columns) {
    if (bias_) epilogue_.bias = std::as_const(*bias_).as<float>().data();
  }
  Epilogue operator()(const Pointers& p) const {
    Epilogue now = epilogue_;
    if (residual_) now.residual = floats(p.operands[1]), now.residual_stride = columns_;
    return now;
  }

 private:
  Epilogue epilogue_;
  std::optional<Tensor> bias_;  // keeps the bytes alive
  bool residual_;
  int64_t columns_;
};

}  // namespace tutti::cpu
