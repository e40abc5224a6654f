// Random graphs for property tests: valid by construction, with views, branches that die early, states and a scan.
#pragma once

#include <random>

#include "tutti/graph/build.h"

namespace tutti {

class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : random_(seed) {}

  Graph make(size_t nodes) {
    Graph graph;
    Value state = graph.parameter(Graph::Role::state, "s", {DType::f32, {24}}, ramp({24}));
    Value other = graph.parameter(Graph::Role::state, "t", {DType::f32, {24}}, ramp({24}));
    values_ = {graph.input("x", {DType::f32, {4, 6}}),
               graph.input("y", {DType::f32, {6}}),
               state,
               other,
               graph.constant(ramp({3})),
               graph.parameter(Graph::Role::weight, "w", {DType::f32, {6, 4}}, ramp({6, 4}))};
    while (graph.nodes().size() < nodes) values_.push_back(next(pick()));
    for (int i = 0; i < 3; ++i) graph.output("out" + std::to_string(i), pick());
    Value sum = pick();
    graph.update(state, state + broadcast_to(reduce(reshape(sum, {sum.shape().elements()}), "max", {0}), {24}));
    graph.update(other, state);
    return graph;
  }

  static Tensor ramp(Shape shape) {
    Tensor out(DType::f32, std::move(shape));
    auto to = out.as<float>();
    for (size_t i = 0; i < to.size(); ++i) to[i] = static_cast<float>(i % 7) / 4 - 1;
    return out;
  }

 private:
  int draw(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }
  Value pick() { return values_[static_cast<size_t>(draw(static_cast<int>(values_.size())))]; }

  Value next(Value x) {
    const int64_t count = x.shape().elements();
    Value flat = reshape(x, {count});
    switch (draw(10)) {
      case 0: return tanh(x);
      case 1: return x + tanh(x);
      case 2: return flat;
      case 3: return count > 1 ? slice(flat, {count / 2}, {count}) : exponential(x);
      case 4: return count < 200 ? concatenate({flat, reshape(x, {count})}, 0) : logistic(x);
      case 5: return reverse(flat, {0});
      case 6: return count < 20 ? dot_general(flat, flat, {{}, {}, {}, {}}) : reduce(reshape(x, {1, count}), "max", {0});
      case 7: return x.rank() == 2 ? transpose(x, {1, 0}) : reshape(x, {count, 1});
      case 8: return sort({flat}, 0)[0];
      default: break;
    }
    auto scanned = scan({flat}, {}, {flat}, 3, false, [](Graph&, auto carries, auto, auto whole) {
      return ScanStep{{tanh(carries[0]) + whole[0]}, {carries[0]}};
    });
    return draw(2) == 0 ? scanned.carries[0] : reduce(scanned.stacked[0], "add", {0});
  }

  std::mt19937 random_;
  std::vector<Value> values_;
};

}  // namespace tutti
