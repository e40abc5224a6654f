#include <algorithm>

#include "tutti/device/cpu/candidates/contraction.h"
#include "tutti/device/cpu/candidates/image_convolution.h"
#include "tutti/device/cpu/gemm/aligned.h"
#include "tutti/device/cpu/gemm/depthwise.h"
#include "tutti/device/cpu/loops/pool.h"
#include "tutti/device/cpu/team.h"

namespace tutti::cpu {

namespace {

// A convolution, of as many pixels as windows read, and the pooling: some lines of windows at a time.
class PooledConvolution {
 public:
  // rows: of the convolution, in a line of windows.
  PooledConvolution(Convolution convolution, const Pool& pool, int64_t rows)
      : convolution_(std::move(convolution)), pool_(pool), rows_(rows) {
    const ConvolutionShape& shape = convolution_.shape();
    width_ = shape.output()[2];
    row_size_ = width_ * shape.filters;
    lines_ = std::max<int64_t>(1, kBetween / (rows_ * row_size_));
    between_ = aligned_size(lines_ * rows_ * row_size_);
  }

  int64_t workspace(int threads) const { return size_for<float>(threads, between_ + convolution_.workspace(1)); }  // floats

  void run(const float* x, const Epilogue& epilogue, float* y, float* workspace, int threads) const {
    const int64_t pieces = pieces_of(pool_.lines(), threads, (Convolution::kPixelsOfPiece + rows_ * width_ - 1) / (rows_ * width_));
    share(pool_.lines(), threads, pieces, [&](int64_t first, int64_t last, int slot) {
      float* const between = own(slot, workspace, this->workspace(1));
      for (int64_t line = first; line < last; line += lines_) {
        const int64_t end = std::min(last, line + lines_), row = line * rows_;
        convolution_.run_rows(x, epilogue, between, between + between_, row, end * rows_);
        pool_.run(between - row * row_size_, y + line * pool_.line_size(), line, end);
      }
    });
  }

 private:
  Convolution convolution_;
  Pool pool_;
  static constexpr int64_t kBetween = int64_t{8} * 1024;  // floats between the two, in the first-level cache
  int64_t rows_, width_, row_size_;                       // pixels; floats
  int64_t lines_, between_;                               // at a time, and the floats of that
};

// Windows side by side on the rows, all of them inside of the image: how many rows and columns they read. Nothing for others.
std::optional<std::pair<int64_t, int64_t>> read_by(const Selection& selection, const Node& pool) {
  const auto& a = pool.attributes;
  const Shape& windows = selection.type(pool.results[0]).shape;
  const Ints &size = a.ints("window"), &strides = a.ints("strides"), none(4, 0), ones(4, 1);
  if (a.ints("low") != none || a.ints("base_dilation") != ones || a.ints("window_dilation") != ones) return {};
  if (size[0] != 1 || strides[0] != 1 || size[1] != strides[1] || size[2] == 1) return {};
  const Shape& x = selection.type(pool.operands[0]).shape;
  const int64_t rows = windows[1] * size[1], columns = (windows[2] - 1) * strides[2] + size[2];
  if (rows > x[1] || columns > x[2]) return {};
  return std::pair(rows, columns);
}

}  // namespace

std::optional<Step> pooled_convolution(const Selection& selection, int32_t index, std::string&) {
  auto convolution = image_convolution_at(selection, index);
  if (!convolution || DepthwiseConvolution::handles(convolution->shape)) return {};
  const EpilogueMatch& match = convolution->match;
  ConvolutionShape& shape = convolution->shape;

  const int32_t user = selection.single_user(match.result);
  if (match.residual || user < 0) return {};
  const Node& pool = selection.node(user);
  if (pool.op != Op::reduce_window || !can_pool(selection.graph(), pool)) return {};
  const auto read = read_by(selection, pool);
  if (!read) return {};
  const auto [rows, columns] = *read;
  const Extents before = shape.output();
  shape.high[1] -= (before[1] - rows) * shape.strides[1];
  shape.high[2] -= (before[2] - columns) * shape.strides[2];
  const int64_t rows_of_line = pool.attributes.ints("window")[1], lines = shape.batch * rows / rows_of_line;
  const bool by_tiles = Winograd::handles(shape);
  if (by_tiles && rows_of_line % 2 != 0) return {};

  const Type& result = selection.type(pool.results[0]);
  const int64_t flops = by_tiles ? convolution->flops() / 9 * 4 : convolution->flops();
  const int threads =
      selection.threads({.flops = flops, .bytes = convolution->input_bytes() + result.bytes() + convolution->weights.type().bytes()});
  // Lines are few where images are small, and then some thread has one more than others. It may, a little, for what is not written and read
  // again.
  constexpr double most_uneven = 1.05;
  const int64_t even = (lines + threads - 1) / threads * threads;
  const double uneven = static_cast<double>(even) / static_cast<double>(lines);
  if (uneven * static_cast<double>(rows * columns) > most_uneven * static_cast<double>(before[1] * before[2])) return {};

  Step step = step_with_epilogue("convolution", index, {selection.node(index).operands[0]}, match);
  step.name += "+pool";
  step.nodes.push_back(user);
  step.results = {pool.results[0]};
  step.threads = threads;
  const Shape read_shape{shape.batch, rows, columns, shape.filters};
  const PooledConvolution run(convolution->product(selection), Pool(read_shape, result.shape, pool.attributes), rows_of_line);
  step.kernel.workspace = run.workspace(threads) * static_cast<int64_t>(sizeof(float));
  step.kernel.run = [run, weights = convolution->weights, epilogue = BoundEpilogue(match, shape.filters), threads](const Pointers& p) {
    run.run(floats(p.operands[0]), epilogue(p), floats(p.results[0]), floats(p.workspace), threads);
  };
  return step;
}

}  // namespace tutti::cpu
