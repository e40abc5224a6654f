#include "tutti/keras/layers/colors.h"

#include "tutti/graph/compose.h"
#include "tutti/keras/promote.h"

namespace tutti::keras {

Value rgb_to_gray(Value images) {
  const DType dtype = float_type(images.dtype());
  const Value weights = convert(constant<float>(images.graph(), {3, 1}, {0.2989f, 0.5870f, 0.1140f}), dtype);
  return convert(dot_general(convert(images, dtype), weights, {{}, {}, {3}, {0}}), images.dtype());
}

Value rgb_to_hsv(Value images) {
  const DType dtype = images.dtype();
  const double smallest = dtype == DType::f16 ? 0x1p-10 : dtype == DType::bf16 ? 0x1p-7 : dtype == DType::f32 ? 0x1p-23 : 0x1p-52;
  const auto channel = [&](int64_t index) {
    const Value x = index_axis(images, 3, index);
    return select(compare(abs(x), smallest, Direction::LT), full_like(x, 0), x);
  };
  const Value r = channel(0), g = channel(1), b = channel(2), zero = full_like(r, 0), one = full_like(r, 1);
  const Value value = maximum(maximum(r, g), b), range = value - minimum(minimum(r, g), b);
  const Value lit = compare(value, 0, Direction::GT), coloured = compare(range, 0, Direction::GT);
  const Value saturation = select(lit, range / select(lit, value, one), zero), norm = 1.0 / (6.0 * select(coloured, range, one));
  Value hue = select(compare(value, g, Direction::EQ), norm * (b - r) + 2.0 / 6, norm * (r - g) + 4.0 / 6);
  hue = select(compare(value, r, Direction::EQ), norm * (g - b), hue);
  hue = select(coloured, hue, zero) + convert(compare(hue, 0, Direction::LT), hue.dtype());
  return stack({hue, saturation, value}, 3);
}

Value hsv_to_rgb(Value images) {
  const Value hue = index_axis(images, 3, 0), saturation = index_axis(images, 3, 1), value = index_axis(images, 3, 2);
  const Value angle = (hue - floor(hue)) * 6.0;
  const Value parts[] = {abs(angle - 3.0) - 1.0, 2.0 - abs(angle - 2.0), 2.0 - abs(angle - 4.0)};
  std::vector<Value> out;
  for (const Value& part : parts) out.push_back(value * (1.0 - saturation + saturation * clamp(part, 0, 1)));
  return stack(out, 3);
}

}  // namespace tutti::keras
