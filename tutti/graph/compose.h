// NumPy-like functions that are compositions of ops: what layers and operations share above build.h. Axes may be negative. Floats of 16
// bits are summed in f32 and rounded once, as JAX does.
#pragma once

#include <optional>

#include "tutti/graph/build.h"

namespace tutti {

// Reductions (compose.cc). `axes` empty reduces nothing; all_axes(x) reduces to a scalar.
Ints all_axes(Value x);
Value sum(Value x, Ints axes, bool keepdims = false);
Value product(Value x, Ints axes, bool keepdims = false);
Value reduce_max(Value x, Ints axes, bool keepdims = false);
Value reduce_min(Value x, Ints axes, bool keepdims = false);
Value any(Value x, Ints axes, bool keepdims = false);  // of bool
Value all(Value x, Ints axes, bool keepdims = false);
// Of floats.
Value mean(Value x, Ints axes, bool keepdims = false);
Value variance(Value x, Ints axes, bool keepdims = false);  // divided by n
Value softmax(Value x, Ints axes);
// Whether `sums` is x summed over some axes and repeated along them: what a softmax divides by.
bool is_own_sum(Value sums, Value x);
Value log_softmax(Value x, Ints axes);
Value logsumexp(Value x, Ints axes, bool keepdims = false);

Value stop_gradient(Value x);  // x, of which gradients know nothing
Value square(Value x);
Value is_nan(Value x);                           // false everywhere for integers
Value where(Value condition, Value a, Value b);  // any dtype of condition: not zero

// Random numbers of a key u64[2]: a seed and a counter.
Value uniform(Value key, const Shape& shape);  // f32 in [0, 1)
Value normal(Value key, const Shape& shape);   // f32, mean 0, deviation 1

// Shapes (compose_shape.cc).
Value expand_dims(Value x, Ints axes);  // axes of the result
Value squeeze(Value x, Ints axes);
Value squeeze(Value x);                          // every extent of 1
Value flatten(Value x, int64_t first_axis = 0);  // axes from first_axis on become one
Value moveaxis(Value x, Ints from, Ints to);
Value swapaxes(Value x, int64_t a, int64_t b);
Value stack(const std::vector<Value>& parts, int64_t axis);
Value tile(Value x, Ints repeats);                   // as numpy.tile: ranks are made equal first
Value repeat(Value x, int64_t times, int64_t axis);  // each element `times` times in a row
Value flip(Value x, Ints axes);
Value roll(Value x, int64_t shift, int64_t axis);
// x[start:stop:step] along an axis with Python's meaning of absent, negative and too large values.
Value slice_axis(Value x, int64_t axis, std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step = 1);
Value index_axis(Value x, int64_t axis, int64_t index);  // x[index]; the axis goes
std::vector<Value> split(Value x, int64_t axis, const Ints& sizes);
enum class PadMode { constant, edge, reflect, symmetric };
// numpy.pad: low and high hold one entry an axis.
Value pad(Value x, PadMode mode, const Ints& low, const Ints& high, double value = 0);
// NumPy's matmul: batch axes broadcast, vectors are rows or columns.
Value matmul(Value a, Value b);

// By index (compose_index.cc). Negative indices count from the end; outside, the result is NaN (integers: the least value; unsigned: the
// largest; bool: true), which is JAX's and so Keras's rule.
Value take(Value x, Value indices, int64_t axis);
Value take(Value x, const Ints& indices, int64_t axis);  // known indices, all inside
Value take_along_axis(Value x, Value indices, int64_t axis);
Value one_hot(Value indices, int64_t classes, DType dtype, int64_t axis = -1);  // axis of the result; zeros when outside
// First occurrence; a NaN wins. i32. The axis is dropped unless keepdims.
Value argmax(Value x, int64_t axis, bool keepdims = false);
Value argmin(Value x, int64_t axis, bool keepdims = false);
Value argsort(Value x, int64_t axis, bool descending = false);  // i32, stable
struct TopK {
  Value values, indices;  // i32 indices
};
TopK top_k(Value x, int64_t k);  // of the last axis, largest first, ties by index, NaN the largest of all
// How many elements of the sorted vector come before each value (i32): those less, and with `after_equals` those equal. NaN is last.
Value searchsorted(Value sorted, Value values, bool after_equals = false);
// Running sum, product, maximum or minimum (kind: add, multiply, max, min) in log(n) steps.
Value cumulative(Value x, const std::string& kind, int64_t axis, bool reverse = false);

}  // namespace tutti
