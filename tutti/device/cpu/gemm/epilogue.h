// What happens to a sum of products between the last product and memory: activation(sum + bias + residual). NaN survives every activation.
#pragma once

#include <cstdint>
#include <limits>

namespace tutti::cpu {

enum class Activation : int32_t {
  none,
  clip,        // between low and high; relu is clip(0, infinity), relu6 is clip(0, 6)
  leaky_relu,  // alpha * x below zero
};

struct Epilogue {
  const float* bias = nullptr;      // [columns]
  const float* residual = nullptr;  // [rows, columns]; must not overlap the result
  int64_t residual_stride = 0;      // floats from row to row
  Activation activation = Activation::none;
  float low = 0, high = 0;  // of clip
  float alpha = 0;          // of leaky_relu
};

inline Epilogue relu(const float* bias = nullptr) {
  Epilogue epilogue;
  epilogue.bias = bias;
  epilogue.activation = Activation::clip;
  epilogue.high = std::numeric_limits<float>::infinity();
  return epilogue;
}

}  // namespace tutti::cpu
