// Random graphs of what passes look for: products with constant kernels, scales and shifts, padding, pools, transposes, reshapes,
// broadcasts, concatenations, numbers that do nothing, loops over slices. Values are [2, 4, 4, 4] or smaller, and kept small.
#pragma once

#include <random>

#include "tutti/graph/build.h"

namespace tutti {

class RandomNet {
 public:
  explicit RandomNet(uint32_t seed) : random_(seed) {}

  Graph make(int steps) {
    Graph graph;
    values_ = {graph.input("x", {DType::f32, {2, 4, 4, 4}}), graph.input("y", {DType::f32, {2, 4, 4, 4}})};
    for (int i = 0; i < steps; ++i) values_.push_back(next(pick()));
    for (int i = 0; i < 2; ++i) graph.output("out" + std::to_string(i), pick());
    graph.output("last", values_.back());
    return graph;
  }

 private:
  int draw(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }
  Value pick() { return values_[values_.size() - 1 - static_cast<size_t>(draw(std::min(6, static_cast<int>(values_.size()))))]; }

  Value weight(Graph& graph, Shape shape) {
    Tensor out(DType::f32, std::move(shape));
    for (float& x : out.as<float>()) x = static_cast<float>(draw(17) - 8) / 16;
    return graph.constant(std::move(out));
  }

  // A number that a pass may know something about.
  double number() {
    constexpr double known[] = {0, -0.0, 1, -1, 2, 0.5, 0.25, 3, 0.1};
    return known[draw(std::size(known))];
  }

  Value next(Value x) {
    Graph& graph = x.graph();
    const int64_t padding = draw(2), groups = draw(2) == 0 ? 1 : 4;
    switch (draw(16)) {
      case 0:
        return convolution(x, weight(graph, {padding * 2 + 1, 1, 4 / groups, 4}), {{1, 1}, {padding, 0}, {padding, 0}, {}, {}, groups}) *
               0.5;
      case 1: {
        Value wide = pad(x, draw(2) == 0 ? 0.0 : number(), {0, 1, 1, 0}, {0, 1, 1, 0});
        return draw(2) == 0 ? convolution(wide, weight(graph, {3, 3, 4, 4}), {{1, 1}, {0, 0}, {0, 0}}) * 0.25
                            : reduce_window(wide, "max", {{1, 3, 3, 1}, {1, 1, 1, 1}, {0, 0, 0, 0}, {0, 0, 0, 0}});
      }
      case 2: return dot_general(x, weight(graph, {4, 4}), {{}, {}, {3}, {draw(2)}}) * 0.5;
      case 3: return x * weight(graph, {4});
      case 4: return x + weight(graph, draw(2) == 0 ? Shape{4} : Shape{4, 1, 1});
      case 5: return (x - weight(graph, {4})) / 2.0;
      case 6: return binary(draw(2) == 0 ? Op::add : Op::subtract, x, full_like(x, number()));
      case 7: return x * number();
      case 8: return maximum(x, 0);
      case 9: return transpose(x, draw(2) == 0 ? Ints{0, 2, 1, 3} : Ints{0, 3, 1, 2});
      case 10: return reshape(reshape(x, draw(2) == 0 ? Shape{32, 4} : Shape{2, 1, 16, 4}), {2, 4, 4, 4});
      case 11: {
        Value top = reduce(x, draw(2) == 0 ? "max" : "add", {3}, true);
        return x * 0.5 + broadcast_to(top * 0.125, x.shape());
      }
      case 12: {
        int64_t from = draw(5);
        return slice(concatenate({x, pick()}, 3), {0, 0, 0, from}, {2, 4, 4, from + 4});
      }
      case 13: return select(compare(x, 0, Direction::GT), x, pick() * number());
      case 14: return power(abs(x), draw(2) == 0 ? 0.5 : 2.0) * 0.5;
      default: break;
    }
    Value kernel = weight(graph, {4, 4}), flat = reshape(x, {2, 16, 4});
    auto out =
        scan({slice(flat, {0, 0, 0}, {1, 16, 4})}, {flat}, {kernel}, 2, draw(2) == 0, [&](Graph&, auto carries, auto slices, auto whole) {
          DotDims last{{}, {}, {1}, {0}};
          Value h = reshape(carries[0], {16, 4}),
                sum = dot_general(slices[0] * 0.5, whole[0] * 0.5, last) + dot_general(h, tanh(whole[0]), last) * 0.25;
          return ScanStep{{reshape(tanh(sum), {1, 16, 4})}, {sum}};
        });
    return reshape(out.stacked[0], {2, 4, 4, 4});
  }

  std::mt19937 random_;
  std::vector<Value> values_;
};

}  // namespace tutti
