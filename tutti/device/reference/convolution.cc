// convolution: input [n, spatial..., c], kernel [spatial..., c / groups, o] -> [n, spatial..., o].
#include "tutti/device/reference/kernel.h"
#include "tutti/device/reference/multiply_rows.h"

namespace tutti::reference {

namespace {

struct Axis {
  int64_t outputs, inputs, input_stride /* bytes */, taps, stride, low, input_dilation, tap_dilation;
  // The input position under a tap, or -1 for padding and for the gaps of a dilated input.
  int64_t input(int64_t output, int64_t tap) const {
    int64_t place = output * stride - low + tap * tap_dilation;
    if (place < 0 || place % input_dilation != 0 || place / input_dilation >= inputs) return -1;
    return place / input_dilation;
  }
};

// Next position of an odometer over the axes; `extent` picks what is counted.
bool advance(int64_t* position, const std::vector<Axis>& axes, int64_t Axis::*extent) {
  for (size_t a = axes.size(); a-- > 0;) {
    if (++position[a] < axes[a].*extent) return true;
    position[a] = 0;
  }
  return false;
}

template <class S>
class Convolution {
 public:
  Convolution(const Graph& graph, const Node& node, SumRows<S> type) : type_(type) {
    const auto& a = node.attributes;
    const Shape &input = operand_type(graph, node, 0).shape, &kernel = operand_type(graph, node, 1).shape,
                &output = result_type(graph, node).shape;
    int64_t spatial = input.rank() - 2;
    Ints strides = input.strides();
    for (int64_t i = 0; i < spatial; ++i) {
      auto at = static_cast<size_t>(i);
      axes_.push_back({output[i + 1], input[i + 1], strides[at + 1] * type.bytes, kernel[i], a.ints("strides")[at], a.ints("low")[at],
                       a.ints("lhs_dilation")[at], a.ints("rhs_dilation")[at]});
      taps_ *= kernel[i];
      positions_ *= output[i + 1];
    }
    groups_ = a.integer("groups");
    batch_ = input[0];
    batch_stride_ = strides[0] * type.bytes;
    channels_ = input[spatial + 1];
    features_ = kernel[spatial + 1];
    nothing_ = output.elements() == 0;
    group_channels_ = channels_ / groups_;
    group_features_ = features_ / groups_;
  }

  // Depthwise kernels sum whole rows of features; the others gather a few patches and multiply them with the kernel as a matrix.
  bool depthwise() const { return group_channels_ == 1 && groups_ > 1; }
  int64_t workspace() const {
    if (nothing_) return 0;
    int64_t elements = depthwise() ? 2 * features_ + channels_ : row_block * taps_ * group_channels_;
    return counter_bytes(2 * axes_.size()) + elements * static_cast<int64_t>(sizeof(S));
  }

  void operator()(const Pointers& p) const {
    if (nothing_) return;
    const std::byte *input = p.operands[0], *kernel = p.operands[1];
    std::byte* out = p.results[0];
    auto* output = reinterpret_cast<int64_t*>(p.workspace);
    const Walk at{output, output + axes_.size(), reinterpret_cast<S*>(p.workspace + counter_bytes(2 * axes_.size()))};
    for (int64_t n = 0; n < batch_; ++n, input += batch_stride_, out += positions_ * features_ * type_.bytes) {
      if (depthwise()) {
        depthwise_image(input, kernel, out, at);
      } else {
        for (int64_t g = 0; g < groups_; ++g)
          grouped_image(input + g * group_channels_ * type_.bytes, kernel + g * group_features_ * type_.bytes,
                        out + g * group_features_ * type_.bytes, at);
      }
    }
  }

 private:
  // Where a run is, and its memory.
  struct Walk {
    int64_t *output, *tap;  // by axis
    S* scratch;
  };

  // The input element under the current tap of the current output position (channel 0), or nullptr.
  const std::byte* under(const std::byte* image, const Walk& at) const {
    for (size_t a = 0; a < axes_.size(); ++a) {
      int64_t place = axes_[a].input(at.output[a], at.tap[a]);
      if (place < 0) return nullptr;
      image += place * axes_[a].input_stride;
    }
    return image;
  }

  void grouped_image(const std::byte* image, const std::byte* kernel, std::byte* out, const Walk& at) const {
    S* patches = at.scratch;
    const int64_t depth = taps_ * group_channels_;
    std::fill_n(at.output, axes_.size(), 0);
    for (int64_t start = 0; start < positions_; start += row_block) {
      int64_t count = std::min(row_block, positions_ - start);
      S* to = patches;
      for (int64_t r = 0; r < count; ++r) {
        std::fill_n(at.tap, axes_.size(), 0);
        do {
          if (const std::byte* from = under(image, at)) {
            type_.read(from, to, group_channels_);
          } else {
            std::fill_n(to, group_channels_, S{});
          }
          to += group_channels_;
        } while (advance(at.tap, axes_, &Axis::taps));
        advance(at.output, axes_, &Axis::outputs);
      }
      multiply_rows(type_, patches, count, depth, kernel, features_, group_features_, out + start * features_ * type_.bytes, features_);
    }
  }

  void depthwise_image(const std::byte* image, const std::byte* kernel, std::byte* out, const Walk& at) const {
    S* sums = at.scratch;
    S *weights = sums + features_, *values = weights + features_;
    std::fill_n(at.output, axes_.size(), 0);
    for (int64_t position = 0; position < positions_; ++position) {
      std::fill_n(sums, features_, S{});
      std::fill_n(at.tap, axes_.size(), 0);
      const std::byte* tap = kernel;
      do {
        if (const std::byte* from = under(image, at)) {
          type_.read(from, values, channels_);
          type_.read(tap, weights, features_);
          if (group_features_ == 1) {
            for (int64_t c = 0; c < channels_; ++c) sums[c] += values[c] * weights[c];
          } else {
            for (int64_t c = 0; c < channels_; ++c)
              for (int64_t f = c * group_features_; f < (c + 1) * group_features_; ++f) sums[f] += values[c] * weights[f];
          }
        }
        tap += features_ * type_.bytes;
      } while (advance(at.tap, axes_, &Axis::taps));
      type_.write(sums, out, features_);
      out += features_ * type_.bytes;
      advance(at.output, axes_, &Axis::outputs);
    }
  }

  SumRows<S> type_;
  std::vector<Axis> axes_;
  int64_t taps_ = 1, positions_ = 1, groups_ = 1, batch_ = 0, batch_stride_ = 0, channels_ = 0, features_ = 0;
  int64_t group_channels_ = 0, group_features_ = 0;
  bool nothing_ = false;
};

Kernel convolution(const Graph& graph, const Node& node) {
  return dispatch_sums(result_type(graph, node).dtype, [&](auto rows) -> Kernel {
    Convolution convolution(graph, node, rows);
    int64_t workspace = convolution.workspace();
    return {std::move(convolution), workspace};
  });
}

}  // namespace

std::span<const KernelRow> convolution_kernels() {
  static constexpr KernelRow rows[] = {{Op::convolution, convolution}};
  return rows;
}

}  // namespace tutti::reference
