#include "tutti/run/made_up.h"

namespace tutti {

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

}  // namespace tutti
