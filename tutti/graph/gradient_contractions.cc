// Gradient rules of reductions, windows, products and convolutions. All of them are made of ops that devices have kernels for.
#include <algorithm>
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/graph/build.h"
#include "tutti/graph/compose.h"
#include "tutti/graph/gradient.h"
#include "tutti/graph/matrix.h"

namespace tutti::gradient_rules {

namespace {

// A reduction's result, or its cotangent, repeated where it came from.
Value spread(Value reduced, const Shape& shape, const Ints& dimensions) {
  Ints kept;
  for (int64_t axis = 0; axis < shape.rank(); ++axis)
    if (!includes(dimensions, axis)) kept.push_back(axis);
  return broadcast_in_dim(reduced, shape, kept);
}

// The product of all other elements along the reduced axes; a quotient would fail at zeros.
Value product_of_others(Value x, const Ints& dimensions) {
  Ints order;
  int64_t count = 1;
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    if (!includes(dimensions, axis)) order.push_back(axis);
  Ints joined;
  for (int64_t axis : order) joined.push_back(x.extent(axis));
  for (int64_t axis : dimensions) {
    order.push_back(axis);
    count *= x.extent(axis);
  }
  joined.push_back(count);
  const Value moved = transpose(x, order), rows = reshape(moved, joined);  // [kept..., count]
  if (count == 0) return x;
  Ints none(joined.size()), one_low = none, one_high = none;
  one_low.back() = 1;
  one_high.back() = 1;
  // Shifted by one, so that each element meets those before it only, and those after it.
  const Value before = slice_axis(pad(rows, 1, one_low, none), -1, 0, count), after = slice_axis(pad(rows, 1, none, one_high), -1, 1, {});
  const Value others = cumulative(before, "multiply", -1) * cumulative(after, "multiply", -1, true);
  Ints inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return transpose(reshape(others, moved.shape()), inverse);
}

Ints concatenated_axes(Ints a, const Ints& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// `product` has the axes `now` of an operand, in this order; gives it the operand's own order.
Value in_order(Value product, const Ints& now) {
  Ints permutation(now.size());
  for (size_t i = 0; i < now.size(); ++i) permutation[static_cast<size_t>(now[i])] = static_cast<int64_t>(i);
  return transpose(product, permutation);
}

// The axes of `operand` that its contracting axes are paired with, in the order of the partner's own axes.
Ints in_order_of(const Ints& contracting, const Ints& partner) {
  Ints order(partner.size()), out;
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return partner[static_cast<size_t>(a)] < partner[static_cast<size_t>(b)]; });
  for (int64_t i : order) out.push_back(contracting[static_cast<size_t>(i)]);
  return out;
}

Ints counted(int64_t first, size_t count) {
  Ints out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

// [..., groups * n] -> [..., groups, n]
Value grouped_last(Value x, int64_t groups) {
  Ints extents = x.shape().extents();
  extents.back() /= groups;
  extents.insert(extents.end() - 1, groups);
  return reshape(x, extents);
}

Value joined_last(Value x) {
  Ints extents = x.shape().extents();
  const int64_t last = extents.back();
  extents.pop_back();
  extents.back() *= last;
  return reshape(x, extents);
}

int64_t spread_extent(int64_t extent, int64_t dilation) { return extent == 0 ? 0 : (extent - 1) * dilation + 1; }

}  // namespace

Cotangents reduced(const GradientNode& n) {
  const Ints& dimensions = n.node.attributes.ints("dimensions");
  const std::string& kind = n.node.attributes.text("kind");
  const Shape& shape = n.x().shape();
  const Value g = spread(n.g(), shape, dimensions);
  if (kind == "add") return {g};
  if (kind == "multiply") return {g * product_of_others(n.x(), dimensions)};
  // Equal elements share it.
  const Value here = compare(n.x(), spread(n.y(), shape, dimensions), Direction::EQ);
  const Value count = reduce(convert(here, n.g().dtype()), "add", dimensions);
  return {select(here, spread(n.g() / count, shape, dimensions), scalar(n.graph, n.g().dtype(), 0))};
}

Cotangents windowed(const GradientNode& n) {
  const Attributes& a = n.node.attributes;
  const std::string& kind = a.text("kind");
  if (n.g().shape().elements() == 0 || n.x().shape().elements() == 0) return {full(n.graph, n.x().type(), 0)};
  if (kind == "max" || kind == "min") return {n.graph.add(Op::select_and_scatter, {n.x(), n.g()}, a)[0]};
  if (kind != "add") fail<Unsupported>("differentiate", "reduce_window of kind '{}' has no gradient rule", kind);
  // Each element gets the cotangents of the windows it was in: they are spread by the strides and summed with the same window.
  Window w{a.ints("window"), a.ints("base_dilation"), {}, {}, a.ints("strides"), a.ints("window_dilation")};
  for (size_t i = 0; i < w.size.size(); ++i) {
    const auto axis = static_cast<int64_t>(i);
    const int64_t reach = (w.size[i] - 1) * w.window_dilation[i];
    w.low.push_back(reach - a.ints("low")[i]);
    // So many that the last window ends where the operand, spread by its own dilation, does.
    w.high.push_back(spread_extent(n.x().extent(axis), w.strides[i]) + reach - spread_extent(n.g().extent(axis), w.base_dilation[i]) -
                     w.low.back());
  }
  return {reduce_window(n.g(), "add", w)};
}

Cotangents dotted(const GradientNode& n) {
  const Attributes& a = n.node.attributes;
  const Ints &lb = a.ints("lhs_batch"), &rb = a.ints("rhs_batch"), &lc = a.ints("lhs_contracting"), &rc = a.ints("rhs_contracting");
  const Ints lf = free_axes(n.x(0).rank(), lb, lc), rf = free_axes(n.x(1).rank(), rb, rc);
  const Ints batch = counted(0, lb.size());  // g: [batch, lf, rf]
  const auto first = static_cast<int64_t>(lb.size());
  const Ints g_left = counted(first, lf.size()), g_right = counted(first + static_cast<int64_t>(lf.size()), rf.size());
  Cotangents out(2);
  // g . right over the right's kept axes: [batch, lf, contracting in the right's order]
  if (n.wanted[0])
    out[0] =
        in_order(dot_general(n.g(), n.x(1), {batch, rb, g_right, rf}), concatenated_axes(concatenated_axes(lb, lf), in_order_of(lc, rc)));
  // left . g over the left's kept axes: [batch, contracting in the left's order, rf]
  if (n.wanted[1])
    out[1] =
        in_order(dot_general(n.x(0), n.g(), {lb, batch, lf, g_left}), concatenated_axes(concatenated_axes(rb, in_order_of(rc, lc)), rf));
  return out;
}

Cotangents convolved(const GradientNode& n) {
  const Attributes& a = n.node.attributes;
  const Ints &strides = a.ints("strides"), &low = a.ints("low"), &lhs = a.ints("lhs_dilation"), &rhs = a.ints("rhs_dilation");
  const int64_t groups = a.integer("groups"), spatial = n.x().rank() - 2;
  const Value input = n.x(0), kernel = n.x(1);  // [n, spatial..., c], [spatial..., c / groups, o]
  if (n.g().shape().elements() == 0 || input.shape().elements() == 0 || kernel.shape().elements() == 0)
    return {full(n.graph, input.type(), 0), full(n.graph, kernel.type(), 0)};
  Cotangents out(2);
  if (n.wanted[0]) {
    // The cotangent, spread by the strides, met by the kernel turned around: [spatial..., o / groups, c]
    ConvolutionDims d{lhs, {}, {}, strides, rhs, groups};
    for (int64_t i = 0; i < spatial; ++i) {
      const auto s = static_cast<size_t>(i);
      const int64_t reach = (kernel.extent(i) - 1) * rhs[s];
      d.low.push_back(reach - low[s]);
      d.high.push_back(spread_extent(input.extent(i + 1), lhs[s]) + reach - spread_extent(n.g().extent(i + 1), strides[s]) - d.low.back());
    }
    const Value turned = grouped_last(reverse(kernel, counted(0, static_cast<size_t>(spatial))), groups);
    out[0] = convolution(n.g(), joined_last(swapaxes(turned, -3, -1)), d);
  }
  if (n.wanted[1]) {
    // Samples become channels: the input [c / groups, spatial..., groups * n] meets the cotangent [spatial..., n, o] as a kernel.
    ConvolutionDims d{rhs, low, {}, lhs, strides, groups};
    for (int64_t i = 0; i < spatial; ++i) {
      const auto s = static_cast<size_t>(i);
      d.high.push_back(spread_extent(n.g().extent(i + 1), strides[s]) + (kernel.extent(i) - 1) * rhs[s] -
                       spread_extent(input.extent(i + 1), lhs[s]) - low[s]);
    }
    const Value by_group = swapaxes(grouped_last(input, groups), 0, -1);  // [c / groups, spatial..., groups, n]
    const Value met = convolution(joined_last(by_group), moveaxis(n.g(), {0}, {-2}), d);
    out[1] = moveaxis(met, {0}, {-2});  // [c / groups, spatial..., o] -> [spatial..., c / groups, o]
  }
  return out;
}

}  // namespace tutti::gradient_rules
