#include "tutti/device/cpu/gemm/convolution.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "tutti/base/error.h"
#include "tutti/device/cpu/gemm/aligned.h"
#include "tutti/device/cpu/gemm/matmul.h"
#include "tutti/device/cpu/team.h"

namespace tutti::cpu {
namespace {

// Floats of the image that stay in the second-level cache beside a panel of weights.
constexpr int64_t kBandSize = int64_t{48} * 1024;

// An exponent of ones is an infinity or a NaN.
bool all_finite(const float* x, int64_t count) {
  constexpr uint32_t exponent = 0x7f800000;
  uint32_t odd = 0;
  for (int64_t i = 0; i < count; ++i) odd |= (std::bit_cast<uint32_t>(x[i]) & exponent) == exponent ? 1 : 0;
  return odd == 0;
}

}  // namespace

Convolution::Convolution(const ConvolutionShape& shape)
    : shape_(shape),
      output_(shape.output()),
      padded_(shape.padded()),
      left_(output_[0] * output_[1] * output_[2] == 1 ? LeftRows::any
            : shape.channels / shape.groups % 2 == 0  ? LeftRows::several_even
                                                      : LeftRows::several) {
  plan_bands();
}

Convolution::Convolution(const ConvolutionShape& shape, const float* weights, const Packer& packer) : Convolution(shape) {
  if (Winograd::handles(shape) && all_finite(weights, depth() * shape_.filters)) {
    winograd_.emplace(shape, weights, packer);
    return;
  }
  weights_ = packer(fmt::format("convolution in {} groups, {}", shape_.groups, left_ == LeftRows::any ? "any rows" : "several rows"), [&] {
    Packs packs;
    const int64_t filters = shape_.filters / shape_.groups;
    for (int64_t group = 0; group < shape_.groups; ++group)
      packs.emplace_back(Matrix{weights + group * filters, depth(), filters, shape_.filters, 1}, left_);
    return packs;
  });
}

int64_t Convolution::depth() const { return shape_.kernel[0] * shape_.kernel[1] * shape_.kernel[2] * (shape_.channels / shape_.groups); }

int64_t Convolution::packed_size() const { return aligned_size(cpu::packed_size(depth(), shape_.filters / shape_.groups)); }

Panels Convolution::panels(const float* packed, int64_t group) const {
  if (packed == nullptr) return weights_[static_cast<size_t>(group)].panels();
  return panels_at(packed + group * packed_size(), depth(), shape_.filters / shape_.groups, left_);
}

void Convolution::plan_bands() {
  if (shape_.is_product() || shape_.output_pixels() == 0) return;
  const auto& [kd, kh, kw] = shape_.kernel;
  const int64_t channels = shape_.channels / shape_.groups;
  // Bands: some rows of the output of one plane, and the rows of the input under them.
  const int64_t stride = shape_.strides[1], overlap = (kh - 1) * shape_.dilation[1] + 1 - stride;
  band_width_ = padded_ ? shape_.input[2] + shape_.low[2] + shape_.high[2] : shape_.input[2];
  const int64_t row_size = band_width_ * shape_.channels;
  const int64_t fitting = (kBandSize / std::max<int64_t>(1, kd * row_size) - std::max<int64_t>(0, overlap)) / stride;
  rows_per_band_ = std::clamp<int64_t>(fitting, 1, output_[1]);
  band_rows_ = rows_per_band_ * stride + overlap;
  band_size_ = aligned_size(kd * band_rows_ * row_size);

  // Taps: the places of a window relative to its first, runs of them joined where they are neighbours in memory.
  const int64_t plane_size = padded_ ? band_rows_ * row_size : shape_.dilation[0] * shape_.input[1] * row_size;
  if (std::max(band_size_, kd * plane_size) > std::numeric_limits<int32_t>::max()) {
    fail<InternalError>("cpu", "rows of {} floats are too large for a convolution", row_size);
  }
  for (int64_t z = 0; z < kd; ++z) {
    for (int64_t y = 0; y < kh; ++y) {
      for (int64_t x = 0; x < kw; ++x) {
        taps_.push_back(
            static_cast<int32_t>(z * plane_size + y * shape_.dilation[1] * row_size + x * shape_.dilation[2] * shape_.channels));
      }
    }
  }
  depth_ = channels;
  size_t run = 1;
  while (run < taps_.size() && taps_[run] == static_cast<int64_t>(run) * channels) ++run;
  if (taps_.size() % run == 0) {
    for (size_t i = 0; i < taps_.size() / run; ++i) taps_[i] = taps_[i * run];
    taps_.resize(taps_.size() / run);
    depth_ *= static_cast<int64_t>(run);
  }
  for (int64_t row = 0; row < rows_per_band_; ++row) {
    for (int64_t x = 0; x < output_[2]; ++x)
      pixels_.push_back(static_cast<int32_t>(row * stride * row_size + x * shape_.strides[2] * shape_.channels));
  }
}

int64_t Convolution::workspace(int threads) const {
  if (winograd_) return winograd_->workspace(threads);
  return size_for<float>(threads, padded_ ? band_size_ : 0) + (weights_.empty() ? shape_.groups * packed_size() : 0);
}

void Convolution::run(const float* x, Epilogue epilogue, float* y, float* workspace, int threads) const {
  epilogue.residual_stride = shape_.filters;
  if (winograd_) return winograd_->run(x, epilogue, y, workspace, threads);
  run_panels({x, nullptr, workspace}, epilogue, y, threads);
}

void Convolution::run(const float* x, const float* weights, const Epilogue& epilogue, float* y, float* workspace, int threads) const {
  const int64_t filters = shape_.filters / shape_.groups;
  for (int64_t group = 0; group < shape_.groups; ++group)
    pack({weights + group * filters, depth(), filters, shape_.filters, 1}, left_, workspace + group * packed_size());
  run_panels({x, workspace, workspace + shape_.groups * packed_size()}, epilogue, y, threads);
}

void Convolution::run_panels(const Sides& sides, const Epilogue& epilogue, float* y, int threads) const {
  if (shape_.output_pixels() == 0) return;
  const Panels first_group = panels(sides.packed, 0);
  if (shape_.is_product())
    return matmul(shape_.output_pixels(), sides.x, shape_.channels, first_group, epilogue, y, shape_.filters, threads);
  const int64_t rows = shape_.batch * output_[0] * output_[1];
  const int64_t panels = first_group.size();
  const auto piece = [&](int64_t first, int64_t last, int64_t first_panel, int64_t last_panel, int slot) {
    run_bands(sides, epilogue, y, padded_ ? own(slot, sides.bands, band_size_) : nullptr, first, last, first_panel, last_panel);
  };
  // A piece is some rows and all filters, or, of a small image, all rows and some filters.
  const bool by_rows = shape_.groups > 1 || shape_.output_pixels() >= kPixelsOfPiece * threads || first_group.narrow;
  if (threads <= 1 || by_rows) {
    // At least as many rows as are copied twice where two pieces meet.
    const int64_t least = std::max((kPixelsOfPiece + output_[2] - 1) / output_[2], shape_.kernel[1]);
    share(rows, threads, pieces_of(rows, threads, least),
          [&](int64_t first, int64_t last, int slot) { piece(first, last, 0, panels, slot); });
  } else {
    const int64_t pieces = padded_ ? std::min<int64_t>(threads, panels) : pieces_of(panels, threads);  // each copies the whole image
    share(panels, threads, pieces, [&](int64_t first, int64_t last, int slot) { piece(0, rows, first, last, slot); });
  }
}

void Convolution::run_rows(const float* x, const Epilogue& epilogue, float* y, float* workspace, int64_t first, int64_t last) const {
  if (winograd_) return winograd_->run_rows(x, epilogue, y, workspace, first, last);
  const int64_t before = first * output_[2];
  if (shape_.is_product())
    return matmul((last - first) * output_[2], x + before * shape_.channels, shape_.channels, weights_[0].panels(), epilogue, y,
                  shape_.filters, 1);
  run_bands({x, nullptr, workspace}, epilogue, y - before * shape_.filters, workspace, first, last, 0, weights_[0].panels().size());
}

// Output rows `first` to `last`, counted through planes and batch, of some panels of each group.
void Convolution::run_bands(const Sides& sides, const Epilogue& epilogue, float* y, float* band, int64_t first, int64_t last,
                            int64_t first_panel, int64_t last_panel) const {
  const int64_t height = output_[1], width = output_[2];
  RowsOfA a;
  a.offsets = pixels_.data();
  a.taps = static_cast<int64_t>(taps_.size());
  a.tap_offsets = taps_.data();
  a.depth = depth_;
  for (int64_t row = first; row < last;) {
    const int64_t plane = row / height, begin = row % height;
    const int64_t count = std::min({rows_per_band_, height - begin, last - row});
    const float* data = band;
    if (padded_) {
      copy_band(sides.x, plane, begin, count, band);
    } else {
      const int64_t image = plane / output_[0], z = plane % output_[0];
      data =
          sides.x + (((image * shape_.input[0] + z * shape_.strides[0]) * shape_.input[1] + begin * shape_.strides[1]) * shape_.input[2]) *
                        shape_.channels;
    }
    a.count = count * width;
    for (int64_t group = 0; group < shape_.groups; ++group) {
      const Panels panels = this->panels(sides.packed, group);
      const int64_t column = row * width * shape_.filters + group * panels.columns;
      Epilogue own = epilogue;
      if (own.bias) own.bias += group * panels.columns;
      if (own.residual) own.residual += column;
      a.data = data + group * (shape_.channels / shape_.groups);
      multiply_panels(a, panels, first_panel, last_panel, own, y + column, shape_.filters);
    }
    row += count;
  }
}

// The input under some rows of the output, one plane per kernel plane, with zeros where it reaches over the image.
void Convolution::copy_band(const float* x, int64_t plane, int64_t row, int64_t rows, float* band) const {
  const auto& [depth, height, width] = shape_.input;
  const int64_t channels = shape_.channels;
  const int64_t image = plane / output_[0], z0 = plane % output_[0] * shape_.strides[0] - shape_.low[0];
  const int64_t y0 = row * shape_.strides[1] - shape_.low[1];
  const int64_t left = std::clamp<int64_t>(shape_.low[2], 0, band_width_);
  const int64_t present = std::clamp<int64_t>(width + shape_.low[2], left, band_width_) - left;
  const int64_t spared = (rows_per_band_ - rows) * shape_.strides[1];  // of the last band, or of a piece that is less than one
  for (int64_t kz = 0; kz < shape_.kernel[0]; ++kz, band += spared * band_width_ * channels) {
    const int64_t z = z0 + kz * shape_.dilation[0];
    for (int64_t y = y0; y < y0 + band_rows_ - spared; ++y, band += band_width_ * channels) {
      if (z < 0 || z >= depth || y < 0 || y >= height) {
        std::fill_n(band, band_width_ * channels, 0.0f);
        continue;
      }
      const float* from = x + (((image * depth + z) * height + y) * width + std::max<int64_t>(0, -shape_.low[2])) * channels;
      std::fill_n(band, left * channels, 0.0f);
      std::copy_n(from, present * channels, band + left * channels);
      std::fill_n(band + (left + present) * channels, (band_width_ - left - present) * channels, 0.0f);
    }
  }
}

}  // namespace tutti::cpu
