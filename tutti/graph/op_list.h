// The one list of ops: TUTTI_OP(name, operands at least, operands at most, class, type rule, batching rule, attributes).
// Names and semantics are StableHLO's (or CHLO's, marked c) unless a comment says how an op is larger than StableHLO's.
// Attributes: "name:kind ...", kind one of int, number, text, ints; all are required.

// Leaves. A parameter has a role (input, weight, state) and a name; a constant holds its literal.
TUTTI_OP(parameter, 0, 0, leaf, declared, leaf, "role:text name:text")
TUTTI_OP(constant, 0, 0, leaf, declared, leaf, "")
TUTTI_OP(iota, 0, 0, leaf, declared, leaf, "dimension:int")

// Elementwise, one operand.
TUTTI_OP(abs, 1, 1, unary, numeric, elementwise, "")
TUTTI_OP(negate, 1, 1, unary, numeric, elementwise, "")
TUTTI_OP(sign, 1, 1, unary, numeric, elementwise, "")
TUTTI_OP(exponential, 1, 1, unary, floating, elementwise, "")
TUTTI_OP(exponential_minus_one, 1, 1, unary, floating, elementwise, "")
TUTTI_OP(log, 1, 1, unary, floating, elementwise, "")
TUTTI_OP(log_plus_one, 1, 1, unary, floating, elementwise, "")
TUTTI_OP(logistic, 1, 1, unary, floating, elementwise, "")
TUTTI_OP(sqrt, 1, 1, unary, floating, elementwise, "")
TUTTI_OP(rsqrt, 1, 1, unary, floating, elementwise, "")
TUTTI_OP(cbrt, 1, 1, unary, floating, elementwise, "")
TUTTI_OP(ceil, 1, 1, unary, floating, elementwise, "")
TUTTI_OP(floor, 1, 1, unary, floating, elementwise, "")
TUTTI_OP(round_nearest_even, 1, 1, unary, floating, elementwise, "")
TUTTI_OP(round_nearest_afz, 1, 1, unary, floating, elementwise, "")
TUTTI_OP(sine, 1, 1, unary, floating, elementwise, "")
TUTTI_OP(cosine, 1, 1, unary, floating, elementwise, "")
TUTTI_OP(tan, 1, 1, unary, floating, elementwise, "")
TUTTI_OP(tanh, 1, 1, unary, floating, elementwise, "")
TUTTI_OP(asin, 1, 1, unary, floating, elementwise, "")     // c
TUTTI_OP(acos, 1, 1, unary, floating, elementwise, "")     // c
TUTTI_OP(atan, 1, 1, unary, floating, elementwise, "")     // c
TUTTI_OP(sinh, 1, 1, unary, floating, elementwise, "")     // c
TUTTI_OP(cosh, 1, 1, unary, floating, elementwise, "")     // c
TUTTI_OP(asinh, 1, 1, unary, floating, elementwise, "")    // c
TUTTI_OP(acosh, 1, 1, unary, floating, elementwise, "")    // c
TUTTI_OP(atanh, 1, 1, unary, floating, elementwise, "")    // c
TUTTI_OP(erf, 1, 1, unary, floating, elementwise, "")      // c
TUTTI_OP(erf_inv, 1, 1, unary, floating, elementwise, "")  // c
TUTTI_OP(lgamma, 1, 1, unary, floating, elementwise, "")   // c
TUTTI_OP(is_finite, 1, 1, unary, predicate, elementwise, "")
TUTTI_OP(not_, 1, 1, unary, bits, elementwise, "")
TUTTI_OP(popcnt, 1, 1, unary, integral, elementwise, "")
TUTTI_OP(convert, 1, 1, unary, converted, elementwise, "dtype:text")
TUTTI_OP(bitcast_convert, 1, 1, unary, bitcast, elementwise, "dtype:text")

