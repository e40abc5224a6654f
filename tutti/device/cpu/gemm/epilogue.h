// What happens to a sum of products between the last product and memory: activation(sum + bias + residual). NaN survives every activation.
#pragma once

#include <cstdint>
#include <limits>

namespace tutti::cpu {

enum class Activation : int32_t {
  none,
  clip,        // between low and high; relu is clip(0, infinity), relu6 is clip(0, 6)
  leaky_relu,  // alpha * x below zero
  gate,        // zero where the residual, which is not added, is not above zero: relu's gradient
  // Those before are applied in registers, those that follow by activate().
  elu,   // alpha * (exp(x) - 1) below zero
  gelu,  // by erf
  gelu_by_tanh,
  hard_sigmoid,  // clip(x + 3, 0, 6) / 6
  hard_swish,    // x * hard_sigmoid(x)
  sigmoid,
  silu,
  tanh,
};

struct Epilogue {
  const float* bias = nullptr;      // [columns]
  const float* residual = nullptr;  // [rows, columns]; must not overlap the result
  int64_t residual_stride = 0;      // floats from row to row
  bool residual_first = false;      // a sum begins with it, and without a bias, instead of getting it in the end
  Activation activation = Activation::none;
  float low = 0, high = 0;  // of clip
  float alpha = 0;          // of leaky_relu, elu

  bool in_registers() const { return activation <= Activation::gate; }
  // The same of what lies so many floats further on.
  Epilogue moved(int64_t bias_by, int64_t residual_by) const {
    Epilogue out = *this;
    if (bias) out.bias += bias_by;
    if (residual) out.residual += residual_by;
    return out;
  }
  Epilogue from_row(int64_t row) const { return moved(0, row * residual_stride); }
};

inline Epilogue relu(const float* bias = nullptr) {
  Epilogue epilogue;
  epilogue.bias = bias;
  epilogue.activation = Activation::clip;
  epilogue.high = std::numeric_limits<float>::infinity();
  return epilogue;
}

// An activation that is not applied in registers, in place on c [rows, columns], c_stride floats from row to row.
void activate(const Epilogue& epilogue, float* c, int64_t rows, int64_t columns, int64_t c_stride);

}  // namespace tutti::cpu
