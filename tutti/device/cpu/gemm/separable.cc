#include "tutti/device/cpu/gemm/separable.h"

#include <algorithm>
#include <memory>

#include "tutti/device/cpu/gemm/aligned.h"
#include "tutti/device/cpu/gemm/matmul.h"
#include "tutti/device/cpu/team.h"

namespace tutti::cpu {
namespace {

constexpr int64_t kBetween = int64_t{64} * 1024;  // floats between the convolutions, beside their weights in the second-level cache

// The same where threads divide the channels, of each.
constexpr int64_t kOfChannels = int64_t{128} * 1024;
constexpr int64_t kGranule = 16;  // channels: whole turns of the kernels' loops
constexpr int kMostParts = 64;
constexpr double kWorthChannels = 1.1;  // times the work of an even share

int64_t reach_of(const ConvolutionShape& shape) { return (shape.kernel[1] - 1) * shape.dilation[1] + 1; }

}  // namespace

// The rows that a thread has expanded, counted through the batch: its next piece may begin with some of them. In its workspace, before
// them.
struct SeparableConvolution::Expanded {
  int64_t begin = 0, end = 0;
};

SeparableConvolution::SeparableConvolution(const ConvolutionShape& shape, Parts parts)
    : shape_(shape), parts_(std::move(parts)), output_(shape.output()) {
  const int64_t stride = shape_.strides[1];
  reach_ = reach_of(shape_);
  const int64_t before = parts_.expand ? shape_.input[2] * shape_.channels : 0, after = parts_.project ? output_[2] * shape_.channels : 0;
  const int64_t fitting = (kBetween - (reach_ - stride) * before) / std::max<int64_t>(1, stride * before + after);
  rows_per_band_ = std::clamp<int64_t>(fitting, 1, output_[1]);
  expanded_size_ = aligned_size(((rows_per_band_ - 1) * stride + reach_) * before);
  filtered_size_ = aligned_size(rows_per_band_ * after);
  if (parts_.expand) expand_space_ = parts_.expand->workspace(1);
  pixels_before_ = shape_.batch * shape_.input[1] * shape_.input[2];
  pixels_after_ = shape_.output_pixels();
}

int64_t SeparableConvolution::rows_of_piece(const ConvolutionShape& shape, bool expands) {
  return expands ? 3 * std::max<int64_t>(1, reach_of(shape) - shape.strides[1]) : 1;
}

bool SeparableConvolution::is_by_channels(int threads) const {
  if (threads < 2 || threads > kMostParts || !parts_.expand || !parts_.project || !parts_.depthwise.can_stand_apart()) return false;
  if (!parts_.expand->shape().is_product() || shape_.channels % threads != 0) return false;
  const Panels &in = parts_.expand->panels_of_product(), &out = parts_.project->panels_of_product();
  // Each thread has whole panels, and what is summed up in the end is summed up in the same order, run by run.
  const int64_t channels = shape_.channels / threads;
  if (in.narrow || out.in_pairs || channels % kGranule != 0) return false;
  if (in.size() % threads != 0 || in.column(in.size() / threads) != channels) return false;
  if (channels * (pixels_before_ + pixels_after_) > kOfChannels) return false;
  // Divided by rows, whoever has most of them expands those that its neighbour needs too; the expansion is half of the work.
  const int64_t rows = shape_.batch * output_[1], most = (rows + threads - 1) / threads;
  const auto part = [](int64_t some, int64_t all) { return static_cast<double>(some) / static_cast<double>(all); };
  const double by_rows = (part((most - 1) * shape_.strides[1] + reach_, shape_.batch * shape_.input[1]) + part(most, rows)) / 2;
  return by_rows * threads > kWorthChannels;
}

int64_t SeparableConvolution::of_thread(int threads) const {
  if (is_by_channels(threads)) return shape_.channels / threads * (pixels_before_ + pixels_after_);
  return kExpandedFloats + expanded_size_ + filtered_size_ + expand_space_;
}

int64_t SeparableConvolution::workspace(int threads) const { return size_for<float>(threads, of_thread(threads)); }

void SeparableConvolution::run(const float* x, const Epilogues& epilogues, float* y, float* workspace, int threads) const {
  if (is_by_channels(threads)) return run_by_channels(x, epilogues, y, workspace, threads);
  const int64_t rows = shape_.batch * output_[1];
  const int64_t pieces = pieces_of(rows, threads, rows_of_piece(shape_, parts_.expand.has_value()));
  const auto space = [&](int slot) { return own(slot, workspace, of_thread(threads)); };
  for (int slot = 0; slot < std::max(1, threads); ++slot) std::construct_at(reinterpret_cast<Expanded*>(space(slot)));
  share(rows, threads, pieces, [&](int64_t first, int64_t last, int slot) { run_rows(x, epilogues, y, space(slot), first, last); });
}

// Each thread expands and filters its own channels, where nobody else looks. The projection then reads a pixel's channels from all of them.
void SeparableConvolution::run_by_channels(const float* x, const Epilogues& epilogues, float* y, float* workspace, int threads) const {
  const Panels &in = parts_.expand->panels_of_product(), &out = parts_.project->panels_of_product();
  const int64_t each = in.size() / threads, channels = shape_.channels / threads, size = of_thread(threads);
  const auto expanded = [&](int64_t part) { return own(static_cast<int>(part), workspace, size); };
  const auto filtered = [&](int64_t part) { return expanded(part) + channels * pixels_before_; };
  team(threads, threads, [&](int64_t part, int) {
    RowsOfA pixels{x, nullptr, in.depth, pixels_before_};
    pixels.depth = in.depth;
    const int64_t first = part * channels;
    multiply_blocks(pixels, in, part * each, (part + 1) * each, epilogues.expand, expanded(part) - first, channels);
    parts_.depthwise.run_channels(expanded(part), epilogues.depthwise, filtered(part), first, channels);
  });
  int32_t runs[kMostParts];
  for (int64_t part = 0; part < threads; ++part) runs[part] = static_cast<int32_t>(filtered(part) - filtered(0));
  Epilogue last = epilogues.project;
  last.residual_stride = out.columns;
  matmul({filtered(0), nullptr, channels, pixels_after_, threads, runs, channels}, out, last, y, out.columns, threads);
}

// Rows of the output, counted through the batch.
void SeparableConvolution::run_rows(const float* x, const Epilogues& epilogues, float* y, float* workspace, int64_t first,
                                    int64_t last) const {
  const int64_t height = shape_.input[1], wide = shape_.input[2] * shape_.channels, stride = shape_.strides[1];
  auto& [begin, end] = *reinterpret_cast<Expanded*>(workspace);
  workspace += kExpandedFloats;
  float *const filtered = workspace + expanded_size_, *const expand_space = filtered + filtered_size_;
  for (int64_t row = first; row < last;) {
    const int64_t image = row / output_[1], place = row % output_[1];
    const int64_t count = std::min({rows_per_band_, output_[1] - place, last - row});
    const float* source = x;
    if (parts_.expand) {
      const int64_t top = place * stride - shape_.low[1];
      const int64_t from = image * height + std::clamp<int64_t>(top, 0, height);
      const int64_t to = image * height + std::clamp<int64_t>(top + (count - 1) * stride + reach_, 0, height);
      if (from < begin || from > end) end = from;
      // What the band before has expanded, if it is needed again.
      if (from > begin && from < end) std::copy(workspace + (from - begin) * wide, workspace + (end - begin) * wide, workspace);
      begin = from;
      if (to > end) {
        parts_.expand->run_rows(x, epilogues.expand, workspace + (end - begin) * wide, expand_space, end, to);
        end = to;
      }
      source = workspace - begin * wide;
    }
    const int64_t pixel = row * output_[2];
    float* const target = parts_.project ? filtered : y + pixel * shape_.channels;
    parts_.depthwise.run_rows(source, epilogues.depthwise, target, row, row + count);
    if (parts_.project) {
      const int64_t filters = parts_.project->shape().filters;
      Epilogue own = epilogues.project;
      if (own.residual) own.residual += pixel * filters;
      parts_.project->run_rows(filtered - pixel * shape_.channels, own, y + pixel * filters, nullptr, row, row + count);
    }
    row += count;
  }
}

}  // namespace tutti::cpu
