#include <algorithm>

#include "tutti/transform/passes.h"
#include "tutti/transform/rebuild.h"

namespace tutti {

namespace {

// Along an axis, results that are `dilation` apart, from `phase` on, meet every so many-th place of the kernel: those from `first` on,
// `taps` of them. The first meets the input `low` places before its beginning.
struct ResultPhase {
  int64_t first, taps, low;
};

std::vector<ResultPhase> phases(int64_t dilation, int64_t low, int64_t kernel) {
  std::vector<ResultPhase> out;
  for (int64_t phase = 0; phase < dilation; ++phase) {
    const int64_t first = ((low - phase) % dilation + dilation) % dilation;
    out.push_back({first, first < kernel ? (kernel - first + dilation - 1) / dilation : 0, (low - phase - first) / dilation});
  }
  return out;
}

constexpr int64_t most_phases = 64;  // each is a convolution; more come from nobody's model

// A convolution over an input with zeros between its pixels.
class Dilated {
 public:
  Dilated(const Node& node, Value input, Value kernel, const Shape& result)
      : input_(input), kernel_(kernel), result_(result), spatial_(static_cast<size_t>(input.rank() - 2)) {
    const Attributes& a = node.attributes;
    dilation_ = a.ints("lhs_dilation");
    for (size_t axis = 0; axis < spatial_; ++axis) {
      phases_.push_back(phases(dilation_[axis], a.ints("low")[axis], kernel.extent(static_cast<int64_t>(axis))));
      positions_.push_back((result[static_cast<int64_t>(axis) + 1] + dilation_[axis] - 1) / dilation_[axis]);
    }
  }

  static bool handles(const Graph& graph, const Node& node) {
    const Attributes& a = node.attributes;
    if (node.op != Op::convolution || all_are(a.ints("lhs_dilation"), 1)) return false;
    if (!all_are(a.ints("rhs_dilation"), 1) || !all_are(a.ints("strides"), 1)) return false;
    int64_t phases = 1;
    for (int64_t dilation : a.ints("lhs_dilation"))
      if (phases <= most_phases) phases *= std::min(dilation, most_phases + 1);
    return phases <= most_phases && a.integer("groups") == 1 && graph.type(node.results[0]).shape.elements() > 0;
  }

  Value split() {
    // Where all phases meet the same pixels they are filters of one convolution, otherwise each is one of its own.
    const bool alike = std::all_of(phases_.begin(), phases_.end(), [](const std::vector<ResultPhase>& axis) {
      return std::all_of(axis.begin(), axis.end(), [&](const ResultPhase& p) { return p.taps == axis[0].taps && p.low == axis[0].low; });
    });
    std::vector<Value> parts;
    each_phase(0, alike, parts);
    const Value all = concatenate(parts, input_.rank() - 1);  // of kernels or results, both along their last axis
    return side_by_side(alike ? convolved(all, Ints(spatial_, 0)) : all);
  }

 private:
  // What each phase is made of, the last axis first: its part of the kernel, or its results.
  void each_phase(size_t axis, bool kernels, std::vector<Value>& out) {
    if (axis == spatial_) return out.push_back(kernels ? part_of_kernel() : convolved(part_of_kernel(), chosen_));
    for (int64_t phase = 0; phase < dilation_[axis]; ++phase) {
      chosen_.resize(axis);
      chosen_.push_back(phase);
      each_phase(axis + 1, kernels, out);
    }
  }

  const ResultPhase& phase(const Ints& chosen, size_t axis) const { return phases_[axis][static_cast<size_t>(chosen[axis])]; }

  // None where a phase has no taps: its results are zeros.
  Value part_of_kernel() const {
    Ints start, limit = kernel_.shape().extents(), strides(limit.size(), 1);
    for (size_t axis = 0; axis < spatial_; ++axis) {
      const ResultPhase& p = phase(chosen_, axis);
      if (p.taps == 0) return {};
      start.push_back(p.first);
      strides[axis] = dilation_[axis];
    }
    start.resize(limit.size(), 0);
    return slice(kernel_, start, limit, strides);
  }

  Value convolved(Value kernel, const Ints& chosen) const {
    Ints extents{input_.extent(0)};
    extents.insert(extents.end(), positions_.begin(), positions_.end());
    if (!kernel) {
      extents.push_back(kernel_.extent(kernel_.rank() - 1));
      return full(input_.graph(), {input_.dtype(), extents}, 0);
    }
    ConvolutionDims dims{Ints(spatial_, 1), {}, {}};
    for (size_t axis = 0; axis < spatial_; ++axis) {
      const ResultPhase& p = phase(chosen, axis);
      dims.low.push_back(p.low);
      dims.high.push_back(positions_[axis] + p.taps - 1 - input_.extent(static_cast<int64_t>(axis) + 1) - p.low);
    }
    return convolution(input_, kernel, dims);
  }

  // [n, positions..., phases... * filters] -> [n, (positions, phases)..., filters], without what is over.
  Value side_by_side(Value all) const {
    const auto rank = static_cast<int64_t>(spatial_);
    Ints apart{input_.extent(0)}, order{0}, joined{input_.extent(0)};
    apart.insert(apart.end(), positions_.begin(), positions_.end());
    apart.insert(apart.end(), dilation_.begin(), dilation_.end());
    apart.push_back(kernel_.extent(kernel_.rank() - 1));
    for (int64_t axis = 0; axis < rank; ++axis) {
      order.push_back(1 + axis);
      order.push_back(1 + rank + axis);
      joined.push_back(positions_[static_cast<size_t>(axis)] * dilation_[static_cast<size_t>(axis)]);
    }
    order.push_back(1 + 2 * rank);
    joined.push_back(apart.back());
    return slice(reshape(transpose(reshape(all, apart), order), joined), Ints(joined.size(), 0), result_.extents());
  }

  Value input_, kernel_;
  Shape result_;
  size_t spatial_;
  Ints dilation_, positions_;  // of each phase's results
  std::vector<std::vector<ResultPhase>> phases_;
  Ints chosen_;
};

}  // namespace

bool has_dilated(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [&](const Node& node) { return Dilated::handles(graph, node) || (node.body && has_dilated(*node.body)); });
}

Graph split_dilated(const Graph& graph) {
  Rebuild rebuild(graph);
  for (const Node& node : graph.nodes()) {
    if (Dilated::handles(graph, node)) {
      const auto operands = rebuild.operands(node);
      rebuild.map(node.results[0], Dilated(node, operands[0], operands[1], graph.type(node.results[0]).shape).split());
    } else {
      rebuild.copy(node, node.body ? std::make_shared<const Graph>(split_dilated(*node.body)) : nullptr);
    }
  }
  return rebuild.finish();
}

}  // namespace tutti
