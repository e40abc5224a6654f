// The one list of ops: TUTTI_OP(name, operands at least, operands at most, class, type rule, batching rule, gradient rule, attributes).
// Names and semantics are StableHLO's (or CHLO's, marked c) unless a comment says how an op is larger than StableHLO's.
// Attributes: "name:kind ...", kind one of int, number, text, ints; all are required.

// Leaves. A parameter has a role (input, weight, state) and a name; a constant holds its literal.
TUTTI_OP(parameter, 0, 0, leaf, declared, leaf, none, "role:text name:text")
TUTTI_OP(constant, 0, 0, leaf, declared, leaf, none, "")
TUTTI_OP(iota, 0, 0, leaf, declared, leaf, none, "dimension:int")

// Elementwise, one operand.
TUTTI_OP(abs, 1, 1, unary, numeric, elementwise, abs, "")
TUTTI_OP(negate, 1, 1, unary, numeric, elementwise, negate, "")
TUTTI_OP(sign, 1, 1, unary, numeric, elementwise, none, "")
TUTTI_OP(exponential, 1, 1, unary, floating, elementwise, exponential, "")
TUTTI_OP(exponential_minus_one, 1, 1, unary, floating, elementwise, exponential_minus_one, "")
TUTTI_OP(log, 1, 1, unary, floating, elementwise, log, "")
TUTTI_OP(log_plus_one, 1, 1, unary, floating, elementwise, log_plus_one, "")
TUTTI_OP(logistic, 1, 1, unary, floating, elementwise, logistic, "")
TUTTI_OP(sqrt, 1, 1, unary, floating, elementwise, sqrt, "")
TUTTI_OP(rsqrt, 1, 1, unary, floating, elementwise, rsqrt, "")
TUTTI_OP(cbrt, 1, 1, unary, floating, elementwise, cbrt, "")
TUTTI_OP(ceil, 1, 1, unary, floating, elementwise, none, "")
TUTTI_OP(floor, 1, 1, unary, floating, elementwise, none, "")
TUTTI_OP(round_nearest_even, 1, 1, unary, floating, elementwise, none, "")
TUTTI_OP(round_nearest_afz, 1, 1, unary, floating, elementwise, none, "")
TUTTI_OP(sine, 1, 1, unary, floating, elementwise, sine, "")
TUTTI_OP(cosine, 1, 1, unary, floating, elementwise, cosine, "")
TUTTI_OP(tan, 1, 1, unary, floating, elementwise, tan, "")
TUTTI_OP(tanh, 1, 1, unary, floating, elementwise, tanh, "")
TUTTI_OP(asin, 1, 1, unary, floating, elementwise, asin, "")        // c
TUTTI_OP(acos, 1, 1, unary, floating, elementwise, acos, "")        // c
TUTTI_OP(atan, 1, 1, unary, floating, elementwise, atan, "")        // c
TUTTI_OP(sinh, 1, 1, unary, floating, elementwise, sinh, "")        // c
TUTTI_OP(cosh, 1, 1, unary, floating, elementwise, cosh, "")        // c
TUTTI_OP(asinh, 1, 1, unary, floating, elementwise, asinh, "")      // c
TUTTI_OP(acosh, 1, 1, unary, floating, elementwise, acosh, "")      // c
TUTTI_OP(atanh, 1, 1, unary, floating, elementwise, atanh, "")      // c
TUTTI_OP(erf, 1, 1, unary, floating, elementwise, erf, "")          // c
TUTTI_OP(erf_inv, 1, 1, unary, floating, elementwise, erf_inv, "")  // c
TUTTI_OP(lgamma, 1, 1, unary, floating, elementwise, refused, "")   // c
TUTTI_OP(is_finite, 1, 1, unary, predicate, elementwise, none, "")
TUTTI_OP(not_, 1, 1, unary, bits, elementwise, none, "")
TUTTI_OP(popcnt, 1, 1, unary, integral, elementwise, none, "")
TUTTI_OP(convert, 1, 1, unary, converted, elementwise, converted, "dtype:text")
TUTTI_OP(bitcast_convert, 1, 1, unary, bitcast, elementwise, none, "dtype:text")

// Elementwise, two or three operands of one shape.
TUTTI_OP(add, 2, 2, binary, same, elementwise, add, "")
TUTTI_OP(subtract, 2, 2, binary, numeric, elementwise, subtract, "")
TUTTI_OP(multiply, 2, 2, binary, same, elementwise, multiply, "")
TUTTI_OP(divide, 2, 2, binary, numeric, elementwise, divide, "")
TUTTI_OP(remainder, 2, 2, binary, numeric, elementwise, remainder, "")
TUTTI_OP(maximum, 2, 2, binary, same, elementwise, maximum, "")
TUTTI_OP(minimum, 2, 2, binary, same, elementwise, minimum, "")
TUTTI_OP(power, 2, 2, binary, numeric, elementwise, power, "")
TUTTI_OP(atan2, 2, 2, binary, floating, elementwise, atan2, "")
TUTTI_OP(and_, 2, 2, binary, bits, elementwise, none, "")
TUTTI_OP(or_, 2, 2, binary, bits, elementwise, none, "")
TUTTI_OP(xor_, 2, 2, binary, bits, elementwise, none, "")
TUTTI_OP(shift_left, 2, 2, binary, integral, elementwise, none, "")
TUTTI_OP(shift_right_arithmetic, 2, 2, binary, integral, elementwise, none, "")
TUTTI_OP(shift_right_logical, 2, 2, binary, integral, elementwise, none, "")
TUTTI_OP(compare, 2, 2, binary, predicate, elementwise, none, "direction:text")  // EQ NE GE GT LE LT
TUTTI_OP(select, 3, 3, ternary, selected, elementwise, selected, "")             // predicate of the same shape

