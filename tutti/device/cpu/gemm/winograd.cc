#include "tutti/device/cpu/gemm/winograd.h"

#include <algorithm>

#include "tutti/device/cpu/gemm/matmul.h"
#include "tutti/device/cpu/gemm/team.h"

namespace tutti::cpu {
namespace {

// Tiles whose planes and products stay near while the weights pass by; a multiple of the rows of a tile of matmul.
constexpr int64_t kTilesAtOnce = 48;
constexpr int64_t kPlanes = 16;
constexpr int64_t kMultiple = 16;  // of channels and filters: whole vectors on every machine

}  // namespace

bool Winograd::handles(const ConvolutionShape& shape) {
  const Extents output = shape.output();
  return shape.groups == 1 && shape.kernel == Extents{1, 3, 3} && shape.strides == Extents{1, 1, 1} && shape.dilation == Extents{1, 1, 1} &&
         shape.input[0] == 1 && shape.low[0] == 0 && shape.high[0] == 0 && shape.low[1] >= 0 && shape.low[2] >= 0 &&
         shape.channels % kMultiple == 0 && shape.filters % kMultiple == 0 && shape.channels >= 32 && shape.filters >= 32 &&
         output[1] >= 4 && output[2] >= 4;
}

Winograd::Winograd(const ConvolutionShape& shape, const float* weights)
    : shape_(shape), output_(shape.output()), zeros_(static_cast<size_t>(shape.channels)), kernels_(&winograd_kernels()) {
  tiles_down_ = (output_[1] + 1) / 2;
  tiles_across_ = (output_[2] + 1) / 2;
  tiles_ = shape_.batch * tiles_down_ * tiles_across_;
  const int64_t blocks = std::max<int64_t>(1, (tiles_ + kTilesAtOnce - 1) / kTilesAtOnce);
  block_ = (tiles_ + blocks - 1) / blocks;

  // G w G^T for each pair of channels, in double.
  constexpr double kG[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
  const int64_t pairs = shape_.channels * shape_.filters;
  std::vector<float> plane(static_cast<size_t>(pairs));
  for (int64_t i = 0; i < kPlanes; ++i) {
    for (int64_t pair = 0; pair < pairs; ++pair) {
      double sum = 0;
      for (int64_t tap = 0; tap < 9; ++tap) sum += kG[i / 4][tap / 3] * kG[i % 4][tap % 3] * double{weights[tap * pairs + pair]};
      plane[static_cast<size_t>(pair)] = static_cast<float>(sum);
    }
    weights_.emplace_back(Matrix{plane.data(), shape_.channels, shape_.filters, shape_.filters, 1});
  }
}

int64_t Winograd::workspace(int threads) const { return std::max(1, threads) * block_ * kPlanes * (shape_.channels + shape_.filters); }

void Winograd::run(const float* x, const Epilogue& epilogue, float* y, float* workspace, int threads) const {
  const int64_t blocks = (tiles_ + block_ - 1) / block_, panels = weights_[0].panels().size();
  team(threads, [&](int64_t member, int64_t members) {
    float* own = workspace + member * block_ * kPlanes * (shape_.channels + shape_.filters);
    // Each thread takes some tiles and all filters; or, of few tiles, all and some filters.
    const bool by_tiles = blocks >= members;
    const int64_t first = by_tiles ? tiles_ * member / members : 0, last = by_tiles ? tiles_ * (member + 1) / members : tiles_;
    const int64_t first_panel = by_tiles ? 0 : panels * member / members, last_panel = by_tiles ? panels : panels * (member + 1) / members;
    for (int64_t tile = first; tile < last; tile += block_) {
      run_block(x, epilogue, y, own, tile, std::min(last, tile + block_), first_panel, last_panel);
    }
  });
}

void Winograd::run_block(const float* x, const Epilogue& epilogue, float* y, float* workspace, int64_t first_tile, int64_t last_tile,
                         int64_t first_panel, int64_t last_panel) const {
  if (first_panel == last_panel) return;
  const int64_t count = last_tile - first_tile;
  float* planes = workspace;                                         // [16, tiles, channels]
  float* products = workspace + kPlanes * block_ * shape_.channels;  // [16, tiles, filters]
  for (int64_t tile = 0; tile < count; ++tile) transform_tile(x, first_tile + tile, planes + tile * shape_.channels);
  RowsOfA a;
  a.stride = shape_.channels;
  a.count = count;
  a.depth = shape_.channels;
  for (int64_t i = 0; i < kPlanes; ++i) {
    a.data = planes + i * block_ * shape_.channels;
    multiply_panels(a, weights_[static_cast<size_t>(i)].panels(), first_panel, last_panel, {}, products + i * block_ * shape_.filters,
                    shape_.filters);
  }
  const Panels& panels = weights_[0].panels();
  const int64_t first = panels.column(first_panel), last = last_panel == panels.size() ? shape_.filters : panels.column(last_panel);
  for (int64_t tile = 0; tile < count; ++tile) finish_tile(products + tile * shape_.filters, first_tile + tile, first, last, epilogue, y);
}

void Winograd::transform_tile(const float* x, int64_t tile, float* planes) const {
  const int64_t image = tile / (tiles_down_ * tiles_across_);
  const int64_t top = tile / tiles_across_ % tiles_down_ * 2 - shape_.low[1], left = tile % tiles_across_ * 2 - shape_.low[2];
  const float* pixels[16];
  for (int64_t i = 0; i < 16; ++i) {
    const int64_t row = top + i / 4, column = left + i % 4;
    const bool inside = row >= 0 && row < shape_.input[1] && column >= 0 && column < shape_.input[2];
    pixels[i] = inside ? x + ((image * shape_.input[1] + row) * shape_.input[2] + column) * shape_.channels : zeros_.data();
  }
  kernels_->to_planes(pixels, shape_.channels, planes, block_ * shape_.channels);
}

// Filters `first` to `last` of the 2x2 results of a tile.
void Winograd::finish_tile(const float* products, int64_t tile, int64_t first, int64_t last, const Epilogue& epilogue, float* y) const {
  const int64_t image = tile / (tiles_down_ * tiles_across_);
  const int64_t top = tile / tiles_across_ % tiles_down_ * 2, left = tile % tiles_across_ * 2;
  float* places[4];
  const float* residuals[4];
  for (int64_t i = 0; i < 4; ++i) {
    const int64_t row = top + i / 2, column = left + i % 2, place = ((image * output_[1] + row) * output_[2] + column) * shape_.filters;
    const bool inside = row < output_[1] && column < output_[2];
    places[i] = inside ? y + place : nullptr;
    residuals[i] = inside && epilogue.residual ? epilogue.residual + place : nullptr;
  }
  kernels_->from_planes(products, block_ * shape_.filters, first, last, epilogue, residuals, places);
  if (epilogue.in_registers()) return;
  for (float* place : places) {
    if (place) activate(epilogue, place + first, 1, last - first, 0);
  }
}

}  // namespace tutti::cpu
