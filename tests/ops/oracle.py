"""What each op gives, by NumPy, SciPy and JAX. Floats are computed in float64 and rounded once, which is what the reference device promises."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jax import lax

jax.config.update("jax_enable_x64", True)


def is_float(array):
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"


def is_bool(array):
    return array.dtype == bool


def rounded(function):
    """A function of float64 arrays, on arrays of any float type."""
    return lambda *xs: function(*(x.astype(np.float64) for x in xs)).astype(xs[0].dtype)


def either(for_floats, for_integers, for_bools=None):
    def call(*xs):
        if is_float(xs[0]):
            return rounded(for_floats)(*xs)
        return (for_bools if is_bool(xs[0]) and for_bools else for_integers)(*xs)

    return call


def native(function):
    return lambda *xs: np.asarray(function(*(jnp.asarray(x) for x in xs)))


def away_from_zero(x):
    whole = np.trunc(x)
    return np.where(np.isfinite(x), np.copysign(np.abs(whole) + (np.abs(x - whole) >= 0.5), x), x)


def larger(a, b):
    return np.where(a == b, np.where(np.signbit(a), b, a), np.maximum(a, b))


def smaller(a, b):
    return np.where(a == b, np.where(np.signbit(a), a, b), np.minimum(a, b))


def sign(x):
    return np.where(x == 0, x, np.sign(x))


def log_gamma(x):
    """SciPy has -inf for -inf, and inf for subnormal numbers."""
    return np.where(np.isinf(x), np.inf, np.where(np.abs(x) < 1e-300, -np.log(np.abs(x)), scipy.special.gammaln(x)))


@functools.partial(np.vectorize, otypes=[object])
def raised(a, b):
    """Whole numbers: a negative exponent gives the truncated inverse, as StableHLO has it."""
    a, b = int(a), int(b)
    return pow(a, b, 2**64) if b >= 0 else (a**-b if abs(a) == 1 else 0) % 2**64


UNARY = {
    "abs": either(np.abs, np.abs),
    "negate": either(np.negative, np.negative),
    "sign": either(sign, np.sign),
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "log": np.log,
    "log_plus_one": np.log1p,
    "logistic": scipy.special.expit,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "floor": np.floor,
    "round_nearest_even": np.rint,
    "round_nearest_afz": away_from_zero,
    "sine": np.sin,
    "cosine": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": scipy.special.erf,
    "erf_inv": scipy.special.erfinv,
    "lgamma": log_gamma,
    "is_finite": lambda x: np.isfinite(x.astype(np.float64)),
    "not": np.invert,
    "popcnt": native(lax.population_count),
}
TYPED_UNARY = {"abs", "negate", "sign", "is_finite", "not", "popcnt"}

BINARY = {
    "add": either(np.add, np.add, np.logical_or),
    "subtract": either(np.subtract, np.subtract),
    "multiply": either(np.multiply, np.multiply, np.logical_and),
    "divide": either(np.divide, native(lax.div)),
    "remainder": either(np.fmod, native(lax.rem)),
    "maximum": either(larger, np.maximum),
    "minimum": either(smaller, np.minimum),
    "power": either(np.power, lambda a, b: raised(a, b).astype(np.uint64).astype(a.dtype)),
    "atan2": rounded(np.arctan2),
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shift_left": native(lax.shift_left),
    "shift_right_arithmetic": native(lax.shift_right_arithmetic),
    "shift_right_logical": native(lax.shift_right_logical),
}

COMPARE = {"EQ": np.equal, "NE": np.not_equal, "GE": np.greater_equal, "GT": np.greater, "LE": np.less_equal, "LT": np.less}


def wide(x):
    """The dtype in which sums of x are formed."""
    return x.astype(np.float64) if is_float(x) else x.astype(np.uint64 if x.dtype.kind == "u" else np.int64)


def reduce(x, kind, dimensions):
    axes = tuple(dimensions)
    if kind in ("and", "or") or is_bool(x):
        return (np.all if kind in ("and", "multiply", "min") else np.any)(x, axis=axes)
    if kind in ("add", "multiply"):
        return (np.sum if kind == "add" else np.prod)(wide(x), axis=axes).astype(x.dtype)
    start = identity(x, kind)
    return (np.max if kind == "max" else np.min)(wide(x), axis=axes, initial=start).astype(x.dtype)


def identity(x, kind):
    if kind in ("add", "multiply"):
        return 0 if kind == "add" else 1
    if is_float(x):
        return -np.inf if kind == "max" else np.inf
    return np.iinfo(x.dtype).min if kind == "max" else np.iinfo(x.dtype).max


def reduce_window(x, kind, window, strides, base_dilation, window_dilation, low, high):
    operation = {"add": lax.add, "multiply": lax.mul, "max": lax.max, "min": lax.min}[kind]
    w = wide(x)
    out = lax.reduce_window(
        jnp.asarray(w), jnp.asarray(identity(x, kind), w.dtype), operation, window, strides, list(zip(low, high)), base_dilation, window_dilation
    )
    return np.asarray(out).astype(x.dtype)


def random_bits(keys, shape):
    """Philox4x32-10 in Python's integers; its known answer for zeros is 0x6627e8d5, ..."""
    count, out = int(np.prod(shape, dtype=np.int64)), []
    for seed, counter, *place in keys.reshape(-1, keys.shape[-1]).tolist():
        words, begin = [], place[0] if place else 0
        for block in range(begin // 4, (begin + count + 3) // 4):
            block %= 1 << 62
            c, k = [block & 0xFFFFFFFF, block >> 32, counter & 0xFFFFFFFF, counter >> 32], [seed & 0xFFFFFFFF, seed >> 32]
            for _ in range(10):
                first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
                c = [(second >> 32) ^ c[1] ^ k[0], second & 0xFFFFFFFF, (first >> 32) ^ c[3] ^ k[1], first & 0xFFFFFFFF]
                k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
            words += c
        out.append(np.array(words[begin % 4 :][:count], np.uint32).reshape(shape))
    return np.array(out, np.uint32).reshape((*keys.shape[:-1], *shape))


assert random_bits(np.zeros(2, np.uint64), [4]).tolist() == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def select_and_scatter(x, g, kind, window, strides, base_dilation, window_dilation, low, high):
    """The definition, window by window; places of the dilated operand between its elements do not count."""
    wide_x, out = wide(x), np.zeros(x.shape)
    for position in np.ndindex(*g.shape):
        found = None
        for tap in np.ndindex(*window):
            place = [p * s - l + t * d for p, s, l, t, d in zip(position, strides, low, tap, window_dilation)]
            index = tuple(p // b for p, b in zip(place, base_dilation))
            if any(p % b or not 0 <= i < n for p, b, i, n in zip(place, base_dilation, index, x.shape)):
                continue
            better = found is None or (not np.isnan(wide_x[found]) and (
                np.isnan(wide_x[index]) or (wide_x[index] > wide_x[found] if kind == "max" else wide_x[index] < wide_x[found])))
            found = index if better else found
        if found is not None:
            out[found] += wide(g)[position]
    return out.astype(x.dtype)


def dot_general(x, y, lhs_batch, rhs_batch, lhs_contracting, rhs_contracting):
    out = lax.dot_general(jnp.asarray(wide(x)), jnp.asarray(wide(y)), ((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch)))
    return np.asarray(out).astype(x.dtype)


def convolution(x, w, strides, low, high, lhs_dilation, rhs_dilation, groups):
    """The definition, tap by tap: dilate, pad, and a matrix product per tap and group."""
    spatial = x.ndim - 2
    padding = [(0, 0, 0), *zip(low, high, (d - 1 for d in lhs_dilation)), (0, 0, 0)]
    padded = np.asarray(lax.pad(jnp.asarray(wide(x)), jnp.zeros((), wide(x).dtype), padding))
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape, rhs_dilation)]
    extents = [max(0, (n - r) // s + 1) for n, r, s in zip(padded.shape[1:], reach, strides)]
    channels, features = x.shape[-1] // groups, w.shape[-1] // groups
    out = np.zeros((x.shape[0], *extents, w.shape[-1]), padded.dtype)
    for tap in np.ndindex(*w.shape[:spatial]):
        places = tuple(
            slice(t * d, t * d + (e - 1) * s + 1 if e else t * d, s) for t, d, e, s in zip(tap, rhs_dilation, extents, strides)
        )
        under = padded[(slice(None), *places)]
        for g in range(groups):
            left = under[..., g * channels : (g + 1) * channels]
            out[..., g * features : (g + 1) * features] += left @ wide(w)[tap][:, g * features : (g + 1) * features]
    return out.astype(x.dtype)


def with_vector_last(indices, index_vector_dim):
    """JAX has the index vector always last."""
    return indices[..., None] if index_vector_dim == indices.ndim else np.moveaxis(indices, index_vector_dim, -1)


def without(dims, vector):
    return tuple(d - (d > vector) for d in dims)


def gather(x, indices, index_vector_dim, slice_sizes, start_indices_batching_dims, **dims):
    numbers = lax.GatherDimensionNumbers(
        start_indices_batching_dims=without(start_indices_batching_dims, index_vector_dim), **{k: tuple(v) for k, v in dims.items()}
    )
    return np.asarray(
        lax.gather(jnp.asarray(x), jnp.asarray(with_vector_last(indices, index_vector_dim)), numbers, tuple(slice_sizes), mode="clip")
    )


def scatter(x, indices, updates, index_vector_dim, kind, scatter_indices_batching_dims, input_batching_dims, **dims):
    numbers = lax.ScatterDimensionNumbers(
        operand_batching_dims=tuple(input_batching_dims),
        scatter_indices_batching_dims=without(scatter_indices_batching_dims, index_vector_dim),
        **{k: tuple(v) for k, v in dims.items()},
    )
    function = {"replace": lax.scatter, "add": lax.scatter_add, "multiply": lax.scatter_mul, "max": lax.scatter_max, "min": lax.scatter_min}[kind]
    where = jnp.asarray(with_vector_last(indices, index_vector_dim))
    return np.asarray(function(jnp.asarray(x), where, jnp.asarray(updates), numbers, mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS))


def sort(operands, dimension, descending):
    """NumPy sorts NaN last. Descending and stable: the reverse of the ascending, stable order of the reversed operands."""
    flip = (lambda x: np.flip(x, dimension)) if descending else (lambda x: x)
    order = np.argsort(flip(wide(operands[0])), axis=dimension, kind="stable")
    return [flip(np.take_along_axis(flip(x), order, dimension)) for x in operands]


def convert(x, dtype):
    """XLA on the CPU takes subnormal floats for zero, so only conversions from float to integer, where that does not show, ask it."""
    if is_float(x) and dtype.kind in "iu":
        return np.asarray(lax.convert_element_type(jnp.asarray(x), dtype))
    return x.astype(dtype)


def scan(operands, body, types, carries, slices, length, reverse):
    parameters = [node.results[0] for node in body[:-1] if node.op == "parameter"]
    carry, rest = list(operands[:carries]), list(operands[carries + slices :])
    stacked = [np.zeros(t.shape, t.dtype) for t in types[carries:]]
    for step in reversed(range(length)) if reverse else range(length):
        values = dict(zip(parameters, [*carry, *(x[step] for x in operands[carries : carries + slices]), *rest]))
        for node in body[:-1]:
            if node.op != "parameter":
                values.update(zip(node.results, evaluate(node, [values[name] for name in node.operands])))
        outputs = [values[name] for name in body[-1]]
        carry = outputs[:carries]
        for to, value in zip(stacked, outputs[carries:]):
            to[step] = value
    return [*carry, *stacked]


def constant(type_, literal):
    if type_.dtype == bool:
        return np.array([word == "true" for word in literal]).reshape(type_.shape)
    number = int if type_.dtype.kind in "iu" else float
    return np.array([number(word) for word in literal], type_.dtype).reshape(type_.shape)


def evaluate(node, operands):
    """The results of a node."""
    from node_text import DTYPES

    op, a = node.op, dict(node.attributes)
    x = operands[0] if operands else None
    if op == "sort":
        return sort(operands, **a)
    if op == "all_reduce":
        return operands
    if op == "scan":
        return scan(operands, node.body, node.types, **a)
    if op in TYPED_UNARY:
        return [UNARY[op](x)]
    if op in UNARY:
        return [rounded(UNARY[op])(x)]
    if op in BINARY:
        return [BINARY[op](*operands)]
    structured = {
        "parameter": lambda: operands[0],
        "constant": lambda: constant(node.types[0], node.literal),
        "iota": lambda: np.asarray(lax.broadcasted_iota(node.types[0].dtype, node.types[0].shape, a["dimension"])),
        "convert": lambda: convert(x, DTYPES[a["dtype"]]),
        "bitcast_convert": lambda: x.view(DTYPES[a["dtype"]]),
        "compare": lambda: COMPARE[a["direction"]](*operands),
        "select": lambda: np.where(*operands),
        "broadcast_in_dim": lambda: np.asarray(lax.broadcast_in_dim(jnp.asarray(x), a["shape"], a["dimensions"])),
        "reshape": lambda: x.reshape(a["shape"]),
        "transpose": lambda: np.transpose(x, a["permutation"]),
        "slice": lambda: x[tuple(slice(*s) for s in zip(a["start"], a["limit"], a["strides"]))],
        "pad": lambda: np.asarray(lax.pad(jnp.asarray(x), jnp.asarray(operands[1]), list(zip(a["low"], a["high"], a["interior"])))),
        "concatenate": lambda: np.concatenate(operands, a["dimension"]),
        "reverse": lambda: np.flip(x, a["dimensions"]),
        "dynamic_slice": lambda: np.asarray(lax.dynamic_slice_p.bind(*map(jnp.asarray, operands), slice_sizes=tuple(a["sizes"]))),
        "dynamic_update_slice": lambda: np.asarray(lax.dynamic_update_slice_p.bind(*map(jnp.asarray, operands))),
        "gather": lambda: gather(*operands, **a),
        "scatter": lambda: scatter(*operands, **a),
        "reduce": lambda: reduce(x, **a),
        "reduce_window": lambda: reduce_window(x, **a),
        "select_and_scatter": lambda: select_and_scatter(*operands, **a),
        "random_bits": lambda: random_bits(x, **a),
        "dot_general": lambda: dot_general(*operands, **a),
        "convolution": lambda: convolution(*operands, **a),
    }
    return [structured[op]()]