// Moving data.
TUTTI_OP(broadcast_in_dim, 1, 1, movement, broadcasted, broadcasted, broadcasted, "shape:ints dimensions:ints")
TUTTI_OP(reshape, 1, 1, movement, reshaped, reshaped, reshaped, "shape:ints")
TUTTI_OP(transpose, 1, 1, movement, transposed, transposed, transposed, "permutation:ints")
TUTTI_OP(slice, 1, 1, movement, sliced, sliced, sliced, "start:ints limit:ints strides:ints")
TUTTI_OP(pad, 2, 2, movement, padded, padded, padded, "low:ints high:ints interior:ints")  // operand, scalar padding value
TUTTI_OP(concatenate, 1, 1 << 20, movement, concatenated, concatenated, concatenated, "dimension:int")
TUTTI_OP(reverse, 1, 1, movement, reversed, reversed, reversed, "dimensions:ints")
TUTTI_OP(dynamic_slice, 1, 33, movement, dynamically_sliced, dynamically_sliced, dynamically_sliced,
         "sizes:ints")  // operand, one scalar start per axis
TUTTI_OP(dynamic_update_slice, 2, 34, movement, dynamically_updated, dynamically_updated, dynamically_updated,
         "")  // operand, update, starts
// operand, start indices
TUTTI_OP(gather, 2, 2, movement, gathered, gathered, gathered,
         "offset_dims:ints collapsed_slice_dims:ints operand_batching_dims:ints start_indices_batching_dims:ints start_index_map:ints "
         "index_vector_dim:int slice_sizes:ints")
// operand, indices, updates; kind says what happens to repeated places: replace, add, max, min, multiply
TUTTI_OP(scatter, 3, 3, movement, scattered, scattered, scattered,
         "update_window_dims:ints inserted_window_dims:ints input_batching_dims:ints scatter_indices_batching_dims:ints "
         "scatter_dims_to_operand_dims:ints index_vector_dim:int kind:text")
TUTTI_OP(sort, 1, 1 << 10, movement, sorted, sorted, sorted,
         "dimension:int descending:int")  // all by the first operand; stable; NaN counts as the largest

// Contractions and windows. kind: add, multiply, max, min, and, or; the initial value is its identity.
TUTTI_OP(reduce, 1, 1, reduction, reduced, reduced, reduced, "kind:text dimensions:ints")
TUTTI_OP(reduce_window, 1, 1, reduction, windowed, windowed, windowed,
         "kind:text window:ints strides:ints base_dilation:ints window_dilation:ints low:ints high:ints")
// operand, cotangents of its reduce_window of kind max or min with the same attributes: each goes to the first of its window's elements
// that the window is known by; NaN counts as such. StableHLO's with these two functions, and with dilation.
TUTTI_OP(select_and_scatter, 2, 2, reduction, selected_and_scattered, windowed, refused,
         "kind:text window:ints strides:ints base_dilation:ints window_dilation:ints low:ints high:ints")
TUTTI_OP(dot_general, 2, 2, contraction, dotted, dotted, dotted, "lhs_batch:ints rhs_batch:ints lhs_contracting:ints rhs_contracting:ints")
// input [n, spatial..., c], kernel [spatial..., c / groups, o] -> [n, spatial..., o]: Keras's channels_last order, always
TUTTI_OP(convolution, 2, 2, contraction, convolved, convolved, convolved,
         "strides:ints low:ints high:ints lhs_dilation:ints rhs_dilation:ints groups:int")

// Keys u64[..., 2], each a seed and a counter -> u32[..., shape...]: bits by Philox4x32-10, element i of a key's shape being word i % 4 of
// the block whose counter is (i / 4, the key's counter). The same key always gives the same bits; StableHLO's rng_bit_generator with its
// state outside. Keys u64[..., 3] end with the place of their first element: i counts from there, so that a part of a larger draw is drawn
// alone.
TUTTI_OP(random_bits, 1, 1, movement, randomized, elementwise, none, "shape:ints")

// Larger than StableHLO's: the body runs `length` times. Operands: `carries` initial carries, `slices` values sliced along their axis 0,
// then values the body sees whole. The body's parameters stand in that order; it returns the next carries, then values that are stacked
// along a new axis 0. Results: final carries, stacked values. reverse = 1 walks the slices and fills the stack from the last to the first.
TUTTI_OP(scan, 0, 1 << 16, control, scanned, scanned, scanned, "carries:int slices:int length:int reverse:int")

// Sums over the replicas of a program, which all run it at the same time: results have the operands' types, which share one dtype. Several
// operands are one exchange. With one replica it is the operands themselves.
TUTTI_OP(all_reduce, 1, 1 << 16, movement, summed_by_all, summed_by_all, summed_by_all, "replicas:int")
