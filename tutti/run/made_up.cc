#include "tutti/run/made_up.h"

#include <random>

namespace tutti {

namespace {

Tensor made_up(const Type& type, std::mt19937& random) {
  Tensor out(type);
  if (type.dtype == DType::f32) {
    std::normal_distribution<float> normal;
    for (float& x : out.as<float>()) x = normal(random);
  } else if (is_float(type.dtype)) {
    return made_up({DType::f32, type.shape}, random).converted(type.dtype);
  } else {
    std::fill(out.bytes().begin(), out.bytes().end(), std::byte{0});
  }
  return out;
}

}  // namespace

void set_made_up_inputs(Predictor& predictor) {
  std::mt19937 random(1);
  for (size_t i = 0; i < predictor.input_types().size(); ++i) predictor.set_input(i, made_up(predictor.input_types()[i], random).bytes());
}

}  // namespace tutti
