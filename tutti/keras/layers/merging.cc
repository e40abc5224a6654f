// Layers that make one tensor of several. Where ranks differ, the smaller ones get axes of 1 after the batch.
#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"
#include "tutti/keras/layers/extreme.h"
#include "tutti/keras/layers/families.h"
#include "tutti/keras/lower.h"
#include "tutti/keras/promote.h"

namespace tutti::keras {

namespace {

std::vector<Value> with_one_dtype(const std::vector<Value>& values) {
  std::vector<PromotedType> types;
  for (Value v : values) types.emplace_back(v.dtype());
  DType common = result_type(types);
  std::vector<Value> out;
  for (Value v : values) out.push_back(convert(v, common));
  return out;
}

// The inputs as they are merged, with the masks that Keras's merge functions still see: adding axes loses a mask.
std::vector<Signal> aligned_inputs(Call& c) {
  std::vector<Value> values;
  int64_t rank = 0;
  for (size_t i = 0; i == 0 || i < c.input_count(); ++i) {
    values.push_back(c.x(i));
    rank = std::max(rank, c.x(i).rank());
  }
  values = with_one_dtype(values);
  std::vector<Signal> out;
  for (size_t i = 0; i < values.size(); ++i) {
    Value mask = c.mask(i);
    if (values[i].rank() < rank) {
      if (values[i].rank() == 0) c.config.invalid("a scalar has no batch to align");
      Ints extents = values[i].shape().extents();
      extents.insert(extents.begin() + 1, static_cast<size_t>(rank - values[i].rank()), 1);
      values[i] = reshape(values[i], extents);
      mask = {};
    }
    out.push_back({values[i], mask});
  }
  return out;
}

// Keras 3: the result counts where any input does, and only if all inputs have masks. Keras 2: where all masks that there are agree.
Value merged_mask(Call& c) {
  Value out;
  for (size_t i = 0; i < c.input_count(); ++i) {
    Value mask = c.mask(i);
    if (!mask && c.lowering.keras_major >= 3) return {};
    if (!mask) continue;
    if (!out) {
      out = mask;
    } else {
      out = c.lowering.keras_major >= 3 ? logical_or(out, mask) : logical_and(out, mask);
    }
  }
  return out;
}

Value mask_like(const Signal& signal) { return broadcast_to(expand_dims(signal.mask, {-1}), signal.value.shape()); }

template <class Merge>
Outputs fold(Call& c, Merge merge) {
  auto inputs = aligned_inputs(c);
  Value out = inputs[0].value;
  for (size_t i = 1; i < inputs.size(); ++i) out = merge(out, inputs[i].value);
  return Signal{out, merged_mask(c)};
}

Outputs add(Call& c) {
  return fold(c, [](Value a, Value b) { return a + b; });
}

Outputs subtract(Call& c) {
  if (c.input_count() != 2) c.config.invalid("subtracts the second of 2 inputs from the first; got {}", c.input_count());
  return fold(c, [](Value a, Value b) { return a - b; });
}

Outputs average(Call& c) {
  Signal total = fold(c, [](Value a, Value b) { return a + b; }).signals[0];
  return Signal{convert(total.value, float_type(total.value.dtype())) / static_cast<double>(c.input_count()), total.mask};
}

// Keras 3: a masked element counts as 1, and as 0 where all are masked.
Outputs multiply(Call& c) {
  if (c.lowering.keras_major < 3) return fold(c, [](Value a, Value b) { return a * b; });
  auto inputs = aligned_inputs(c);
  bool all_masked = std::all_of(inputs.begin(), inputs.end(), [](const Signal& s) { return bool(s.mask); });
  Value out, any_kept;
  for (const Signal& input : inputs) {
    Value x = input.value;
    if (input.mask) {
      Value mask = mask_like(input);
      x = select(mask, x, full_like(x, 1));
      any_kept = any_kept ? logical_or(any_kept, mask) : mask;
    }
    out = out ? out * x : x;
  }
  if (all_masked) out = select(any_kept, out, full_like(out, 0));
  return Signal{out, merged_mask(c)};
}

// Keras 3: a masked element gives way to the other one.
Outputs choose(Call& c, Op op) {
  if (c.lowering.keras_major < 3) return fold(c, [&](Value a, Value b) { return extreme(c, op, a, b); });
  auto inputs = aligned_inputs(c);
  Value out = inputs[0].value, out_mask = inputs[0].mask ? mask_like(inputs[0]) : Value{};
  for (size_t i = 1; i < inputs.size(); ++i) {
    Value x = inputs[i].value, mask = inputs[i].mask ? mask_like(inputs[i]) : Value{};
    if (mask) x = select(mask, x, out);
    if (out_mask) out = select(out_mask, out, x);
    out_mask = mask && out_mask ? logical_or(out_mask, mask) : Value{};
    out = extreme(c, op, out, x);
  }
  return Signal{out, merged_mask(c)};
}

Outputs maximum_layer(Call& c) { return choose(c, Op::maximum); }
Outputs minimum_layer(Call& c) { return choose(c, Op::minimum); }

Value concatenated_mask(Call& c, const std::vector<Value>& values, int64_t axis) {
  std::vector<Value> masks;
  bool any_given = false;
  for (size_t i = 0; i < values.size(); ++i) {
    Value mask = c.mask(i);
    any_given = any_given || mask;
    if (!mask) {
      mask = full(c.graph, {DType::boolean, values[i].shape()}, 1);
    } else if (mask.rank() < values[i].rank()) {
      mask = broadcast_to(expand_dims(mask, {-1}), values[i].shape());
    }
    masks.push_back(mask);
  }
  if (!any_given) return {};
  Value joined = concatenate(masks, axis);
  return c.lowering.keras_major >= 3 ? any(joined, {-1}) : all(joined, {-1});
}

Outputs concatenate_layer(Call& c) {
  std::vector<Value> values;
  for (size_t i = 0; i == 0 || i < c.input_count(); ++i) values.push_back(c.x(i));
  values = with_one_dtype(values);
  int64_t axis = c.config.integer("axis", -1);
  return Signal{concatenate(values, axis), concatenated_mask(c, values, axis)};
}

Value unit_length(Value x, int64_t axis, double epsilon) { return x * minimum(rsqrt(sum(square(x), {axis}, true)), 1 / epsilon); }

Outputs dot(Call& c) {
  if (c.input_count() != 2) c.config.invalid("takes 2 inputs; got {}", c.input_count());
  auto values = with_one_dtype({c.x(0), c.x(1)});
  Value a = values[0], b = values[1];
  if (a.rank() < 2 || b.rank() < 2)
    c.config.invalid("takes inputs of rank 2 or more; got {} and {}", to_string(a.shape()), to_string(b.shape()));
  Ints axes = c.config.ints("axes", 2);
  axes = {wrap_axis(axes[0], a.rank()), wrap_axis(axes[1], b.rank())};
  if (axes[0] == 0 || axes[1] == 0) c.config.invalid("axis 0 is the batch and is not summed");
  if (c.config.flag("normalize", false)) {
    double epsilon = c.lowering.keras_major >= 3 ? 1e-7 : 1e-6;
    a = unit_length(a, axes[0], epsilon);
    b = unit_length(b, axes[1], epsilon);
  }
  Value y = dot_general(a, b, {{0}, {0}, {axes[0]}, {axes[1]}});
  return y.rank() == 1 ? expand_dims(y, {1}) : y;
}

}  // namespace

Rows merging_layers() {
  static const LayerRow rows[] = {
      {"Add", add, Masking::own, ""},
      {"Subtract", subtract, Masking::own, ""},
      {"Multiply", multiply, Masking::own, ""},
      {"Average", average, Masking::own, ""},
      {"Maximum", maximum_layer, Masking::own, ""},
      {"Minimum", minimum_layer, Masking::own, ""},
      {"Concatenate", concatenate_layer, Masking::own, "axis"},
      {"Dot", dot, Masking::drop, "axes normalize"},
  };
  return rows;
}

}  // namespace tutti::keras
