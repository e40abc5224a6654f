#include "tutti/device/cpu/gemm/separable.h"

#include "tutti/device/cpu/candidates/contraction.h"
#include "tutti/device/cpu/candidates/image_convolution.h"

namespace tutti::cpu {

namespace {

constexpr int64_t worth_bands = int64_t{512} << 10;    // bytes between two convolutions: what a cache of a thread's own does not hold well
constexpr int64_t worth_channels = int64_t{64} << 10;  // likewise, where threads divide channels

bool is_depthwise(const ImageConvolution& part) {
  return part.shape.channels > 1 && DepthwiseConvolution::handles(part.shape) && part.shape.output()[2] > 1;
}

// What alone reads the result of this part, which adds nothing from elsewhere.
std::optional<ImageConvolution> part_after(const Selection& selection, const ImageConvolution& part) {
  if (part.match.residual) return {};
  auto next = image_convolution_at(selection, selection.single_user(part.match.result));
  if (next && selection.node(next->node).operands[0] != part.match.result) return {};
  return next;
}

}  // namespace

std::optional<Step> separable_convolution(const Selection& selection, int32_t index, std::string&) {
  auto first = image_convolution_at(selection, index);
  if (!first) return {};
  std::optional<ImageConvolution> expand, depthwise, project;
  if (is_depthwise(*first)) {
    depthwise = std::move(first);
  } else if (first->shape.groups == 1 && !Winograd::handles(first->shape)) {
    depthwise = part_after(selection, *first);
    expand = std::move(first);
  }
  if (!depthwise || !is_depthwise(*depthwise)) return {};
  project = part_after(selection, *depthwise);
  if (project && !project->shape.is_product()) project = {};

  Work work{.flops = depthwise->flops(),
            .bytes = (expand ? *expand : *depthwise).input_bytes() + (project ? *project : *depthwise).output_bytes()};
  if (expand) work.flops += expand->flops();
  if (project) work.flops += project->flops();
  const int threads = selection.threads(work);
  const int64_t between = (expand ? expand->output_bytes() : 0) + (project ? project->input_bytes() : 0);
  const int64_t rows = depthwise->shape.batch * depthwise->shape.output()[1];
  const int64_t least = SeparableConvolution::rows_of_piece(depthwise->shape, expand.has_value());
  const bool by_rows = between >= worth_bands && rows >= threads * least;
  if (!by_rows && (threads < 2 || !expand || !project || between < worth_channels)) return {};

  const ImageConvolution& last = project ? *project : *depthwise;
  Step step{"separable convolution" + last.match.name, {}, {selection.node(index).operands[0]}, {last.match.result}};
  step.threads = threads;
  for (const auto* part : {&expand, &depthwise, &project}) {
    if (!*part) continue;
    step.nodes.push_back((*part)->node);
    step.nodes.insert(step.nodes.end(), (*part)->match.nodes.begin(), (*part)->match.nodes.end());
  }
  if (last.match.residual) step.operands.push_back(*last.match.residual);

  SeparableConvolution::Parts parts{{}, DepthwiseConvolution(depthwise->shape, depthwise->weights.as<float>().data()), {}};
  if (expand) parts.expand = expand->product(selection);
  if (project) parts.project = project->product(selection);
  SeparableConvolution run(depthwise->shape, std::move(parts));
  if (!by_rows && !run.is_by_channels(threads)) return {};
  step.kernel.workspace = run.workspace(threads) * static_cast<int64_t>(sizeof(float));
  auto bound = [](const std::optional<ImageConvolution>& part) {
    return part ? BoundEpilogue(part->match, part->shape.filters) : BoundEpilogue({}, 0);
  };
  step.kernel.run = [run, before = bound(expand), middle = bound(depthwise), after = bound(project), threads](const Pointers& p) {
    run.run(floats(p.operands[0]), {before(p), middle(p), after(p)}, floats(p.results[0]), floats(p.workspace), threads);
  };
  return step;
}

}  // namespace tutti::cpu
