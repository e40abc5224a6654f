#include "tutti/data/resize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "tutti/data/resize_pillow.h"

namespace tutti {

namespace {

// What one place of the result is made of: places of the source from an index each, weighted. In TensorFlow's own float arithmetic.
struct Taps {
  std::array<int64_t, 4> from{};
  std::array<float, 4> weight{};
};

float half_pixel(int64_t at, float scale) { return (static_cast<float>(at) + 0.5F) * scale - 0.5F; }

// The cubic of TensorFlow, a = -0.5, in a table of 1024 steps.
struct CubicTable {
  static constexpr int steps = 1024;
  std::array<float, size_t{steps + 1} * 2> values{};
  CubicTable() {
    constexpr double a = -0.5;
    for (int i = 0; i <= steps; ++i) {
      float x = static_cast<float>(i) / steps;
      values[static_cast<size_t>(i) * 2] = static_cast<float>(((a + 2) * x - (a + 3)) * x * x + 1);
      x += 1.0F;
      values[static_cast<size_t>(i) * 2 + 1] = static_cast<float>(((a * x - 5 * a) * x + 8 * a) * x - 4 * a);
    }
  }
};

Taps cubic_taps(int64_t at, float scale, int64_t source) {
  static const CubicTable table;
  const float in = half_pixel(at, scale);
  const auto first = static_cast<int64_t>(std::floor(in));
  const auto offset = static_cast<size_t>(std::lrint((in - static_cast<float>(first)) * CubicTable::steps));
  const size_t rest = CubicTable::steps - offset;
  const std::array<float, 4> weights{table.values[offset * 2 + 1], table.values[offset * 2], table.values[rest * 2],
                                     table.values[rest * 2 + 1]};
  // Places outside have no weight, and the others all of it.
  Taps out;
  float sum = 0;
  for (size_t i = 0; i < 4; ++i) {
    const int64_t from = first - 1 + static_cast<int64_t>(i);
    out.from[i] = std::clamp<int64_t>(from, 0, source - 1);
    out.weight[i] = out.from[i] == from ? weights[i] : 0.0F;
    sum += out.weight[i];
  }
  if (std::abs(sum) >= 1000 * std::numeric_limits<float>::min())
    for (float& weight : out.weight) weight /= sum;
  return out;
}

std::vector<Taps> taps_of(int64_t target, int64_t source, Resize method) {
  const float scale = static_cast<float>(source) / static_cast<float>(target);
  std::vector<Taps> out(static_cast<size_t>(target));
  for (int64_t at = 0; at < target; ++at) {
    Taps& place = out[static_cast<size_t>(at)];
    if (method == Resize::nearest) {
      place.from[0] = std::min(static_cast<int64_t>(std::floor((static_cast<float>(at) + 0.5F) * scale)), source - 1);
    } else if (method == Resize::bilinear) {
      const float in = half_pixel(at, scale), below = std::floor(in);
      place.from = {std::max<int64_t>(static_cast<int64_t>(below), 0), std::min(static_cast<int64_t>(std::ceil(in)), source - 1)};
      place.weight[1] = in - below;
    } else {
      place = cubic_taps(at, scale, source);
    }
  }
  return out;
}

// The source's row y at the columns of the result.
template <Resize method, int channels>
void resize_line(std::span<const uint8_t> line, const std::vector<Taps>& columns, float* to) {
  for (const Taps& column : columns) {
    const auto at = [&](size_t tap) { return line.data() + column.from[tap] * channels; };
    if constexpr (method == Resize::nearest) {
      for (int c = 0; c < channels; ++c) *to++ = at(0)[c];
    } else if constexpr (method == Resize::bilinear) {
      const uint8_t *left = at(0), *right = at(1);
      for (int c = 0; c < channels; ++c) {
        const float a = left[c], b = right[c];
        *to++ = a + (b - a) * column.weight[1];
      }
    } else {
      for (int c = 0; c < channels; ++c)
        *to++ = static_cast<float>(at(0)[c]) * column.weight[0] + static_cast<float>(at(1)[c]) * column.weight[1] +
                static_cast<float>(at(2)[c]) * column.weight[2] + static_cast<float>(at(3)[c]) * column.weight[3];
    }
  }
}

// The last source rows that were resized along x; rows of the result that are near share them.
template <Resize method, int channels>
class Lines {
 public:
  Lines(const Image& image, std::vector<Taps> columns) : image_(image), columns_(std::move(columns)) {
    for (auto& line : lines_) line.resize(columns_.size() * channels);
  }
  const float* operator()(int64_t y) {
    const auto slot = static_cast<size_t>(y % 4);
    if (held_[slot] != y) resize_line<method, channels>(image_.row(y), columns_, lines_[slot].data());
    held_[slot] = y;
    return lines_[slot].data();
  }

 private:
  const Image& image_;
  std::vector<Taps> columns_;
  std::array<std::vector<float>, 4> lines_;
  std::array<int64_t, 4> held_{-1, -1, -1, -1};
};

// TensorFlow's cubic sums along y first and along x then; floats of 8-bit values hardly round, so that the order does not matter.
template <Resize method, int channels>
void resize_rows(const Image& image, int64_t height, int64_t width, const TakeRow& take) {
  Lines<method, channels> line(image, taps_of(width, image.width, method));
  const std::vector<Taps> rows = taps_of(height, image.height, method);
  const auto size = static_cast<size_t>(width) * channels;
  std::vector<float> out(size);
  for (int64_t y = 0; y < height; ++y) {
    const Taps& row = rows[static_cast<size_t>(y)];
    if constexpr (method == Resize::nearest) {
      take(y, {line(row.from[0]), size});
      continue;
    } else if constexpr (method == Resize::bilinear) {
      const float *top = line(row.from[0]), *bottom = line(row.from[1]), share = row.weight[1];
      for (size_t i = 0; i < size; ++i) out[i] = top[i] + (bottom[i] - top[i]) * share;
    } else {
      std::array<const float*, 4> lines{};
      for (size_t tap = 0; tap < 4; ++tap) lines[tap] = line(row.from[tap]);
      for (size_t i = 0; i < size; ++i)
        out[i] = lines[0][i] * row.weight[0] + lines[1][i] * row.weight[1] + lines[2][i] * row.weight[2] + lines[3][i] * row.weight[3];
    }
    take(y, out);
  }
}

template <Resize method>
void resize_rows(const Image& image, int64_t height, int64_t width, const TakeRow& take) {
  if (image.channels == 1)
    resize_rows<method, 1>(image, height, width, take);
  else
    resize_rows<method, 3>(image, height, width, take);
}

}  // namespace

void resize(const Image& image, int64_t height, int64_t width, Resize method, ResizeLike like, const TakeRow& take) {
  const bool same = height == image.height && width == image.width;
  if (like == ResizeLike::pillow && !same) return resize_as_pillow(image, height, width, method, take);
  if (method == Resize::nearest || same) return resize_rows<Resize::nearest>(image, height, width, take);
  if (method == Resize::bilinear) return resize_rows<Resize::bilinear>(image, height, width, take);
  resize_rows<Resize::bicubic>(image, height, width, take);
}

}  // namespace tutti
