// What the layers of image augmentation share, those of them that change colours (augmentation_colors.cc), those that mix images
// (augmentation_mixing.cc), and those that pick among the others (augmentation_policies.cc).
#pragma once

#include "tutti/keras/layer.h"

namespace tutti::keras {

struct Range {
  double low, high;
  bool operator==(const Range&) const = default;
};
inline constexpr Range byte_range{0, 255};
Range value_range(const Config& config);  // of the pixels; 0 to 255 where nothing is said
Value change_range(Value x, DType dtype, Range from, Range to);
// A factor of a config: two numbers, or one that stands for both directions, but not below `lowest`.
Range factor_of(const Config& config, const char* key, double lowest);

Value plain_images(const Call& c);  // as they came; floats in files of Keras 2
// f32, each of `each` by itself.
Value draw(Call& c, const Shape& each, Range range);
Value drawn_sign(Call& c, const Shape& each);  // 1 or -1
// One an image, [n, 1, ...] of the rank of the images.
Value draw_by_image(Call& c, Value images, Range range);
// The logarithm of a number with the gamma distribution of shape `alpha`, [1], for each of n samples, or n numbers for the batch.
Value log_gamma_draw(Call& c, int64_t n, Value alpha, bool by_sample = true);
Value beta_draw(Call& c, int64_t n, Value alpha, bool by_sample = true);  // with the beta distribution of `alpha` twice, [n]
// The bell curve of a deviation that is drawn, f32 [1], at `size` places that sum to one; zero farther out than `reach`, if that is given.
Value drawn_bell(Value deviation, int64_t size, Value reach = {});
// [n, 1, 1, 1]: whether an image is changed; for a share of them that is drawn itself, between `factor`.
Value drawn_changes(Call& c, Value images);
void require_whole_batch(const Call& c);  // throws Unsupported where it is computed in parts

Outputs aug_mix(Call& c);
Outputs auto_contrast(Call& c);
Outputs cut_mix(Call& c);
Outputs equalization(Call& c);
Outputs mix_up(Call& c);
Outputs rand_augment(Call& c);
Outputs random_brightness(Call& c);
Outputs random_contrast(Call& c);
Outputs random_color_degeneration(Call& c);
Outputs random_color_jitter(Call& c);
Outputs random_erasing(Call& c);
Outputs random_gaussian_blur(Call& c);
Outputs random_grayscale(Call& c);
Outputs random_hue(Call& c);
Outputs random_invert(Call& c);
Outputs random_posterization(Call& c);
Outputs random_rotation(Call& c);
Outputs random_saturation(Call& c);
Outputs random_sharpness(Call& c);
Outputs random_shear(Call& c);
Outputs random_translation(Call& c);
Outputs solarization(Call& c);

}  // namespace tutti::keras
