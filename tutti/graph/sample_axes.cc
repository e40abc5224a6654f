#include "tutti/graph/sample_axes.h"

#include <algorithm>
#include <optional>

#include "tutti/graph/matrix.h"

namespace tutti {

namespace {

// Where the samples of a value stand: sample i has the places [i * inner, (i + 1) * inner) of the axis. No axis: the value is the same
// whatever the samples are.
struct Place {
  int64_t axis = -1, inner = 1;
  bool none() const { return axis < 0; }
  bool operator==(const Place&) const = default;
};
using Found = std::optional<Place>;  // nothing: samples mix, or it is not known that they do not

int64_t position(const Ints& list, int64_t value) { return std::find(list.begin(), list.end(), value) - list.begin(); }

bool reinterprets(const Graph& graph, const Node& node) {
  return node.op == Op::bitcast_convert && graph.type(node.operands[0]).dtype != graph.type(node.results[0]).dtype;
}

class Tracker {
 public:
  Tracker(const Graph& graph, int64_t batch) : graph_(graph), batch_(batch), places_(graph.value_count()) {}

  // `inputs`: places of the input parameters in order. Nothing if a node mixes samples on the way to an output.
  std::optional<std::vector<Place>> run(const std::vector<Place>& inputs) {
    size_t input = 0;
    for (const Node& node : graph_.nodes()) {
      if (node.op == Op::parameter) {
        const bool given = role(node) == Graph::Role::input;
        if (role(node) == Graph::Role::state) return {};
        places_[at(node.results[0])] = given ? inputs[input++] : Place{};
      } else if (node.op == Op::scan) {
        if (!scan(node)) return {};
      } else {
        Found found = place(node);
        if (!found) return {};
        for (ValueId id : node.results) places_[at(id)] = *found;
      }
    }
    std::vector<Place> outputs;
    for (const auto& output : graph_.outputs()) outputs.push_back(places_[at(output.value)]);
    return outputs;
  }

 private:
  const Place& of(const Node& node, size_t operand) const { return places_[at(node.operands[operand])]; }
  const Shape& shape(ValueId id) const { return graph_.type(id).shape; }

  // The place that all operands with samples share.
  Found common(const Node& node) const {
    Place shared;
    for (ValueId id : node.operands) {
      const Place& place = places_[at(id)];
      if (place.none() || place == shared) continue;
      if (!shared.none()) return {};
      shared = place;
    }
    return shared;
  }

  Found place(const Node& node) const {
    const auto& attributes = node.attributes;
    bool independent = true;
    for (size_t i = 0; i < node.operands.size(); ++i) independent = independent && of(node, i).none();
    if (independent) return Place{};
    const Place first = of(node, 0);
    switch (node.op) {
      case Op::broadcast_in_dim: {
        const Place moved{attributes.ints("dimensions")[static_cast<size_t>(first.axis)], first.inner};
        return shape(node.results[0])[moved.axis] == batch_ * first.inner ? Found(moved) : Found();
      }
      case Op::reshape: return reshaped(node, first);
      case Op::transpose: return Place{position(attributes.ints("permutation"), first.axis), first.inner};
      case Op::slice: {
        const auto axis = static_cast<size_t>(first.axis);
        const bool whole = attributes.ints("start")[axis] == 0 && attributes.ints("strides")[axis] == 1 &&
                           attributes.ints("limit")[axis] == batch_ * first.inner;
        return whole ? Found(first) : Found();
      }
      case Op::pad: {
        const auto axis = static_cast<size_t>(first.axis);
        const bool untouched =
            attributes.ints("low")[axis] == 0 && attributes.ints("high")[axis] == 0 && attributes.ints("interior")[axis] == 0;
        return untouched && of(node, 1).none() ? Found(first) : Found();
      }
      case Op::concatenate: {
        Found shared = common(node);
        return shared && shared->axis != attributes.integer("dimension") ? shared : Found();
      }
      case Op::reverse: return includes(attributes.ints("dimensions"), first.axis) ? Found() : Found(first);
      case Op::sort: {
        Found shared = common(node);
        return shared && shared->axis != attributes.integer("dimension") ? shared : Found();
      }
      case Op::reduce: {
        const Ints& gone = attributes.ints("dimensions");
        if (includes(gone, first.axis)) return {};
        const auto before = std::count_if(gone.begin(), gone.end(), [&](int64_t axis) { return axis < first.axis; });
        return Place{first.axis - before, first.inner};
      }
      case Op::reduce_window: {
        const auto axis = static_cast<size_t>(first.axis);
        const bool single = attributes.ints("window")[axis] == 1 && attributes.ints("strides")[axis] == 1 &&
                            attributes.ints("base_dilation")[axis] == 1 && attributes.ints("low")[axis] == 0 &&
                            attributes.ints("high")[axis] == 0;
        return single ? Found(first) : Found();
      }
      case Op::dot_general: return product(node);
      case Op::convolution: return first.axis == 0 && of(node, 1).none() ? Found(first) : Found();
      case Op::gather: return gathered(node);
      default: return is_elementwise(node.op) && !reinterprets(graph_, node) ? common(node) : Found();
    }
  }