// Elementwise, two or three operands of one shape.
TUTTI_OP(add, 2, 2, binary, same, elementwise, "")
TUTTI_OP(subtract, 2, 2, binary, numeric, elementwise, "")
TUTTI_OP(multiply, 2, 2, binary, same, elementwise, "")
TUTTI_OP(divide, 2, 2, binary, numeric, elementwise, "")
TUTTI_OP(remainder, 2, 2, binary, numeric, elementwise, "")
TUTTI_OP(maximum, 2, 2, binary, same, elementwise, "")
TUTTI_OP(minimum, 2, 2, binary, same, elementwise, "")
TUTTI_OP(power, 2, 2, binary, numeric, elementwise, "")
TUTTI_OP(atan2, 2, 2, binary, floating, elementwise, "")
TUTTI_OP(and_, 2, 2, binary, bits, elementwise, "")
TUTTI_OP(or_, 2, 2, binary, bits, elementwise, "")
TUTTI_OP(xor_, 2, 2, binary, bits, elementwise, "")
TUTTI_OP(shift_left, 2, 2, binary, integral, elementwise, "")
TUTTI_OP(shift_right_arithmetic, 2, 2, binary, integral, elementwise, "")
TUTTI_OP(shift_right_logical, 2, 2, binary, integral, elementwise, "")
TUTTI_OP(compare, 2, 2, binary, predicate, elementwise, "direction:text")  // EQ NE GE GT LE LT
TUTTI_OP(select, 3, 3, ternary, selected, elementwise, "")                 // predicate of the same shape

// Moving data.
TUTTI_OP(broadcast_in_dim, 1, 1, movement, broadcasted, broadcasted, "shape:ints dimensions:ints")
TUTTI_OP(reshape, 1, 1, movement, reshaped, reshaped, "shape:ints")
TUTTI_OP(transpose, 1, 1, movement, transposed, transposed, "permutation:ints")
TUTTI_OP(slice, 1, 1, movement, sliced, sliced, "start:ints limit:ints strides:ints")
TUTTI_OP(pad, 2, 2, movement, padded, padded, "low:ints high:ints interior:ints")  // operand, scalar padding value
TUTTI_OP(concatenate, 1, 1 << 20, movement, concatenated, concatenated, "dimension:int")
TUTTI_OP(reverse, 1, 1, movement, reversed, reversed, "dimensions:ints")
TUTTI_OP(dynamic_slice, 1, 33, movement, dynamically_sliced, dynamically_sliced, "sizes:ints")  // operand, one scalar start per axis
TUTTI_OP(dynamic_update_slice, 2, 34, movement, dynamically_updated, dynamically_updated, "")   // operand, update, starts
// operand, start indices
TUTTI_OP(gather, 2, 2, movement, gathered, gathered,
         "offset_dims:ints collapsed_slice_dims:ints operand_batching_dims:ints start_indices_batching_dims:ints start_index_map:ints "
         "index_vector_dim:int slice_sizes:ints")
// operand, indices, updates; kind says what happens to repeated places: replace, add, max, min, multiply
TUTTI_OP(scatter, 3, 3, movement, scattered, scattered,
         "update_window_dims:ints inserted_window_dims:ints input_batching_dims:ints scatter_indices_batching_dims:ints "
         "scatter_dims_to_operand_dims:ints index_vector_dim:int kind:text")
TUTTI_OP(sort, 1, 1 << 10, movement, sorted, sorted,
         "dimension:int descending:int")  // all by the first operand; stable; NaN counts as the largest

// Contractions and windows. kind: add, multiply, max, min, and, or; the initial value is its identity.
TUTTI_OP(reduce, 1, 1, reduction, reduced, reduced, "kind:text dimensions:ints")
TUTTI_OP(reduce_window, 1, 1, reduction, windowed, windowed,
         "kind:text window:ints strides:ints base_dilation:ints window_dilation:ints low:ints high:ints")
TUTTI_OP(dot_general, 2, 2, contraction, dotted, dotted, "lhs_batch:ints rhs_batch:ints lhs_contracting:ints rhs_contracting:ints")
// input [n, spatial..., c], kernel [spatial..., c / groups, o] -> [n, spatial..., o]: Keras's channels_last order, always
TUTTI_OP(convolution, 2, 2, contraction, convolved, convolved,
         "strides:ints low:ints high:ints lhs_dilation:ints rhs_dilation:ints groups:int")

// Larger than StableHLO's: the body runs `length` times. Operands: `carries` initial carries, `slices` values sliced along their axis 0,
// then values the body sees whole. The body's parameters stand in that order; it returns the next carries, then values that are stacked
// along a new axis 0. Results: final carries, stacked values. reverse = 1 walks the slices and fills the stack from the last to the first.
TUTTI_OP(scan, 0, 1 << 16, control, scanned, scanned, "carries:int slices:int length:int reverse:int")
