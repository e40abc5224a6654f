#include "tutti/device/cpu/gemm/winograd.h"

#include <algorithm>

#include "tutti/device/cpu/gemm/matmul.h"
#include "tutti/device/cpu/team.h"

namespace tutti::cpu {
namespace {

// Tiles whose planes and products stay near while the weights pass by; a multiple of the rows of a tile of matmul.
constexpr int64_t kTilesAtOnce = 48;
constexpr int64_t kTilesOfPiece = 12;  // that make up for reading all weights
constexpr int64_t kPlanes = 16;
constexpr int64_t kMultiple = 16;  // of channels and filters: whole vectors on every machine

// G w G^T of one channel, in double. weights: 9 taps, `step` floats apart, each [filters]; rows: [16, filters].
void transform_weights(const float* weights, int64_t step, int64_t filters, float* rows) {
  // (a, (a + b + c) / 2, (a - b + c) / 2, c)
  const auto spread = [](double a, double b, double c, double* out, int64_t stride) {
    out[0] = a;
    out[stride] = (a + b + c) / 2;
    out[2 * stride] = (a - b + c) / 2;
    out[3 * stride] = c;
  };
  for (int64_t f = 0; f < filters; ++f) {
    double down[12], all[16];  // [4, 3], [4, 4]
    for (int64_t x = 0; x < 3; ++x) spread(weights[x * step + f], weights[(3 + x) * step + f], weights[(6 + x) * step + f], down + x, 3);
    for (int64_t y = 0; y < 4; ++y) spread(down[3 * y], down[3 * y + 1], down[3 * y + 2], all + 4 * y, 1);
    for (int64_t i = 0; i < kPlanes; ++i) rows[i * filters + f] = static_cast<float>(all[i]);
  }
}

// What the other kernels do in registers.
float activated(const Epilogue& epilogue, float x) {
  if (epilogue.activation == Activation::clip) return x < epilogue.low ? epilogue.low : x > epilogue.high ? epilogue.high : x;
  return epilogue.activation == Activation::leaky_relu && x < 0 ? epilogue.alpha * x : x;
}

}  // namespace

bool Winograd::handles(const ConvolutionShape& shape) {
  const Extents output = shape.output();
  return shape.groups == 1 && shape.kernel == Extents{1, 3, 3} && shape.strides == Extents{1, 1, 1} && shape.dilation == Extents{1, 1, 1} &&
         shape.input[0] == 1 && shape.low[0] == 0 && shape.high[0] == 0 && shape.low[1] >= 0 && shape.low[2] >= 0 &&
         shape.channels % kMultiple == 0 && shape.filters % kMultiple == 0 && shape.channels >= 32 && shape.filters >= 32 &&
         output[1] >= 4 && output[2] >= 4;
}

Winograd::Winograd(const ConvolutionShape& shape, const float* weights, const Packer& packer)
    : shape_(shape),
      output_(shape.output()),
      weights_(weights),
      zeros_(static_cast<size_t>(shape.channels)),
      kernels_(&winograd_kernels()) {
  tiles_down_ = (output_[1] + 1) / 2;
  tiles_across_ = (output_[2] + 1) / 2;
  tiles_ = shape_.batch * tiles_down_ * tiles_across_;
  const int64_t blocks = std::max<int64_t>(1, (tiles_ + kTilesAtOnce - 1) / kTilesAtOnce);
  block_ = (tiles_ + blocks - 1) / blocks;

  planes_ = packer("winograd", [&] {
    const int64_t filters = shape_.filters, pairs = shape_.channels * filters;
    Packs planes;
    for (int64_t i = 0; i < kPlanes; ++i) planes.emplace_back(shape_.channels, filters, LeftRows::several);
    std::vector<float> rows(static_cast<size_t>(kPlanes * filters));
    for (int64_t channel = 0; channel < shape_.channels; ++channel) {
      transform_weights(weights + channel * filters, pairs, filters, rows.data());
      for (int64_t i = 0; i < kPlanes; ++i) planes[static_cast<size_t>(i)].set_row(channel, rows.data() + i * filters);
    }
    return planes;
  });
}

int64_t Winograd::workspace(int threads) const { return size_for<float>(threads, block_ * kPlanes * (shape_.channels + shape_.filters)); }

void Winograd::run(const float* x, const Epilogue& epilogue, float* y, float* workspace, int threads) const {
  const int64_t panels = planes_[0].panels().size();
  const auto run_tiles = [&](int64_t first, int64_t last, int64_t first_panel, int64_t last_panel, int slot) {
    float* planes_and_products = own(slot, workspace, this->workspace(1));
    for (int64_t tile = first; tile < last; tile += block_)
      run_block(x, epilogue, y, planes_and_products, tile, std::min(last, tile + block_), first_panel, last_panel);
  };
  // A piece is some tiles and all filters; or, of few tiles, all and some filters.
  if (threads <= 1 || tiles_ >= kTilesOfPiece * threads) {
    share(tiles_, threads, pieces_of(tiles_, threads, block_),
          [&](int64_t first, int64_t last, int slot) { run_tiles(first, last, 0, panels, slot); });
  } else {
    share(panels, threads, std::min<int64_t>(threads, panels),
          [&](int64_t first, int64_t last, int slot) { run_tiles(0, tiles_, first, last, slot); });
  }
}

void Winograd::run_rows(const float* x, const Epilogue& epilogue, float* y, float* workspace, int64_t first, int64_t last) const {
  const int64_t panels = planes_[0].panels().size(), end = last / 2 * tiles_across_;
  float* const all = y - first * output_[2] * shape_.filters;
  for (int64_t tile = first / 2 * tiles_across_; tile < end; tile += block_)
    run_block(x, epilogue, all, workspace, tile, std::min(end, tile + block_), 0, panels);
}

void Winograd::run_block(const float* x, const Epilogue& epilogue, float* y, float* workspace, int64_t first_tile, int64_t last_tile,
                         int64_t first_panel, int64_t last_panel) const {
  if (first_panel == last_panel) return;
  const int64_t count = last_tile - first_tile;
  float* planes = workspace;                                         // [16, tiles, channels]
  float* products = workspace + kPlanes * block_ * shape_.channels;  // [16, tiles, filters]
  uint64_t plain = 0;                                                // tiles to sum plainly, a bit each
  static_assert(kTilesAtOnce <= 64);
  for (int64_t tile = 0; tile < count; ++tile)
    if (!transform_tile(x, first_tile + tile, planes + tile * shape_.channels)) plain |= uint64_t{1} << tile;
  RowsOfA a;
  a.stride = shape_.channels;
  a.count = count;
  a.depth = shape_.channels;
  for (int64_t i = 0; i < kPlanes; ++i) {
    a.data = planes + i * block_ * shape_.channels;
    multiply_panels(a, planes_[static_cast<size_t>(i)].panels(), first_panel, last_panel, {}, products + i * block_ * shape_.filters,
                    shape_.filters);
  }
  const Panels& panels = planes_[0].panels();
  const int64_t first = panels.column(first_panel), last = last_panel == panels.size() ? shape_.filters : panels.column(last_panel);
  for (int64_t tile = 0; tile < count; ++tile) {
    if ((plain >> tile & 1) != 0) {
      sum_plainly(x, first_tile + tile, first, last, epilogue, y);
    } else {
      finish_tile(products + tile * shape_.filters, first_tile + tile, first, last, epilogue, y);
    }
  }
}

Winograd::Place Winograd::place_of(int64_t tile) const {
  return {tile / (tiles_down_ * tiles_across_), tile / tiles_across_ % tiles_down_ * 2, tile % tiles_across_ * 2};
}

const float* Winograd::pixel(const float* x, int64_t image, int64_t row, int64_t column) const {
  const bool inside = row >= 0 && row < shape_.input[1] && column >= 0 && column < shape_.input[2];
  return inside ? x + ((image * shape_.input[1] + row) * shape_.input[2] + column) * shape_.channels : nullptr;
}

bool Winograd::transform_tile(const float* x, int64_t tile, float* planes) const {
  const Place place = place_of(tile);
  const int64_t top = place.row - shape_.low[1], left = place.column - shape_.low[2];
  const float* pixels[16];
  if (top >= 0 && left >= 0 && top + 4 <= shape_.input[1] && left + 4 <= shape_.input[2]) {
    const float* const first = pixel(x, place.image, top, left);
    for (int64_t i = 0; i < 16; ++i) pixels[i] = first + (i / 4 * shape_.input[2] + i % 4) * shape_.channels;
  } else {
    for (int64_t i = 0; i < 16; ++i) {
      pixels[i] = pixel(x, place.image, top + i / 4, left + i % 4);
      if (pixels[i] == nullptr) pixels[i] = zeros_.data();
    }
  }
  return kernels_->to_planes(pixels, shape_.channels, planes, block_ * shape_.channels);
}

void Winograd::sum_plainly(const float* x, int64_t tile, int64_t first, int64_t last, const Epilogue& epilogue, float* y) const {
  const Place place = place_of(tile);
  for (int64_t i = 0; i < 4; ++i) {
    const int64_t row = place.row + i / 2, column = place.column + i % 2;
    if (row >= output_[1] || column >= output_[2]) continue;
    const int64_t offset = ((place.image * output_[1] + row) * output_[2] + column) * shape_.filters;
    float* sums = y + offset;
    for (int64_t f = first; f < last; ++f) sums[f] = epilogue.bias ? epilogue.bias[f] : 0.0f;
    for (int64_t tap = 0; tap < 9; ++tap) {
      const float* from = pixel(x, place.image, row - shape_.low[1] + tap / 3, column - shape_.low[2] + tap % 3);
      const float* weights = weights_ + tap * shape_.channels * shape_.filters;
      for (int64_t c = 0; from != nullptr && c < shape_.channels; ++c)
        for (int64_t f = first; f < last; ++f) sums[f] += from[c] * weights[c * shape_.filters + f];
    }
    for (int64_t f = first; f < last; ++f)
      sums[f] = activated(epilogue, epilogue.residual ? sums[f] + epilogue.residual[offset + f] : sums[f]);
    if (!epilogue.in_registers()) activate(epilogue, sums + first, 1, last - first, 0);
  }
}

// Filters `first` to `last` of the 2x2 results of a tile.
void Winograd::finish_tile(const float* products, int64_t tile, int64_t first, int64_t last, const Epilogue& epilogue, float* y) const {
  const auto [image, top, left] = place_of(tile);
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
