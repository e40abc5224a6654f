#include "tutti/data/resize_pillow.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tutti {

namespace {

constexpr int pillow_bits = 32 - 8 - 2;  // as Pillow: of a weight, after the point

double pillow_triangle(double x) {
  x = std::abs(x);
  return x < 1 ? 1 - x : 0;
}

double pillow_cubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

// The source's places that make one place of the result.
struct PillowWindow {
  int64_t begin = 0;
  std::vector<int32_t> weights;
};

std::vector<PillowWindow> pillow_windows(int64_t target, int64_t source, Resize method) {
  double (*filter)(double) = method == Resize::bilinear ? pillow_triangle : pillow_cubic;
  const double scale = static_cast<double>(source) / static_cast<double>(target), wider = std::max(scale, 1.0);
  const double support = (method == Resize::bilinear ? 1.0 : 2.0) * wider;
  std::vector<PillowWindow> out(static_cast<size_t>(target));
  std::vector<double> weights;
  for (int64_t at = 0; at < target; ++at) {
    const double center = (static_cast<double>(at) + 0.5) * scale;
    const int64_t begin = std::max<int64_t>(static_cast<int64_t>(std::floor(center - support + 0.5)), 0);
    const int64_t end = std::min(static_cast<int64_t>(std::floor(center + support + 0.5)), source);
    weights.clear();
    double sum = 0;
    for (int64_t from = begin; from < end; ++from) {
      weights.push_back(filter((static_cast<double>(from) - center + 0.5) * (1.0 / wider)));
      sum += weights.back();
    }
    PillowWindow& window = out[static_cast<size_t>(at)];
    window.begin = begin;
    for (double weight : weights) {
      if (sum != 0) weight *= 1 / sum;
      window.weights.push_back(static_cast<int32_t>(std::trunc(weight * (1 << pillow_bits) + (weight < 0 ? -0.5 : 0.5))));
    }
  }
  return out;
}

uint8_t pillow_rounded(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> pillow_bits, 0, 255)); }

constexpr int32_t pillow_half = 1 << (pillow_bits - 1);

// Lines of so many values, summed to one.
void pillow_row(const uint8_t* lines, const PillowWindow& row, std::vector<int32_t>& sums, uint8_t* to) {
  std::fill(sums.begin(), sums.end(), pillow_half);
  for (int32_t weight : row.weights) {
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += weight * lines[i];
    lines += sums.size();
  }
  std::transform(sums.begin(), sums.end(), to, pillow_rounded);
}

// A line at the columns of the result.
void pillow_columns(const uint8_t* line, int64_t channels, const std::vector<PillowWindow>& columns, uint8_t* to) {
  for (const PillowWindow& column : columns)
    for (int64_t c = 0; c < channels; ++c) {
      const uint8_t* from = line + column.begin * channels + c;
      int32_t sum = pillow_half;
      for (int32_t weight : column.weights) sum += weight * *from, from += channels;
      *to++ = pillow_rounded(sum);
    }
}

// Pillow steps from place to place: what the steps have rounded decides about a place that lies between two.
std::vector<int64_t> pillow_places(int64_t target, int64_t source) {
  const double step = static_cast<double>(source) / static_cast<double>(target);
  double in = step * 0.5;
  std::vector<int64_t> out(static_cast<size_t>(target));
  for (int64_t& place : out) place = std::min(static_cast<int64_t>(in), source - 1), in += step;
  return out;
}

void nearest_as_pillow(const Image& image, int64_t height, int64_t width, const TakeRow& take) {
  const std::vector<int64_t> rows = pillow_places(height, image.height), columns = pillow_places(width, image.width);
  std::vector<float> out(static_cast<size_t>(width * image.channels));
  for (int64_t y = 0; y < height; ++y) {
    const uint8_t* line = image.row(rows[static_cast<size_t>(y)]).data();
    float* to = out.data();
    for (int64_t column : columns) to = std::copy_n(line + column * image.channels, image.channels, to);
    take(y, out);
  }
}

}  // namespace

void resize_as_pillow(const Image& image, int64_t height, int64_t width, Resize method, const TakeRow& take) {
  if (method == Resize::nearest) return nearest_as_pillow(image, height, width, take);
  const std::vector<PillowWindow> rows = pillow_windows(height, image.height, method), columns = pillow_windows(width, image.width, method);
  // Pillow's order since its version 13; it leaves out a pass that changes nothing.
  const bool rows_first = image.height - height > std::max<int64_t>((image.width - width) * 2, 0), same_width = width == image.width;
  const int64_t begin = rows.front().begin, end = rows.back().begin + static_cast<int64_t>(rows.back().weights.size());
  const auto size = static_cast<size_t>((rows_first ? image.width : width) * image.channels);  // of a line between the passes
  const uint8_t* lines = image.row(begin).data();
  std::vector<uint8_t> narrow, line(size), bytes(static_cast<size_t>(width * image.channels));
  if (!rows_first && !same_width) {
    narrow.resize(static_cast<size_t>(end - begin) * size);
    for (int64_t y = begin; y < end; ++y)
      pillow_columns(image.row(y).data(), image.channels, columns, narrow.data() + static_cast<size_t>(y - begin) * size);
    lines = narrow.data();
  }
  std::vector<int32_t> sums(size);
  std::vector<float> out(bytes.size());
  for (int64_t y = 0; y < height; ++y) {
    const PillowWindow& row = rows[static_cast<size_t>(y)];
    const uint8_t* from = lines + static_cast<size_t>(y) * size;
    if (height != image.height) {
      pillow_row(lines + static_cast<size_t>(row.begin - begin) * size, row, sums, line.data());
      from = line.data();
    }
    if (rows_first && !same_width) {
      pillow_columns(from, image.channels, columns, bytes.data());
      from = bytes.data();
    }
    std::copy_n(from, out.size(), out.begin());
    take(y, out);
  }
}

}  // namespace tutti
