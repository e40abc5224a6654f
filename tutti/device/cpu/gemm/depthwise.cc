#include "tutti/device/cpu/gemm/depthwise.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/device/cpu/gemm/aligned.h"
#include "tutti/device/cpu/gemm/depthwise_kernel.h"
#include "tutti/device/cpu/gemm/team.h"

namespace tutti::cpu {
namespace {

struct Range {
  int64_t first, last;
};

// The taps of a window at `start` that are inside [0, extent).
Range taps_inside(int64_t start, int64_t extent, int64_t taps, int64_t dilation) {
  const int64_t first = start >= 0 ? 0 : (-start + dilation - 1) / dilation;
  const int64_t last = start >= extent ? 0 : (extent - 1 - start) / dilation + 1;
  return {std::min(first, taps), std::clamp<int64_t>(last, std::min(first, taps), taps)};
}

}  // namespace

bool DepthwiseConvolution::handles(const ConvolutionShape& shape) {
  return shape.groups == shape.channels && shape.filters == shape.channels && shape.input[0] == 1 && shape.kernel[0] == 1 &&
         shape.low[0] == 0 && shape.high[0] == 0;
}

DepthwiseConvolution::DepthwiseConvolution(const ConvolutionShape& shape, const float* weights)
    : shape_(shape), kernels_(&depthwise_kernels()) {
  if (!handles(shape)) fail<InternalError>("cpu", "{} channels in {} groups are not a depthwise convolution", shape.channels, shape.groups);
  // One spatial axis: the pixels are in a row, not in a column.
  if (shape_.input[2] == 1 && shape_.kernel[2] == 1 && shape_.low[2] == 0 && shape_.high[2] == 0) {
    for (Extents* extents : {&shape_.input, &shape_.kernel, &shape_.strides, &shape_.dilation, &shape_.low, &shape_.high})
      std::swap((*extents)[1], (*extents)[2]);
  }
  output_ = shape_.output();
  const int64_t taps = shape_.kernel[1] * shape_.kernel[2];
  padded_channels_ = (shape_.channels + kernels_->lanes - 1) / kernels_->lanes * kernels_->lanes;
  weights_ = aligned_floats(taps * padded_channels_);
  for (int64_t tap = 0; tap < taps; ++tap) {
    float* place = weights_.get() + tap * padded_channels_;
    std::copy_n(weights + tap * shape_.channels, shape_.channels, place);
    std::fill(place + shape_.channels, place + padded_channels_, 0.0f);
  }
  const auto inside = [&](int64_t column) {
    const Range columns = taps_inside(column * shape_.strides[2] - shape_.low[2], shape_.input[2], shape_.kernel[2], shape_.dilation[2]);
    return columns.first == 0 && columns.last == shape_.kernel[2];
  };
  while (inner_first_ < output_[2] && !inside(inner_first_)) ++inner_first_;
  inner_last_ = inner_first_;
  while (inner_last_ < output_[2] && inside(inner_last_)) ++inner_last_;
}

void DepthwiseConvolution::run(const float* x, Epilogue epilogue, float* y, int threads) const {
  const int64_t rows = shape_.batch * output_[1];
  epilogue.residual_stride = shape_.channels;
  team(threads, [&](int64_t member, int64_t members) {
    for (int64_t row = rows * member / members; row < rows * (member + 1) / members; ++row) run_row(x, epilogue, y, row);
  });
}

// One row of the output, counted through the batch.
void DepthwiseConvolution::run_row(const float* x, const Epilogue& epilogue, float* y, int64_t row) const {
  const int64_t channels = shape_.channels, width = output_[2];
  const int64_t image = row / output_[1], top = row % output_[1] * shape_.strides[1] - shape_.low[1];
  const Range rows = taps_inside(top, shape_.input[1], shape_.kernel[1], shape_.dilation[1]);
  DepthwiseCall call;
  call.x_row = shape_.dilation[1] * shape_.input[2] * channels;
  call.x_column = shape_.dilation[2] * channels;
  call.x_pixel = shape_.strides[2] * channels;
  call.weights_row = shape_.kernel[2] * padded_channels_;
  call.weights_column = padded_channels_;
  call.rows = rows.last - rows.first;
  call.channels = channels;
  call.epilogue = &epilogue;
  const float* x_top = x + (image * shape_.input[1] + top + rows.first * shape_.dilation[1]) * shape_.input[2] * channels;
  for (int64_t column = 0; column < width;) {
    const int64_t left = column * shape_.strides[2] - shape_.low[2];
    const bool inner = column >= inner_first_ && column < inner_last_;
    Range columns{0, shape_.kernel[2]};
    int64_t pixels = 1;
    if (inner) {
      const int64_t ahead = inner_last_ - column;
      pixels = ahead >= 2 * DepthwiseKernels::kPixels ? DepthwiseKernels::kPixels
               : ahead > DepthwiseKernels::kPixels    ? (ahead + 1) / 2
                                                      : ahead;
    } else {
      columns = taps_inside(left, shape_.input[2], shape_.kernel[2], shape_.dilation[2]);
    }
    call.x = x_top + (left + columns.first * shape_.dilation[2]) * channels;
    call.weights = weights_.get() + (rows.first * shape_.kernel[2] + columns.first) * padded_channels_;
    call.columns = columns.last - columns.first;
    const int64_t place = (row * width + column) * channels;
    call.residual = epilogue.residual ? epilogue.residual + place : nullptr;
    call.y = y + place;
    kernels_->run[pixels](call);
    column += pixels;
  }
  if (!epilogue.in_registers()) activate(epilogue, y + row * width * channels, 1, width * channels, 0);
}

}  // namespace tutti::cpu
