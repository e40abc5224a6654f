#include "tutti/device/cpu/gemm/convolution.h"

#include <algorithm>
#include <cstring>

#include "tutti/device/cpu/candidates/contraction.h"
#include "tutti/device/cpu/candidates/image_convolution.h"
#include "tutti/device/cpu/gemm/depthwise.h"
#include "tutti/device/plan.h"
#include "tutti/device/reference/strided_copy.h"

namespace tutti::cpu {

namespace {

// An input with zeros between its pixels, for transposed convolutions. Written into the workspace before the convolution.
struct Dilated {
  Shape shape;
  reference::StridedCopy copy;
  int64_t bytes() const { return Plan::aligned(shape.elements() * 4); }
};

std::optional<Dilated> dilate(const Shape& x, const Ints& dilation) {
  if (std::all_of(dilation.begin(), dilation.end(), [](int64_t d) { return d == 1; })) return {};
  Ints extents, strides;
  for (int64_t i = 0; i < x.rank(); ++i)
    extents.push_back(i == 0 || i == x.rank() - 1 || x[i] == 0 ? x[i] : (x[i] - 1) * dilation[static_cast<size_t>(i - 1)] + 1);
  Shape shape(extents);
  strides = shape.strides();
  for (size_t i = 0; i < dilation.size(); ++i) strides[i + 1] *= dilation[i];
  return Dilated{shape, reference::StridedCopy(4, x.extents(), x.strides(), strides)};
}

}  // namespace

ConvolutionShape convolution_shape(const Node& node, const Shape& x, const Shape& kernel) {
  const auto& a = node.attributes;
  const auto rank = static_cast<size_t>(x.rank());
  const Ints &extents = x.extents(), &taps = kernel.extents();
  auto middle = [](const Ints& list, size_t from, size_t count) { return std::span(list).subspan(from, count); };
  ConvolutionShape shape;
  shape.batch = x[0];
  shape.channels = x[x.rank() - 1];
  shape.filters = kernel[kernel.rank() - 1];
  shape.groups = a.integer("groups");
  shape.input = spatial(middle(extents, 1, rank - 2), 1);
  shape.kernel = spatial(middle(taps, 0, rank - 2), 1);
  shape.strides = spatial(a.ints("strides"), 1);
  shape.dilation = spatial(a.ints("rhs_dilation"), 1);
  shape.low = spatial(a.ints("low"), 0);
  shape.high = spatial(a.ints("high"), 0);
  return shape;
}

std::string_view refuses_convolution(const Selection& selection, const Node& node) {
  const Shape &x = selection.type(node.operands[0]).shape, &kernel = selection.type(node.operands[1]).shape;
  const Type& result = selection.type(node.results[0]);
  if (result.shape.elements() == 0 || x.elements() == 0 || kernel.elements() == 0) return "nothing to do";
  if (x.rank() < 3 || x.rank() > 5) return "not one to three spatial axes";
  return result.dtype != DType::f32 ? "not of f32" : "";
}

std::optional<ImageConvolution> image_convolution_at(const Selection& selection, int32_t index) {
  if (index < 0 || !selection.is_free(index)) return {};
  const Node& node = selection.node(index);
  if (node.op != Op::convolution || !refuses_convolution(selection, node).empty()) return {};
  const Shape& x = selection.type(node.operands[0]).shape;
  if (x.rank() != 4 || node.attributes.ints("lhs_dilation") != Ints{1, 1}) return {};
  const auto weights = selection.known(node.operands[1]);
  if (!weights) return {};
  const ConvolutionShape shape = convolution_shape(node, x, weights->shape());
  return ImageConvolution{index, shape, *weights, match_epilogue(selection, node.results[0], shape.filters)};
}

std::optional<Step> convolution(const Selection& selection, int32_t index, std::string& reason) {
  const Node& node = selection.node(index);
  if (node.op != Op::convolution) return {};
  reason = refuses_convolution(selection, node);
  if (!reason.empty()) return {};
  const Shape &x = selection.type(node.operands[0]).shape, &result = selection.type(node.results[0]).shape;
  const Shape& kernel = selection.type(node.operands[1]).shape;
  auto weights = selection.known(node.operands[1]);

  EpilogueMatch match = match_epilogue(selection, node.results[0], result[result.rank() - 1]);
  Step step = step_with_epilogue("convolution", index, {node.operands[0]}, match);
  const size_t brought = step.operands.size();  // where the kernel is if it is not known before the run, as in training
  if (!weights) step.operands.push_back(node.operands[1]);

  auto dilated = dilate(x, node.attributes.ints("lhs_dilation"));
  const ConvolutionShape shape = convolution_shape(node, dilated ? dilated->shape : x, kernel);
  int64_t flops = 2 * result.elements() * kernel.elements() / result[result.rank() - 1];
  if (weights && Winograd::handles(shape)) flops = flops / 9 * 4;
  const int threads = selection.threads({.flops = flops, .bytes = 4 * (x.elements() + result.elements() + kernel.elements())});
  step.threads = threads;
  const BoundEpilogue epilogue(match, shape.filters);
  auto input = [dilated](const Pointers& p) {
    if (!dilated) return floats(p.operands[0]);
    std::memset(p.workspace, 0, static_cast<size_t>(dilated->shape.elements() * 4));
    dilated->copy(p.operands[0], p.workspace);
    return floats(static_cast<const std::byte*>(p.workspace));
  };
  const int64_t skip = dilated ? dilated->bytes() : 0;
  constexpr auto bytes_of = [](int64_t count) { return count * static_cast<int64_t>(sizeof(float)); };
  if (DepthwiseConvolution::handles(shape)) {
    step.name = "depthwise " + step.name;
    if (!weights) {
      const DepthwiseConvolution run(shape);
      step.kernel.workspace = skip + bytes_of(run.packed_size());
      step.kernel.run = [run, epilogue, input, skip, threads, brought](const Pointers& p) {
        float* packed = floats(p.workspace + skip);
        run.pack(floats(p.operands[brought]), packed);
        run.run(input(p), epilogue(p), floats(p.results[0]), threads, packed);
      };
      return step;
    }
    step.kernel.workspace = skip;
    step.kernel.run = [run = DepthwiseConvolution(shape, weights->as<float>().data()), epilogue, input, threads](const Pointers& p) {
      run.run(input(p), epilogue(p), floats(p.results[0]), threads);
    };
    return step;
  }
  if (!weights) {
    const Convolution run(shape);
    step.kernel.workspace = skip + bytes_of(run.workspace(threads));
    step.kernel.run = [run, epilogue, input, skip, threads, brought](const Pointers& p) {
      run.run(input(p), floats(p.operands[brought]), epilogue(p), floats(p.results[0]), floats(p.workspace + skip), threads);
    };
    return step;
  }
  Convolution run(shape, weights->as<float>().data(), selection.packer(*weights));
  step.kernel.workspace = skip + bytes_of(run.workspace(threads));
  step.kernel.run = [run, weights = *weights, epilogue, input, skip, threads](const Pointers& p) {  // weights: kept alive
    run.run(input(p), epilogue(p), floats(p.results[0]), floats(p.workspace + skip), threads);
  };
  return step;
}

}  // namespace tutti::cpu
