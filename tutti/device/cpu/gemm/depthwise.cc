#include "tutti/device/cpu/gemm/depthwise.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/device/cpu/gemm/aligned.h"
#include "tutti/device/cpu/gemm/depthwise_kernel.h"
#include "tutti/device/cpu/gemm/matmul.h"
#include "tutti/device/cpu/team.h"

namespace tutti::cpu {
namespace {

// A kernel goes through all channels of a few pixels. Of more channels than these, what its windows share with the next ones has left the
// first-level cache by then.
constexpr int64_t kManyChannels = 256;
constexpr int64_t kNear = int64_t{6} * 1024;  // floats that stay there from row to row
constexpr int64_t kLeastChannels = 48;        // at once

}  // namespace

std::vector<DepthwiseConvolution::Band> DepthwiseConvolution::bands(const ConvolutionShape& shape, size_t axis) {
  std::vector<Band> bands;
  const int64_t extent = shape.input[axis], taps = shape.kernel[axis], dilation = shape.dilation[axis];
  for (int64_t place = 0; place < shape.output()[axis]; ++place) {
    const int64_t start = place * shape.strides[axis] - shape.low[axis];
    const int64_t first = std::min(taps, start >= 0 ? 0 : (dilation - 1 - start) / dilation);
    const int64_t last = std::clamp<int64_t>(start >= extent ? 0 : (extent - 1 - start) / dilation + 1, first, taps);
    if (!bands.empty() && bands.back().first_tap == first && bands.back().last_tap == last) {
      bands.back().end = place + 1;
    } else {
      bands.push_back({place, place + 1, first, last});
    }
  }
  return bands;
}

bool DepthwiseConvolution::handles(const ConvolutionShape& shape) {
  return shape.groups == shape.channels && shape.filters == shape.channels && shape.input[0] == 1 && shape.kernel[0] == 1 &&
         shape.low[0] == 0 && shape.high[0] == 0;
}

DepthwiseConvolution::DepthwiseConvolution(const ConvolutionShape& shape, const float* weights) : DepthwiseConvolution(shape) {
  weights_ = aligned_floats(packed_size());
  pack(weights, weights_.get());
}

int64_t DepthwiseConvolution::packed_size() const { return shape_.kernel[1] * shape_.kernel[2] * padded_channels_; }

void DepthwiseConvolution::pack(const float* weights, float* packed) const {
  for (int64_t tap = 0; tap < shape_.kernel[1] * shape_.kernel[2]; ++tap, packed += padded_channels_) {
    std::copy_n(weights + tap * shape_.channels, shape_.channels, packed);
    std::fill(packed + shape_.channels, packed + padded_channels_, 0.0f);
  }
}

DepthwiseConvolution::DepthwiseConvolution(const ConvolutionShape& shape) : shape_(shape), kernel_(&depthwise_kernel()) {
  if (!handles(shape)) fail<InternalError>("cpu", "{} channels in {} groups are not a depthwise convolution", shape.channels, shape.groups);
  // One spatial axis: the pixels are in a row, not in a column.
  if (shape_.input[2] == 1 && shape_.kernel[2] == 1 && shape_.low[2] == 0 && shape_.high[2] == 0) {
    for (Extents* extents : {&shape_.input, &shape_.kernel, &shape_.strides, &shape_.dilation, &shape_.low, &shape_.high})
      std::swap((*extents)[1], (*extents)[2]);
  }
  output_ = shape_.output();
  padded_channels_ = (shape_.channels + kernel_->lanes - 1) / kernel_->lanes * kernel_->lanes;
  rows_ = bands(shape_, 1);
  if (shape_.dilation[2] == 1 && kernel_->has_rows(shape_.kernel[2], shape_.strides[2], shape_.channels)) {
    const auto fits = [&](size_t axis) {
      const int64_t last = (output_[axis] - 1) * shape_.strides[axis] - shape_.low[axis] + 3;
      return shape_.kernel[axis] == 3 && shape_.dilation[axis] == 1 && shape_.low[axis] <= 1 && last <= shape_.input[axis] + 1;
    };
    of_3_ = shape_.strides[1] == shape_.strides[2] && fits(1) && fits(2);
    return;
  }
  columns_ = bands(shape_, 2);
  for (const Band& rows : rows_) {
    for (const Band& columns : columns_) {
      std::vector<DepthwiseTap>& inside = taps_.emplace_back();
      for (int64_t i = rows.first_tap; i < rows.last_tap; ++i) {
        for (int64_t j = columns.first_tap; j < columns.last_tap; ++j) {
          inside.push_back({(i * shape_.dilation[1] * shape_.input[2] + j * shape_.dilation[2]) * shape_.channels,
                            (i * shape_.kernel[2] + j) * padded_channels_});
        }
      }
    }
  }
}

void DepthwiseConvolution::run(const float* x, Epilogue epilogue, float* y, int threads, const float* packed) const {
  const int64_t rows = shape_.batch * output_[1];
  epilogue.residual_stride = shape_.channels;
  // Of few pixels, products are divided by columns: these are the channels that a thread has made itself.
  const int64_t lanes = kernel_->lanes, vectors = shape_.channels / lanes;
  if (threads > 1 && rows * output_[2] < kManyRows * threads && vectors >= threads && epilogue.in_registers()) {
    share(vectors, threads, threads, [&](int64_t begin, int64_t end, int) {
      const int64_t channel = begin * lanes, after = end == vectors ? shape_.channels : end * lanes;
      run_part(x, epilogue, y, 0, rows, {channel, after - channel, channel, shape_.channels}, packed);
    });
    return;
  }
  share(rows, threads,
        [&](int64_t begin, int64_t end) { run_rows(x, epilogue, y + begin * output_[2] * shape_.channels, begin, end, packed); });
}

const DepthwiseConvolution::Band& DepthwiseConvolution::band_of(int64_t row) const {
  size_t band = 0;
  while (rows_[band].end <= row % output_[1]) ++band;
  return rows_[band];
}

DepthwiseConvolution::RowsKernel DepthwiseConvolution::kernel_of_two(int64_t row, const Epilogue& epilogue) const {
  if (!columns_.empty() || row % output_[1] + 1 == output_[1]) return nullptr;
  if (of_3_ && epilogue.residual == nullptr) return kernel_->two_rows_of_3;
  const Band& band = band_of(row);
  const bool alike = row % output_[1] + 1 < band.end && band.last_tap - band.first_tap == shape_.kernel[1];
  if (!alike || shape_.dilation[1] != 1 || shape_.strides[1] >= shape_.kernel[1]) return nullptr;
  return kernel_->has_two_rows(shape_.kernel[2]) ? kernel_->two_rows : nullptr;
}

void DepthwiseConvolution::run_rows(const float* x, const Epilogue& epilogue, float* y, int64_t first, int64_t last,
                                    const float* packed) const {
  run_part(x, epilogue, y, first, last, {0, shape_.channels, 0, shape_.channels}, packed);
}

void DepthwiseConvolution::run_channels(const float* x, const Epilogue& epilogue, float* y, int64_t first, int64_t count) const {
  run_part(x, epilogue, y, 0, shape_.batch * output_[1], {first, count, 0, count}, nullptr);
}

// The rows under two rows of windows, and those two, stay near.
int64_t DepthwiseConvolution::channels_at_once(int64_t channels, const Epilogue& epilogue) const {
  if (channels <= kManyChannels || !epilogue.in_registers()) return channels;
  const int64_t rows = (shape_.kernel[1] - 1) * shape_.dilation[1] + 1 + shape_.strides[1] + 2;
  const int64_t fitting = kNear / (rows * shape_.input[2]);
  return std::max(kLeastChannels, fitting / kernel_->lanes * kernel_->lanes);
}

void DepthwiseConvolution::run_part(const float* x, const Epilogue& epilogue, float* y, int64_t first, int64_t last, Channels channels,
                                    const float* packed) const {
  const int64_t most = channels_at_once(channels.count, epilogue);
  for (int64_t done = 0, count = 0; done < channels.count; done += count) {
    const int64_t left = channels.count - done;
    count = left >= most + kernel_->lanes ? most : left;
    const Channels some{channels.first + done, count, channels.at + done, channels.pixel};
    float* to = y;
    for (int64_t row = first; row < last;) {
      const RowsKernel two = row + 1 < last ? kernel_of_two(row, epilogue) : nullptr;
      run_row(x, epilogue, to, row, two, some, packed);
      const int64_t rows = two ? 2 : 1;
      row += rows;
      to += rows * output_[2] * channels.pixel;
    }
  }
}

void DepthwiseConvolution::run_row(const float* x, const Epilogue& all, float* y, int64_t row, RowsKernel two, Channels part,
                                   const float* packed) const {
  const Epilogue epilogue = all.moved(part.first, part.first);
  const int64_t channels = part.pixel, image = row / output_[1], place = row % output_[1];
  const Band& band = band_of(row);
  const int64_t top = image * shape_.input[1] + place * shape_.strides[1] - shape_.low[1];
  DepthwiseCall call;
  call.x = x + (top * shape_.input[2] - shape_.low[2]) * channels + part.at;
  call.weights = (packed ? packed : weights_.get()) + part.first;
  call.pixels = output_[2];
  call.channels = channels;
  call.computed = part.count;
  call.epilogue = &epilogue;
  call.residual = epilogue.residual ? epilogue.residual + row * output_[2] * channels : nullptr;
  call.y = y + part.at;
  if (columns_.empty()) {
    const int64_t x_row = shape_.dilation[1] * shape_.input[2] * channels, weights_row = shape_.kernel[2] * padded_channels_;
    DepthwiseRows windows{shape_.kernel[2], shape_.strides[2], shape_.kernel[1],     x_row, weights_row, padded_channels_, -shape_.low[2],
                          shape_.input[2],  shape_.strides[1], output_[2] * channels};
    if (two && two == kernel_->two_rows_of_3) {
      const int64_t start = place * shape_.strides[1] - shape_.low[1];
      windows.above = start < 0;
      windows.below = start + shape_.strides[1] + 3 > shape_.input[1];
    } else {
      windows.rows = band.last_tap - band.first_tap;
      call.x += band.first_tap * x_row;
      call.weights += band.first_tap * weights_row;
    }
    (two ? two : kernel_->rows)(call, windows);
  } else {
    run_taps(call, &taps_[static_cast<size_t>(&band - rows_.data()) * columns_.size()]);
  }
  if (!epilogue.in_registers()) activate(epilogue, y, 1, (two ? 2 : 1) * output_[2] * channels, 0);
}

// The same, band by band of columns. taps: one list a band.
void DepthwiseConvolution::run_taps(DepthwiseCall call, const std::vector<DepthwiseTap>* taps) const {
  const DepthwiseCall row = call;
  const int64_t x_pixel = shape_.strides[2] * shape_.channels;
  for (const Band& columns : columns_) {
    call.x = row.x + columns.begin * x_pixel;
    call.pixels = columns.end - columns.begin;
    call.residual = row.residual ? row.residual + columns.begin * shape_.channels : nullptr;
    call.y = row.y + columns.begin * shape_.channels;
    kernel_->taps(call, {x_pixel, taps->data(), static_cast<int64_t>(taps->size())});
    ++taps;
  }
}

}  // namespace tutti::cpu