  // The axis with as many elements before it that still counts whole samples.
  Found reshaped(const Node& node, const Place& from) const {
    const Shape &before = shape(node.operands[0]), &after = shape(node.results[0]);
    int64_t outer = 1, product = 1;
    for (int64_t axis = 0; axis < from.axis; ++axis) outer *= before[axis];
    for (int64_t axis = 0; axis < after.rank(); product *= after[axis++])
      if (product == outer && after[axis] >= batch_ && after[axis] % batch_ == 0) return Place{axis, after[axis] / batch_};
    return {};
  }

  Found product(const Node& node) const {
    const auto& attributes = node.attributes;
    const Ints &left_batch = attributes.ints("lhs_batch"), &right_batch = attributes.ints("rhs_batch");
    const Ints &left_gone = attributes.ints("lhs_contracting"), &right_gone = attributes.ints("rhs_contracting");
    const Place left = of(node, 0), right = of(node, 1);
    const auto count = static_cast<int64_t>(left_batch.size());
    const Ints left_free = free_axes(shape(node.operands[0]).rank(), left_batch, left_gone);
    if (includes(left_gone, left.axis) || includes(right_gone, right.axis)) return {};
    if (!left.none() && !right.none()) {
      const int64_t axis = position(left_batch, left.axis);
      if (axis == count || position(right_batch, right.axis) != axis || left.inner != right.inner) return {};
      return Place{axis, left.inner};
    }
    if (!left.none()) {
      const int64_t axis = position(left_batch, left.axis);
      return Place{axis < count ? axis : count + position(left_free, left.axis), left.inner};
    }
    const int64_t axis = position(right_batch, right.axis);
    if (axis < count) return Place{axis, right.inner};
    const Ints right_free = free_axes(shape(node.operands[1]).rank(), right_batch, right_gone);
    return Place{count + static_cast<int64_t>(left_free.size()) + position(right_free, right.axis), right.inner};
  }

  // Rows of a table that is the same for all samples, by indices of each sample; batching axes on both sides; or the same places of every
  // sample.
  Found gathered(const Node& node) const {
    const auto& attributes = node.attributes;
    const Place table = of(node, 0), indices = of(node, 1);
    const int64_t vector = attributes.integer("index_vector_dim");
    if (indices.none()) {
      const auto gone = [&](int64_t axis) {
        return includes(attributes.ints("collapsed_slice_dims"), axis) || includes(attributes.ints("operand_batching_dims"), axis);
      };
      if (gone(table.axis) || attributes.ints("slice_sizes")[static_cast<size_t>(table.axis)] != batch_ * table.inner) return {};
      size_t before = 0;
      for (int64_t axis = 0; axis < table.axis; ++axis) before += !gone(axis);
      return Place{attributes.ints("offset_dims")[before], table.inner};
    }
    if (indices.axis == vector) return {};
    if (!table.none()) {
      const int64_t pair = position(attributes.ints("operand_batching_dims"), table.axis);
      const Ints& batching = attributes.ints("start_indices_batching_dims");
      if (pair == static_cast<int64_t>(batching.size()) || batching[static_cast<size_t>(pair)] != indices.axis ||
          table.inner != indices.inner)
        return {};
    }
    // Axes of the indices but for the vector are those of the result that are no offsets, in order.
    int64_t wanted = indices.axis - (vector < indices.axis ? 1 : 0);
    for (int64_t axis = 0; axis < shape(node.results[0]).rank(); ++axis)
      if (!includes(attributes.ints("offset_dims"), axis) && wanted-- == 0) return Place{axis, indices.inner};
    return {};
  }

  // Carries may begin without samples and get them in the first step.
  bool scan(const Node& node) {
    const auto carries = static_cast<size_t>(node.attributes.integer("carries")),
               slices = static_cast<size_t>(node.attributes.integer("slices"));
    std::vector<Place> inputs;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      Place place = of(node, i);
      if (i >= carries && i < carries + slices && !place.none()) {
        if (place.axis == 0) return false;
        --place.axis;
      }
      inputs.push_back(place);
    }
    std::optional<std::vector<Place>> outputs;
    for (bool changed = true; changed;) {
      outputs = Tracker(*node.body, batch_).run(inputs);
      if (!outputs) return false;
      changed = false;
      for (size_t i = 0; i < carries; ++i) {
        if (inputs[i] == (*outputs)[i]) continue;
        if (!inputs[i].none()) return false;
        inputs[i] = (*outputs)[i];
        changed = true;
      }
    }
    for (size_t i = 0; i < node.results.size(); ++i) {
      Place place = (*outputs)[i];
      if (i >= carries && !place.none()) ++place.axis;
      places_[at(node.results[i])] = place;
    }
    return true;
  }

  const Graph& graph_;
  int64_t batch_;
  std::vector<Place> places_;  // per value
};

}  // namespace

bool samples_are_independent(const Graph& graph, int64_t batch) {
  if (batch < 2) return false;
  std::vector<Place> inputs;
  for (const Node* input : graph.parameters(Graph::Role::input)) {
    const Shape& shape = graph.type(input->results[0]).shape;
    if (shape.rank() == 0 || shape[0] != batch) return false;
    inputs.push_back({0, 1});
  }
  auto outputs = Tracker(graph, batch).run(inputs);
  return outputs && std::all_of(outputs->begin(), outputs->end(), [](const Place& place) { return place == Place{0, 1}; });
}

}  // namespace tutti
