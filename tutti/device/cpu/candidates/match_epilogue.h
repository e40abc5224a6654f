// The nodes behind a matmul or convolution that its kernel does on the way: bias, residual, activation.
#pragma once

#include <utility>

#include "tutti/device/bytes.h"
#include "tutti/device/cpu/candidate.h"
#include "tutti/device/cpu/gemm/epilogue.h"

namespace tutti::cpu {

struct EpilogueMatch {
  std::vector<int32_t> nodes;        // in order
  ValueId result;                    // the last one's, or the given value
  std::optional<ValueId> residual;   // of the result's type
  std::optional<Tensor> bias;        // [columns], or [products, columns]
  std::optional<ValueId> bias_from;  // the same, where it is only known at run time
  Epilogue epilogue;                 // without its pointers
  std::string name;                  // "+bias+relu"
};

// What follows `value`, whose last axes are the columns, and whose first ones are products of which each has a bias of its own. The nodes
// that make the bias and numbers are not part of it: what they make is known at compile time, or a vector that is read where it lies.
enum class BiasOf { weights, anything };
EpilogueMatch match_epilogue(const Selection& selection, ValueId value, int64_t columns, int64_t products = 1,
                             BiasOf bias = BiasOf::weights);

// The step of a node and its epilogue: it reads `operands`, then the residual and the bias if they are values.
Step step_with_epilogue(std::string_view kernel, int32_t node, std::vector<ValueId> operands, const EpilogueMatch& match);

// The epilogue with its pointers, when such a step runs.
class BoundEpilogue {
 public:
  // operands: that the step reads before those of its epilogue.
  BoundEpilogue(const EpilogueMatch& match, int64_t columns, size_t operands = 1)
      : epilogue_(match.epilogue),
        bias_(match.bias),
        residual_(match.residual ? operands : 0),
        bias_from_(match.bias_from ? operands + (match.residual ? 1 : 0) : 0),
        columns_(columns) {
    if (bias_) epilogue_.bias = std::as_const(*bias_).as<float>().data();
  }
  Epilogue operator()(const Pointers& p) const {
    Epilogue now = epilogue_;
    if (residual_ != 0) now.residual = floats(p.operands[residual_]), now.residual_stride = columns_;
    if (bias_from_ != 0) now.bias = floats(p.operands[bias_from_]);
    return now;
  }

 private:
  Epilogue epilogue_;
  std::optional<Tensor> bias_;   // keeps the bytes alive
  size_t residual_, bias_from_;  // which operand; 0: none
  int64_t columns_;
};

}  // namespace tutti::cpu
