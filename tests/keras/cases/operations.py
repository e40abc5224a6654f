"""keras.ops inside functional models. A model has many operations on the same inputs, each an output of its own."""

import keras
import numpy as np
from harness import case
from keras import ops


def cases():
    for group in (elementwise, pairs, reductions, ordering, shapes, indexing, creation, products, activations, normalization, losses, windows, images, signals):
        yield from group()


def many(name, functions, *inputs, fixed_batch=False, **options):
    """One model whose outputs are what the functions make of the same inputs: (shape, dtype) or arrays with the batch."""
    arrays = [value for value in inputs if isinstance(value, np.ndarray)]
    if arrays and len(arrays) != len(inputs):
        raise ValueError("give arrays for all inputs, or for none")

    def model():
        symbols = []
        for value in inputs:
            shape, dtype = (value.shape[1:], value.dtype.name) if isinstance(value, np.ndarray) else value
            symbols.append(keras.Input(shape, batch_size=len(value) if fixed_batch else None, dtype=dtype))
        return keras.Model(symbols, [out for f in functions for out in keras.tree.flatten(f(*symbols))])

    return case(name, model, arrays or None, formats=("keras",), **options)


FLOAT = ((4, 5), "float32")
INTS = ["bool", "int8", "int16", "int32", "uint8", "uint16", "uint32"]


def wide(seed=0, shape=(3, 4, 5), scale=3.0):
    """Both signs, some zeros, beyond 1."""
    values = np.random.default_rng(seed).standard_normal(shape) * scale
    values.flat[::7] = 0
    return values.astype("float32")


def inside(low, high, shape=(3, 4, 5)):
    return np.random.default_rng(1).uniform(low, high, shape).astype("float32")


def special(shape=(3, 2, 4)):
    """NaN, infinities and zeros of both signs among numbers."""
    values = np.random.default_rng(2).standard_normal(shape).astype("float32")
    values.flat[:6] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 2.5]
    values.flat[11], values.flat[17] = np.nan, -np.inf
    return values


def whole(dtype, seed=3, shape=(3, 4, 5)):
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.random(shape) < 0.5
    low = 0 if dtype.startswith("u") else -7
    return random.integers(low, 8, shape).astype(dtype)


def elementwise():
    anywhere = [
        ops.abs, ops.absolute, ops.angle, ops.arctan, ops.arcsinh, ops.cbrt, ops.ceil, ops.conj, ops.conjugate, ops.copy, ops.cos, ops.cosh, ops.deg2rad,
        ops.erf, ops.exp, ops.exp2, ops.expm1, ops.fabs, ops.floor, ops.imag, ops.isfinite, ops.isinf, ops.isnan, ops.isneginf, ops.isposinf,
        ops.isreal, ops.logical_not, ops.negative, ops.rad2deg, ops.real, ops.round, ops.sign, ops.signbit, ops.sin, ops.sinc, ops.sinh, ops.square,
        ops.stop_gradient, ops.tan, ops.tanh, ops.trunc, ops.convert_to_tensor,
    ]  # fmt: skip
    yield many("elementwise", anywhere, wide(scale=2.0))
    yield many("elementwise_positive", [ops.log, ops.log10, ops.log1p, ops.log2, ops.sqrt, ops.rsqrt, ops.reciprocal, ops.i0], inside(0.1, 8))
    yield many("elementwise_unit", [ops.arccos, ops.arcsin, ops.arctanh, ops.erfinv, ops.erfc], inside(-0.9, 0.9))
    yield many("elementwise_above_one", [ops.arccosh], inside(1.1, 5))
    yield many("elementwise_special", [
        ops.isfinite, ops.isinf, ops.isnan, ops.isneginf, ops.isposinf, ops.signbit, ops.sign, ops.abs, ops.tanh, ops.nan_to_num,
        lambda x: ops.nan_to_num(x, nan=1.5, posinf=9, neginf=-9), lambda x: ops.maximum(x, 0.0), lambda x: ops.where(ops.isnan(x), 0.0, x),
    ], special())  # fmt: skip
    yield many("rounding", [
        ops.round, lambda x: ops.round(x, 1), lambda x: ops.round(x, 2), lambda x: ops.round(x, -1), lambda x: ops.clip(x, -1, 2),
        lambda x: ops.clip(x, -0.5, None), lambda x: ops.clip(x, None, 0.5), lambda x: ops.clip(x, 2.0, 1.0),
    ], np.float32([[0.5, 1.5, 2.5, -0.5, -1.5, 14.9, 0.25, 0.35, -2.345, 15.0]] * 3))  # fmt: skip
    to_float = [ops.sin, ops.exp, ops.log1p, ops.sqrt, ops.tanh, ops.ceil, ops.floor, ops.fabs, ops.exp2, ops.sinc, ops.arctan]
    same = [ops.abs, ops.square, ops.trunc, ops.copy, ops.isnan, ops.isfinite, ops.logical_not, ops.signbit]
    for dtype in INTS:
        yield many(f"elementwise_{dtype}", to_float + same, np.abs(whole(dtype)) if dtype != "bool" else whole(dtype))
    yield many("elementwise_signed", [ops.abs, ops.negative, ops.sign, ops.square, ops.bitwise_not, ops.bitwise_invert, ops.signbit], whole("int32"))
    yield many("rounding_of_integers", [lambda x: ops.round(x, -1), ops.round, lambda x: ops.clip(x, -2, 3), lambda x: ops.clip(x, 0.5, 2.5)], whole("int32"))
    for dtype in ("float16", "bfloat16"):
        yield many(f"elementwise_{dtype}", half([ops.exp, ops.tanh, ops.sin, ops.sqrt, ops.log1p, ops.square, ops.round], dtype), inside(0.1, 3),
                   rtol=1e-2, atol=1e-2)
    yield many("casts", [lambda x, t=t: ops.cast(x, t) for t in (*INTS[3:4], "bool", "float16", "bfloat16", "int8", "uint8")], inside(0.5, 9))
    yield many("saturate_casts", [lambda x, t=t: ops.saturate_cast(x, t) for t in ("int8", "uint8", "float16", "bool")], np.float32([[-300, -1, 0.5, 255.5, 1e6]] * 2))
    yield many("saturate_casts_of_integers", [lambda x, t=t: ops.saturate_cast(x, t) for t in ("int8", "uint8", "uint16", "bool")],
               np.int32([[-300, -1, 0, 255, 70000]] * 2))
    yield many("views", [lambda x: ops.view(x, "int32"), lambda x: ops.view(x, "uint32"), lambda x: ops.view(x, "float32")], wide())
    yield many("float64", [lambda x: ops.exp(x) * 2 + 1, ops.mean, lambda x: x + 1e-12, lambda x: ops.cast(x, "int64") // 2, lambda x: ops.sum(x, -1)],
               wide().astype("float64"), oracle="tensorflow", single=False)
    yield many("int64", [lambda x: x + 1, lambda x: x * 2.5, ops.sum, lambda x: x % 3, lambda x: ops.cast(x, "int32") + x, ops.sin, lambda x: ops.mean(x, 1)],
               whole("int32").astype("int64") + 2**33, oracle="tensorflow", single=False, rtol=1e-3)


def half(functions, dtype):
    return [lambda *xs, f=f: f(*[ops.cast(x, dtype) for x in xs]) for f in functions]


def pairs():
    both = [
        ops.add, ops.subtract, ops.multiply, ops.divide, ops.true_divide, ops.divide_no_nan, ops.maximum, ops.minimum, ops.fmax, ops.fmin, ops.mod, ops.fmod,
        ops.floor_divide, ops.arctan2, ops.hypot, ops.logaddexp, ops.logaddexp2, ops.heaviside, ops.equal, ops.not_equal, ops.greater, ops.greater_equal,
        ops.less, ops.less_equal, ops.logical_and, ops.logical_or, ops.logical_xor, ops.isclose, ops.nextafter,
    ]  # fmt: skip
    away_from_zero = np.where(np.abs(wide(5)) < 0.2, np.float32(0.7), wide(5))
    yield many("pairs", both, wide(4), away_from_zero)
    yield many("pairs_broadcast", both, wide(4), away_from_zero[:, :1])
    numbers = [f for f in both if f not in (ops.hypot, ops.heaviside, ops.logaddexp2, ops.nextafter, ops.fmod, ops.fmax, ops.fmin, ops.isclose)]
    yield many("pairs_with_a_number", [lambda x, f=f: f(x, 1.5) for f in numbers] + [lambda x, f=f: f(2, x) for f in numbers], away_from_zero)
    yield many("pairs_with_an_array", [lambda x, f=f: f(x, np.float32([1, -2, 3, 0.5, 2])) for f in both], away_from_zero)
    yield many("operators", [
        lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x / y, lambda x, y: x // y, lambda x, y: x % y, lambda x, y: x**2,
        lambda x, y: abs(x) ** 0.5, lambda x, y: -x, lambda x, y: abs(x), lambda x, y: x > y, lambda x, y: x >= 0, lambda x, y: x < y, lambda x, y: x <= 1,
        lambda x, y: x != y, lambda x, y: 1 - x, lambda x, y: 2 / y, lambda x, y: 2**x, lambda x, y: (x > 0) & (y > 0), lambda x, y: (x > 0) | (y > 0),
        lambda x, y: ~(x > 0), lambda x, y: (x > 0) ^ (y > 0), lambda x, y: ops.cast(x > 0, "float32") * y, lambda x, y: x * np.float32(3), lambda x, y: 3.0 + x,
        lambda x, y: x * True, lambda x, y: 7 // y, lambda x, y: 7 % y,
    ], wide(4), away_from_zero)  # fmt: skip
    yield many("powers", [ops.power, lambda x, y: x**3, lambda x, y: x**-1.5, lambda x, y: ops.power(x, 0.5), lambda x, y: ops.power(2.0, y)], inside(0.3, 3),
               wide(6, scale=1.0))
    yield many("powers_of_negative_numbers", [lambda x: x**2, lambda x: x**3, lambda x: ops.power(x, 2.0)], wide(4))
    yield many("pairs_special", [ops.add, ops.maximum, ops.minimum, ops.fmax, ops.fmin, ops.equal, ops.less, ops.logaddexp, ops.isclose, ops.nextafter,
                                 ops.divide_no_nan, lambda x, y: ops.where(x > y, x, y)], special(), np.roll(special(), 3, axis=2))  # fmt: skip
    yield many("division_by_zero", [ops.floor_divide, ops.mod, ops.divide, lambda x, y: 7 // (0 * y)], wide(4), np.zeros_like(wide(4)))
    integers = [ops.add, ops.subtract, ops.multiply, ops.maximum, ops.minimum, ops.mod, ops.fmod, ops.floor_divide, ops.divide, ops.equal, ops.greater,
                ops.bitwise_and, ops.bitwise_or, ops.bitwise_xor, ops.gcd, ops.lcm]  # fmt: skip
    for dtype in ("int8", "int32", "uint8"):
        nonzero = np.where(whole(dtype, 8) == 0, np.array(3, dtype), whole(dtype, 8))
        yield many(f"pairs_{dtype}", integers, whole(dtype, 7), nonzero)
    yield many("shifts", [ops.left_shift, ops.right_shift, ops.bitwise_left_shift, ops.bitwise_right_shift, lambda x, y: ops.left_shift(x, 2),
                          lambda x, y: ops.right_shift(x, 1)], whole("int32", 7), np.abs(whole("int32", 8)))  # fmt: skip
    yield many("ldexp", [ops.ldexp, lambda x, e: ops.ldexp(x, 3)], wide(4), whole("int32"))
    yield many("pairs_bool", [ops.add, ops.multiply, ops.logical_and, ops.logical_or, ops.logical_xor, ops.bitwise_and, ops.bitwise_or, ops.bitwise_xor,
                              ops.maximum, ops.minimum, ops.equal, ops.divide, ops.floor_divide], whole("bool", 1),
               np.ones((3, 4, 5), bool))  # fmt: skip
    mixed = [lambda x, y: x + y, lambda x, y: x * y, lambda x, y: x / y, ops.maximum, ops.equal, ops.less]
    for left, right in [("bool", "int32"), ("int32", "float32"), ("int8", "uint8"), ("uint8", "float32"), ("bool", "float32"), ("int16", "uint16"),
                        ("uint8", "int32")]:  # fmt: skip
        y = np.where(whole(right, 8) == 0, np.array(3, right), whole(right, 8))
        yield many(f"pairs_{left}_{right}", mixed, whole(left, 7), y)
    for dtype in ("float16", "bfloat16"):
        yield many(f"pairs_{dtype}", half([lambda x, y: x + y, lambda x, y: x * 2.5, lambda x, y: x / 3, lambda x, y: x * y - 1, ops.maximum], dtype) + [
            lambda x, y: ops.cast(x, dtype) * y, lambda x, y: ops.cast(x, "float16") + ops.cast(y, "bfloat16")], wide(4), wide(5), rtol=2e-2, atol=2e-2)  # fmt: skip
    weak = [lambda x: x + 1, lambda x: x * 2, lambda x: x + 0.5, lambda x: x / 2, lambda x: x // 2, lambda x: x > 1.5, lambda x: ops.maximum(x, 2), lambda x: 3 - x,
            lambda x: ops.where(x > 1, x, 0), lambda x: ops.where(x > 1, x, 0.5), lambda x: ops.where(x > 1, 1, 2), lambda x: ops.where(x > 1, 1.0, 2)]  # fmt: skip
    for dtype in INTS[1:]:
        yield many(f"numbers_with_{dtype}", weak, whole(dtype))
    yield many("where", [
        ops.where, lambda c, x, y: ops.where(c, x, 0.0), lambda c, x, y: ops.where(x > y, x, y), lambda c, x, y: ops.where(c, 1.0, y),
        lambda c, x, y: ops.where(x, x, y), lambda c, x, y: ops.select([x > 1, y > 0], [x, y], 0.5), lambda c, x, y: ops.select([c, x > 0], [x, x * 2]),
    ], whole("bool"), wide(4), wide(5))  # fmt: skip
    yield many("allclose", [ops.allclose, lambda x, y: ops.allclose(x, x), lambda x, y: ops.isclose(x, y, 0.5, 0.1), lambda x, y: ops.isclose(x, x, equal_nan=True)],
               special(), special() + np.float32(1e-3), single=False)


def reductions():
    plain = [ops.sum, ops.mean, ops.max, ops.min, ops.prod, ops.std, ops.var, ops.all, ops.any, ops.amax, ops.amin, ops.ptp, ops.median, ops.norm, ops.logsumexp]
    nan = [ops.nansum, ops.nanmean, ops.nanmax, ops.nanmin, ops.nanprod, ops.nanstd, ops.nanvar, ops.nanmedian]
    x = wide(scale=1.0)
    kinds = [dict(axis=1), dict(axis=-1), dict(axis=-1, keepdims=True), dict(axis=(1, 2)), dict(axis=(1, 2), keepdims=True), dict(axis=(-1, 1))]
    no_norm = [f for f in plain if f is not ops.norm]
    yield many("reductions", [lambda x, f=f, k=k: f(x, **k) for f in no_norm for k in kinds if not (f is ops.ptp and k.get("axis") == (-1, 1))], x)
    yield many("norms", [lambda x, k=k: ops.norm(x, **k) for k in kinds] + [lambda x, o=o: ops.norm(x, o, axis=-1) for o in (1, 2, 3, 0.5, np.inf, -np.inf, 0)]
               + [lambda x, o=o: ops.norm(x, o, axis=(1, 2), keepdims=True) for o in ("fro", 1, -1, np.inf, -np.inf)], x, oracle="tensorflow")  # fmt: skip
    yield many("reductions_to_a_scalar", [lambda x, f=f: f(x) for f in no_norm] + [lambda x, f=f: f(x, keepdims=True) for f in no_norm], x, single=False)
    yield many("reductions_of_the_batch", [lambda x, f=f: f(x, axis=0) for f in no_norm], x, single=False)
    yield many("nan_reductions", [lambda x, f=f, k=k: f(x, **k) for f in nan for k in kinds[:3]], special())
    yield many("reductions_of_nan", [lambda x, f=f: f(x, axis=-1) for f in (ops.sum, ops.mean, ops.max, ops.min, ops.median, ops.argmax, ops.argmin)], special())
    yield many("arg_extremes", [lambda x, f=f, k=k: f(x, **k) for f in (ops.argmax, ops.argmin, ops.nanargmax, ops.nanargmin)
                                for k in (dict(axis=1), dict(axis=-1), dict(axis=-1, keepdims=True))], x)  # fmt: skip
    yield many("arg_extremes_of_all", [ops.argmax, ops.argmin, lambda x: ops.argmax(x, keepdims=True)], x, single=False)
    yield many("nan_arg_extremes", [lambda x, f=f: f(x, axis=-1) for f in (ops.nanargmax, ops.nanargmin)], special())
    for dtype in INTS:
        kinds_of = [ops.sum, ops.mean, ops.max, ops.min, ops.prod, ops.std, ops.var, ops.median, ops.argmax, ops.count_nonzero, ops.all, ops.any, ops.cumsum,
                    ops.cumprod]  # fmt: skip
        yield many(f"reductions_{dtype}", [lambda x, f=f: f(x, axis=-1) for f in kinds_of], whole(dtype))
    yield many("cumulative", [lambda x, f=f, a=a: f(x, axis=a) for f in (ops.cumsum, ops.cumprod, ops.nancumsum, ops.nancumprod) for a in (1, -1)]
               + [lambda x: ops.cumsum(ops.cast(x, "int32"), axis=1, dtype="float32")], x)  # fmt: skip
    yield many("cumulative_of_all", [ops.cumsum, ops.cumprod], x, single=False)
    yield many("nan_cumulative", [lambda x, f=f: f(x, axis=-1) for f in (ops.nancumsum, ops.nancumprod)], np.where(np.isinf(special()), 1, special()))
    yield many("differences", [ops.diff, lambda x: ops.diff(x, n=2), lambda x: ops.diff(x, axis=1), lambda x: ops.diff(x > 0), ops.trapezoid,
                               lambda x: ops.trapezoid(x, dx=0.5, axis=1), lambda x: ops.trapezoid(x, x=[0.0, 1.0, 3.0, 3.5, 9.0])], x)  # fmt: skip
    yield many("extremes_with_initial", [lambda x: ops.max(x, axis=-1, initial=0.5), lambda x: ops.min(x, axis=-1, initial=-0.5)], x)
    yield many("averages", [
        lambda x: ops.average(x, axis=1), lambda x: ops.average(x, axis=-1, weights=np.float32([1, 2, 3, 4, 0.5])), lambda x: ops.average(x, axis=1, weights=x * x + 1),
    ], x)  # fmt: skip
    yield many("prod_in_another_dtype", [lambda x: ops.prod(x, axis=-1, dtype="float32")], whole("int32"))
    yield many("reductions_float16", half([lambda x: ops.sum(x, -1), lambda x: ops.mean(x, -1), lambda x: ops.std(x, 1), lambda x: ops.logsumexp(x, -1),
                                           lambda x: ops.var(x, 1)], "float16"), x, rtol=1e-2, atol=1e-2)  # fmt: skip


def ordering():
    x = wide(9, (3, 4, 6))
    qs = [0.3, [0.1, 0.5, 0.9], np.float32([0.25, 1.0])]
    yield many("quantiles", [lambda x, q=q, k=k: ops.quantile(x, q, **k) for q in qs for k in (dict(axis=-1), dict(axis=1, keepdims=True), dict(axis=(1, 2)))],
               x, single=False, oracle="tensorflow")
    yield many("quantiles_are_linear_in_a_model", [lambda x, m=m: ops.quantile(x, 0.4, axis=-1, method=m) for m in ("lower", "nearest")], x, oracle="tensorflow")
    methods = ("linear", "lower", "higher", "midpoint", "nearest")
    yield many("percentiles", [lambda x, m=m: ops.percentile(x, 37.0, axis=-1, method=m) for m in methods], x)
    yield many("nan_quantiles", [lambda x, m=m, f=f, q=q: f(x, q, axis=-1, method=m) for m in methods for f, q in ((ops.nanquantile, 0.4), (ops.nanpercentile, 37.0))],
               np.where(np.isinf(special()), 1, special()))
    yield many("quantiles_of_nan", [lambda x: ops.percentile(x, 50, axis=-1), lambda x: ops.median(x, axis=1)], np.where(np.isinf(special()), 1, special()))
    yield many("sorting", [ops.sort, ops.argsort, lambda x: ops.sort(x, axis=1), lambda x: ops.argsort(x, axis=1), lambda x: ops.top_k(x, 3), lambda x: ops.top_k(x, 1)], x)
    yield many("sorting_integers", [ops.sort, ops.argsort, lambda x: ops.top_k(x, 4)], whole("int32"))
    yield many("sorting_all", [lambda x: ops.sort(x, axis=None), lambda x: ops.argsort(x, axis=None)], x, single=False)
    yield many("in_top_k", [lambda t, p, k=k: ops.in_top_k(t, p, k) for k in (1, 2, 5)], np.int32([0, 3, 2]), wide(9, (3, 6)))
    bins = np.float32([-2, -0.5, 0, 1, 2.5])
    yield many("places", [
        lambda x: ops.searchsorted(bins, x), lambda x: ops.searchsorted(bins, x, side="right"), lambda x: ops.digitize(x, bins), lambda x: ops.digitize(x, bins[::-1].copy()),
        lambda x: ops.digitize(x, bins[:1]), lambda x: ops.isin(x, np.float32([0.0, 1.0])), lambda x: ops.isin(x, np.float32([0.0]), invert=True),
    ], x)  # fmt: skip
    yield many("unique", [lambda x: ops.unique(x, size=3)], ((4,), "int32"), refused="Unique")
    yield many("nonzero", [lambda x: ops.nonzero(x)], ((4,), "int32"), refused="Nonzero")
    yield many("bincount", [lambda x: ops.bincount(x, minlength=5)], ((4,), "int32"), refused="Bincount")
    yield many("argpartition", [lambda x: ops.argpartition(x, 2)], ((4,), "float32"), refused="Argpartition")


def shapes():
    x = wide(0, (3, 4, 6))
    yield many("reshaping", [
        lambda x: ops.reshape(x, (-1, 24)), lambda x: ops.reshape(x, (-1, 2, 12)), lambda x: ops.reshape(x, (-1, 6, 4, 1)), lambda x: ops.transpose(x, (0, 2, 1)),
        lambda x: ops.swapaxes(x, 1, 2), lambda x: ops.swapaxes(x, -1, -2), lambda x: ops.moveaxis(x, 1, -1), lambda x: ops.moveaxis(x, (1, 2), (2, 1)),
        lambda x: ops.expand_dims(x, 1), lambda x: ops.expand_dims(x, -1), lambda x: ops.expand_dims(x, (1, -1)), lambda x: ops.squeeze(ops.expand_dims(x, 2), 2),
        lambda x: ops.squeeze(ops.expand_dims(x, (1, -1)), (1, -1)), lambda x: ops.rot90(x, axes=(1, 2)), lambda x: ops.rot90(x, k=2, axes=(1, 2)),
        lambda x: ops.rot90(x, k=-1, axes=(1, 2)), lambda x: ops.flip(x, axis=1), lambda x: ops.flip(x, axis=(1, 2)), lambda x: ops.fliplr(x),
    ], x)  # fmt: skip
    yield many("reshaping_the_batch", [ops.ravel, ops.transpose, ops.flip, ops.flipud, lambda x: ops.squeeze(ops.expand_dims(x, 0)),
                                       lambda x: ops.reshape(x, (-1,)), lambda x: ops.rot90(x), lambda x: ops.moveaxis(x, 0, -1)], x, single=False)  # fmt: skip
    yield many("joining", [
        lambda x, y: ops.concatenate([x, y], axis=1), lambda x, y: ops.concatenate([x, y, x], axis=-2), lambda x, y: ops.stack([x, x * 2], axis=1),
        lambda x, y: ops.stack([x, x], axis=-1), lambda x, y: ops.append(x, y, axis=1), lambda x, y: ops.hstack([x, y]), lambda x, y: ops.dstack([x, x]),
        lambda x, y: ops.concatenate([x, ops.cast(y, "int32")], axis=1),
    ], x, wide(1, (3, 2, 6)))  # fmt: skip
    yield many("joining_batches", [lambda x: ops.vstack([x, x]), lambda x: ops.concatenate([x, x], axis=0), lambda x: ops.append(x, x), lambda x: ops.stack([x, x])], x,
               single=False)
    yield many("splitting", [
        lambda x: ops.split(x, 2, axis=1), lambda x: ops.split(x, [1, 3], axis=-1), lambda x: ops.split(x, 3, axis=-1)[1], lambda x: ops.array_split(x, 4, axis=2),
        lambda x: ops.hsplit(x, 2), lambda x: ops.dsplit(x, [2, 5]), lambda x: ops.unstack(x, axis=1), lambda x: ops.unstack(x, axis=-1)[2],
    ], x)  # fmt: skip
    yield many("repeating", [
        lambda x: ops.tile(x, (1, 2, 1)), lambda x: ops.tile(x, (1, 1, 3)), lambda x: ops.repeat(x, 3, axis=1), lambda x: ops.repeat(x, 2, axis=-1),
        lambda x: ops.roll(x, 2, axis=1), lambda x: ops.roll(x, -1, axis=-1), lambda x: ops.roll(x, (1, 2), axis=(1, 2)),
        lambda x: ops.broadcast_to(ops.expand_dims(x, 1)[:, :, :1], (3, 5, 4, 6)),
    ], x, single=False)  # fmt: skip
    yield many("repeating_by_element", [lambda x: ops.repeat(x, [1, 2, 0, 3], axis=1)], x, oracle="tensorflow")
    yield many("repeating_all", [lambda x: ops.repeat(x, 2), lambda x: ops.roll(x, 5), lambda x: ops.tile(x, 2), lambda x: ops.tile(x, (2, 1, 1, 2))], x, single=False)
    yield many("padding", [lambda x, m=m: ops.pad(x, ((0, 0), (1, 2), (3, 0)), mode=m) for m in ("constant", "edge", "reflect", "symmetric", "wrap")]
               + [lambda x: ops.pad(x, ((0, 0), (1, 0), (0, 2)), constant_values=1.5)], x)  # fmt: skip
    yield many("padding_all", [lambda x: ops.pad(x, 1), lambda x: ops.pad(x, (1, 2))], x, single=False)
    yield many("diagonals", [
        lambda x, k=k: f(x, k) for f in (ops.tril, ops.triu) for k in (0, 1, -2)
    ] + [lambda x: ops.diagonal(x, axis1=1, axis2=2), lambda x: ops.diagonal(x, 1, axis1=1, axis2=2), lambda x: ops.diagonal(x, -2, axis1=2, axis2=1),
         lambda x: ops.trace(x, axis1=1, axis2=2), lambda x: ops.trace(x, 2, axis1=1, axis2=2), lambda x: ops.tril(x > 0)], x)  # fmt: skip
    yield many("diagonal_matrices", [ops.diag, lambda x: ops.diag(x, 1), ops.diagflat, lambda x: ops.diagflat(x, -2), lambda x: ops.diag(ops.diag(x), 0)],
               np.float32([1, 2, 3]), single=False)
    yield many("traces_of_integers", [lambda x: ops.trace(x, axis1=1, axis2=2), lambda x: ops.diagonal(x, axis1=1, axis2=2)], whole("int8"))
    yield many("meshgrids", [lambda x, y: ops.meshgrid(x, y), lambda x, y: ops.meshgrid(x, y, indexing="ij"), lambda x, y: ops.meshgrid(x, y, x)],
               np.float32([1, 2, 3]), np.float32([4, 5, 6]), single=False)


def indexing():
    x = wide(0, (3, 4, 6))
    i = np.int32([[0, 2], [5, 1], [3, 3]])
    yield many("slices", [
        lambda x: x[:, 0], lambda x: x[:, -1], lambda x: x[:, 1:3], lambda x: x[:, ::2], lambda x: x[:, ::-1], lambda x: x[..., 0], lambda x: x[..., -2:],
        lambda x: x[:, None], lambda x: x[:, :, None, 1:], lambda x: x[:, 1, 2:5:2], lambda x: x[:, 3:0:-1], lambda x: x[..., ::-2, None], lambda x: x[:, -3:-1, :],
        lambda x: x[:, 1:100], lambda x: x[:, 2, ...], lambda x: x[..., None], lambda x: x[:, :, 5:1:-3], lambda x: x[:, :-1] - x[:, 1:],
    ], x)  # fmt: skip
    yield many("slices_of_the_batch", [lambda x: x[0], lambda x: x[-1, 1], lambda x: x[::2, 0], lambda x: x[None, 1:], lambda x: x[::-1, ...]], x, single=False)
    yield many("take", [
        lambda x, i: ops.take(x, [0, 2], axis=1), lambda x, i: ops.take(x, 1, axis=1), lambda x, i: ops.take(x, np.int32([[0, -1], [2, 3]]), axis=-1),
        lambda x, i: ops.take(np.arange(12, dtype="float32").reshape(6, 2), i, axis=0), lambda x, i: ops.take_along_axis(x, ops.expand_dims(i, 1), axis=2),
        lambda x, i: ops.take_along_axis(x, ops.argsort(x, axis=-1), axis=-1), lambda x, i: ops.one_hot(i, 6), lambda x, i: ops.one_hot(i, 6, axis=1),
        lambda x, i: ops.one_hot(i, 4, dtype="int32"), lambda x, i: ops.multi_hot(i, 6), lambda x, i: ops.multi_hot(i, 6, dtype="int32"),
    ], x, i)  # fmt: skip
    yield many("take_from_all", [lambda x: ops.take(x, [0, 5, 7]), lambda x: ops.take(x, np.int32([[0, 1], [2, 71]]))], x, single=False)
    yield many("slice", [
        lambda x: ops.slice(x, (0, 1, 2), (-1, 2, 3)), lambda x: ops.slice(x, [0, 0, 1], [-1, -1, -1]),
        lambda x: ops.slice_update(x, (0, 1, 2), ops.ones_like(x[:, :2, :3])),
    ], x)  # fmt: skip
    yield many("slice_at_a_place_from_the_data", [lambda x: ops.slice(x, (0, ops.argmin(ops.sum(x, (0, 2))), 1), (-1, 1, 3))], x, single=False)
    rows = np.int32([[0, 1, 2], [2, 0, 5], [-1, 3, 0]])
    yield many("scatter", [
        lambda x: ops.scatter_update(x, rows, np.float32([10, 20, 30])), lambda x: ops.scatter_update(x, rows[:, :1], ops.ones((3, 4, 6))),
        lambda x: ops.scatter_update(x, rows[:, :2], ops.ones((3, 6))),
        *[lambda x, r=r: ops.scatter_update(x, rows[[0, 0, 1]], np.float32([10, 0.25, -3]), reduction=r) for r in ("add", "max", "min", "mul")],
    ], x, single=False)  # fmt: skip
    yield many("scatter_into_zeros", [lambda i, v: ops.scatter(i, v, (6, 5))], np.int32([[0, 1], [5, 4], [0, 1]]), np.float32([1, 2, 3]), single=False)
    segments = np.int32([0, 2, 0])
    yield many("segments", [lambda x, s, f=f: f(x, s, num_segments=4) for f in (ops.segment_sum, ops.segment_max)]
               + [lambda x, s: ops.segment_sum(x, s, num_segments=3, sorted=False)], x, segments, single=False)  # fmt: skip
    yield many("unravel_index", [lambda i: ops.unravel_index(i, (2, 3, 4))], np.int32([[0, 23], [5, 12], [-1, 7]]))
    yield many("where_alone", [lambda x: ops.where(x)], ((4,), "int32"), refused="Where")


def creation():
    x = wide(0, (3, 4))
    yield many("like", [
        ops.zeros_like, ops.ones_like, lambda x: ops.zeros_like(x, dtype="int32"), lambda x: ops.full_like(x, 2.5), lambda x: ops.full_like(x, 3, dtype="int32"),
        lambda x: ops.ones_like(x > 0), lambda x: ops.size(x) * x, lambda x: ops.array(x, dtype="int32"),
    ], x, single=False)  # fmt: skip
    yield many("spaces", [
        lambda x, y: ops.linspace(x, y, 5), lambda x, y: ops.linspace(x, y, 4, endpoint=False), lambda x, y: ops.linspace(x, y, 3, axis=-1),
        lambda x, y: ops.linspace(x, 2.0, 3, axis=1), lambda x, y: ops.logspace(x, y, 4), lambda x, y: ops.logspace(x, y, 4, base=2), lambda x, y: ops.linspace(x, y, 1),
    ], inside(0, 1, (3, 4)), inside(1, 2, (3, 4)), single=False)  # fmt: skip
    yield many("geomspaces", [lambda x, y: ops.geomspace(x, y, 5), lambda x, y: ops.geomspace(-x, -y, 3, axis=1)], inside(1, 2, (3, 4)), inside(3, 9, (3, 4)),
               single=False)
    yield many("vander", [ops.vander, lambda x: ops.vander(x, 4), lambda x: ops.vander(x, 3, increasing=True)], np.float32([1.5, 2, -3]), single=False)
    yield many("full", [lambda x: ops.full((3, 2), x)], np.float32([[1, 2]] * 3), single=False)


def products():
    x, y = wide(0, (3, 4, 5), 1.0), wide(1, (3, 5, 6), 1.0)
    kernel = wide(2, (5, 7), 1.0)
    yield many("matmul", [
        ops.matmul, lambda x, y: x @ y, lambda x, y: ops.matmul(x, kernel), lambda x, y: x @ kernel[:, 0], lambda x, y: ops.matmul(x[:, None], y[:, None]),
        lambda x, y: ops.matmul(x[:, :1], y), lambda x, y: ops.dot(x, kernel), lambda x, y: ops.inner(x, kernel.T.copy()), lambda x, y: ops.tensordot(x, kernel, 1),
        lambda x, y: ops.tensordot(x, kernel, [[2], [0]]), lambda x, y: ops.tensordot(x, wide(3, (4, 5, 2)), [[1, 2], [0, 1]]), lambda x, y: ops.tensordot(x, wide(3, (4, 5)), 2),
        lambda x, y: ops.einsum("bij,bjk->bik", x, y), lambda x, y: ops.einsum("bij,jk->bki", x, kernel), lambda x, y: ops.einsum("bij->bji", x),
        lambda x, y: ops.einsum("bij->b", x), lambda x, y: ops.einsum("...ij,...jk->...ik", x, y), lambda x, y: ops.einsum("bij,bij->bi", x, x),
        lambda x, y: ops.einsum("bij,bjk,kl->bil", x, y, wide(4, (6, 2))), lambda x, y: ops.dot(x, 2.0), lambda x, y: ops.cdist(x, ops.transpose(y, (0, 2, 1))),
    ], x, y)  # fmt: skip
    yield many("products_of_batches", [
        lambda x: ops.outer(x, x), lambda x: ops.vdot(x, x), lambda x: ops.inner(x, x), lambda x: ops.kron(x, x), lambda x: ops.kron(x, np.float32([[1, 2]])),
        lambda x: ops.dot(x, ops.transpose(x)), lambda x: ops.corrcoef(x), lambda x: ops.einsum("ij,kj->ik", x, x), lambda x: ops.einsum("ii->i", ops.matmul(x, ops.transpose(x))),
    ], wide(0, (3, 5), 1.0), single=False)  # fmt: skip
    yield many("cross", [
        lambda x, y, z: ops.cross(x, y), lambda x, y, z: ops.cross(x, z), lambda x, y, z: ops.cross(z, z * 2 + 1), lambda x, y, z: ops.cross(x, y, axis=2),
        lambda x, y, z: ops.cross(ops.transpose(x, (0, 2, 1)), y, axisa=1), lambda x, y, z: ops.cross(x, y, axisc=1),
    ], wide(0, (3, 4, 3)), wide(1, (3, 4, 3)), wide(2, (3, 4, 2)))  # fmt: skip
    yield many("correlate", [lambda x, m=m: ops.correlate(x, np.float32([1, 2]), mode=m) for m in ("valid", "same", "full")],
               np.float32([1, 3, 2]), single=False, fixed_batch=True)
    yield many("correlate_with_a_longer_one", [lambda x, m=m: ops.correlate(x, np.float32([1, 2, 3, 4, 7]), mode=m) for m in ("valid", "same", "full")],
               np.float32([1, 3, 2]), single=False, fixed_batch=True)
    yield many("products_of_integers", [lambda x: ops.matmul(x, np.ones((5, 2), "int8")), lambda x: ops.einsum("bij,jk->bik", x, np.ones((5, 2), "int8")),
                                        lambda x: ops.dot(x, np.ones((5, 2), "int8"))], whole("int8"))  # fmt: skip
    yield many("products_float16", half([lambda x, y: ops.matmul(x, y), lambda x, y: ops.einsum("bij,bjk->bik", x, y)], "float16"), x, y, rtol=1e-2, atol=1e-2)


def activations():
    x = wide(scale=2.0)
    plain = [
        ops.relu, ops.relu6, ops.sigmoid, ops.softplus, ops.softsign, ops.silu, ops.swish, ops.log_sigmoid, ops.leaky_relu, ops.hard_sigmoid, ops.hard_silu,
        ops.hard_swish, ops.elu, ops.selu, ops.gelu, ops.celu, ops.hard_tanh, ops.tanh_shrink, ops.softmax, ops.log_softmax, ops.sparsemax, ops.hard_shrink,
        ops.soft_shrink, ops.squareplus, ops.sparse_plus, ops.sparse_sigmoid,
    ]  # fmt: skip
    yield many("activations", plain, x)
    yield many("activations_with_options", [
        lambda x: ops.leaky_relu(x, 0.1), lambda x: ops.elu(x, 0.5), lambda x: ops.celu(x, 2.0), lambda x: ops.gelu(x, approximate=False), lambda x: ops.softmax(x, axis=1),
        lambda x: ops.log_softmax(x, axis=1), lambda x: ops.sparsemax(x, axis=1), lambda x: ops.hard_shrink(x, 1.0), lambda x: ops.soft_shrink(x, 0.25),
        lambda x: ops.squareplus(x, 2), lambda x: ops.threshold(x, 0.5, -1.0), lambda x: ops.glu(x, axis=1), lambda x: ops.softmax(x, axis=(1, 2)),
    ], x)  # fmt: skip
    names = ["relu", "relu6", "elu", "selu", "celu", "gelu", "silu", "softplus", "softsign", "tanh", "sigmoid", "exponential", "hard_sigmoid", "hard_tanh",
             "hard_shrink", "soft_shrink", "tanh_shrink", "sparse_plus", "sparse_sigmoid", "squareplus", "leaky_relu", "log_sigmoid", "log_softmax", "softmax", "linear"]  # fmt: skip
    yield many("activation_functions_on_tensors", [keras.activations.get(name) for name in names], x)
    yield many("relu_with_options", [
        lambda x: keras.activations.relu(x, negative_slope=0.1), lambda x: keras.activations.relu(x, max_value=1.5), lambda x: keras.activations.relu(x, threshold=0.5),
        lambda x: keras.activations.relu(x, negative_slope=0.2, max_value=2.0, threshold=0.25), lambda x: keras.activations.relu(x, max_value=6),
    ], x)  # fmt: skip
    yield many("activations_bfloat16", half([ops.relu, ops.sigmoid, ops.gelu, ops.softmax, ops.silu, ops.elu], "bfloat16"), x, rtol=4e-2, atol=4e-2)
    yield many("relu_of_integers", [ops.relu], whole("int32"))


def normalization():
    x = wide(scale=2.0)
    gamma, beta = np.float32([1, 0.5, 2, -1, 1.5]), np.float32([0.1, 0.2, 0, -0.5, 1])
    yield many("normalization", [
        lambda x: ops.normalize(x), lambda x: ops.normalize(x, axis=1), lambda x: ops.normalize(x, axis=-1, order=2, epsilon=0.5), lambda x: ops.moments(x, axes=[1]),
        lambda x: ops.moments(x, axes=[1, 2], keepdims=True), lambda x: ops.layer_normalization(x, gamma, beta), lambda x: ops.layer_normalization(x, gamma, beta, axis=-1, epsilon=0.1),
        lambda x: ops.layer_normalization(x, np.ones((4, 5), "float32") * 2, np.ones((4, 5), "float32"), axis=(1, 2)), lambda x: ops.layer_normalization(x, gamma, rms_scaling=True),
        lambda x: ops.rms_normalization(x), lambda x: ops.rms_normalization(x, gamma), lambda x: ops.rms_normalization(x, gamma, epsilon=0.5),
        lambda x: ops.batch_normalization(x, beta, gamma * gamma, axis=-1), lambda x: ops.batch_normalization(x, beta, gamma * gamma, axis=-1, offset=beta, scale=gamma, epsilon=0.1),
        lambda x: ops.batch_normalization(x, beta[:4], gamma[:4] ** 2, axis=1, scale=gamma[:4]),
    ], x)  # fmt: skip
    yield many("normalization_of_other_orders", [lambda x: ops.normalize(x, order=1), lambda x: ops.normalize(x, axis=1, order=3)], x, oracle="tensorflow")
    yield many("moments_of_the_batch", [lambda x: ops.moments(x, axes=[0]), lambda x: ops.moments(x, axes=[0, 1, 2])], x, single=False)
    q, k, v = wide(0, (3, 4, 6, 5), 1.0), wide(1, (3, 7, 6, 5), 1.0), wide(2, (3, 7, 6, 5), 1.0)
    mask = np.random.default_rng(0).random((3, 1, 4, 7)) < 0.7
    yield many("dot_product_attention", [
        lambda q, k, v, m: ops.dot_product_attention(q, k, v), lambda q, k, v, m: ops.dot_product_attention(q, k, v, is_causal=True),
        lambda q, k, v, m: ops.dot_product_attention(q, k, v, mask=m), lambda q, k, v, m: ops.dot_product_attention(q, k, v, mask=m, is_causal=True, scale=0.3),
        lambda q, k, v, m: ops.dot_product_attention(q, k, v, bias=np.ones((1, 6, 4, 7), "float32") * 0.1), lambda q, k, v, m: ops.dot_product_attention(q, k[:, :, :3], v[:, :, :3]),
        lambda q, k, v, m: ops.dot_product_attention(q, k[:, :, :1], v[:, :, :1]),
    ], q, k, v, mask)  # fmt: skip


def losses():
    random = np.random.default_rng(0)
    probabilities = random.dirichlet(np.ones(5), (3, 4)).astype("float32")
    target = np.eye(5, dtype="float32")[random.integers(0, 5, (3, 4))]
    yield many("losses", [
        ops.categorical_crossentropy, lambda t, o: ops.categorical_crossentropy(t, o * 4, from_logits=True), lambda t, o: ops.categorical_crossentropy(t, o, axis=1),
        ops.binary_crossentropy, lambda t, o: ops.binary_crossentropy(t, o * 8 - 3, from_logits=True),
        lambda t, o: ops.sparse_categorical_crossentropy(ops.argmax(t, -1), o), lambda t, o: ops.sparse_categorical_crossentropy(ops.argmax(t, -1), o * 4, from_logits=True),
        lambda t, o: ops.sparse_categorical_crossentropy(ops.argmax(t, -1, keepdims=True), o),
    ], target, probabilities)  # fmt: skip
    yield many("psnr", [lambda a, b: ops.psnr(a, b, 2.0)], target, probabilities, single=False)
    yield many("ctc_loss", [lambda o: ops.ctc_loss(np.int32([[1, 2]] * 3), o, np.int32([2] * 3), np.int32([4] * 3))], wide(0, (3, 4, 5)), fixed_batch=True,
               refused="CTCLoss")


def windows():
    x = wide(0, (2, 7, 8, 4), 1.0)
    first = np.moveaxis(x, -1, 1).copy()
    kernel = wide(1, (3, 2, 4, 5), 0.5)
    deep = wide(2, (3, 2, 4, 2), 0.5)
    options = [dict(), dict(padding="same"), dict(strides=2, padding="same"), dict(strides=(2, 1)), dict(dilation_rate=2)]
    yield many("convolutions", [lambda x, o=o: ops.conv(x, kernel, **o) for o in options] + [lambda x: ops.conv(x, kernel, padding="SAME")]
               + [lambda x, o=o: ops.depthwise_conv(x, deep, **o) for o in options[:3]]
               + [lambda x, o=o: ops.separable_conv(x, deep, wide(3, (1, 1, 8, 3)), **o) for o in options[:3]], x)  # fmt: skip
    yield many("convolutions_channels_first", [lambda x, o=o: ops.conv(x, kernel, data_format="channels_first", **o) for o in options[:3]]
               + [lambda x: ops.depthwise_conv(x, deep, data_format="channels_first")], first)  # fmt: skip
    yield many("convolutions_1d", [lambda x: ops.conv(x, wide(1, (3, 4, 5))), lambda x: ops.conv(x, wide(1, (3, 4, 5)), strides=2, padding="same"),
                                   lambda x: ops.depthwise_conv(x, wide(1, (3, 4, 2)))], x[:, 0])  # fmt: skip
    yield many("convolution_with_a_kernel_from_the_data", [lambda x: ops.conv(x, ops.reshape(ops.mean(x, (0, 2)), (7, 1, 4, 1)))], x, single=False)
    pools = [dict(pool_size=2, strides=2), dict(pool_size=3, strides=1, padding="same"), dict(pool_size=3, strides=2, padding="same")]
    pool = (ops.max_pool, ops.average_pool)
    yield many("pools", [lambda x, f=f, o=o: f(x, **o) for f in pool for o in pools], x)
    yield many("pools_by_their_size", [lambda x, f=f, o=o: f(x, **o) for f in pool for o in (dict(pool_size=2), dict(pool_size=(3, 2), padding="same"))], x,
               oracle="tensorflow")
    yield many("pools_channels_first", [lambda x, f=f: f(x, 2, 2, data_format="channels_first") for f in pool], first)
    yield many("pools_1d", [lambda x, f=f: f(x, 2, 2, padding="same") for f in pool], x[:, 0])
    adaptive = (ops.adaptive_average_pool, ops.adaptive_max_pool)
    yield many("adaptive_pools", [lambda x, f=f, s=s: f(x, s, data_format="channels_last") for f in adaptive for s in ((3, 4), (1, 1), (4, 5))], x)
    yield many("adaptive_pools_channels_first", [lambda x, f=f: f(x, (3, 2), data_format="channels_first") for f in adaptive], first)
    yield many("adaptive_pools_1d", [lambda x, f=f: f(x, (3,), data_format="channels_last") for f in adaptive], x[:, 0])
    even = wide(3, (2, 6, 8, 12))
    yield many("blocks", [lambda x: ops.depth_to_space(x, 2), lambda x: ops.space_to_depth(x, 2)], even)
    yield many("blocks_channels_first", [lambda x: ops.depth_to_space(x, 2, data_format="channels_first"), lambda x: ops.space_to_depth(x, 2, data_format="channels_first")],
               wide(3, (2, 12, 6, 8)))
    yield many("patches", [
        lambda x: ops.image.extract_patches(x, 2), lambda x: ops.image.extract_patches(x, (3, 2), strides=(1, 2)), lambda x: ops.image.extract_patches(x, 3, padding="same"),
        lambda x: ops.image.extract_patches(x, 2, strides=1, dilation_rate=2), lambda x: ops.image.extract_patches(x, (3, 3), strides=2, padding="same"),
    ], x)  # fmt: skip
    yield many("patches_channels_first", [lambda x: ops.image.extract_patches(x, 2, data_format="channels_first")], first)
    yield many("patches_3d", [lambda x: ops.image.extract_patches(x, (2, 2, 3))], wide(0, (2, 4, 5, 6, 2)))
    unfolds = [dict(kernel_size=2), dict(kernel_size=(3, 2), stride=2), dict(kernel_size=2, dilation=2, padding=1), dict(kernel_size=(2, 3), padding=(1, 0), stride=(1, 2))]
    yield many("unfold", [lambda x, o=o: ops.unfold(x, **o) for o in unfolds], first)
    yield many("fold", [lambda x: ops.fold(x, (4, 5), 2), lambda x: ops.fold(ops.tile(x, (1, 1, 2))[:, :, :12], (6, 5), 2, padding=0, stride=(2, 1))],
               wide(0, (2, 8, 12)))
    yield many("fold_with_padding_and_dilation", [lambda x: ops.fold(x, (4, 4), 3, padding=1), lambda x: ops.fold(x[:, :8], (6, 6), 2, dilation=2)], wide(0, (2, 18, 16)))
    yield many("sequences", [lambda x: ops.extract_sequences(x, 3, 1), lambda x: ops.extract_sequences(x, 4, 2)], wide(0, (2, 3, 9)))
    yield many("transposed_convolution", [lambda x: ops.conv_transpose(x, wide(1, (2, 2, 3, 4)))], ((4, 4, 4), "float32"), refused="ConvTranspose")


def images():
    x = inside(0, 1, (2, 6, 8, 3))
    first = np.moveaxis(x, -1, 1).copy()
    image = ops.image
    sizes = [dict(size=(4, 5)), dict(size=(9, 12), interpolation="nearest"), dict(size=(9, 5), interpolation="bicubic"), dict(size=(4, 4), antialias=True),
             dict(size=(3, 9), interpolation="lanczos3", antialias=True), dict(size=(4, 4), crop_to_aspect_ratio=True), dict(size=(4, 4), pad_to_aspect_ratio=True),
             dict(size=(5, 3), pad_to_aspect_ratio=True, fill_value=0.5)]  # fmt: skip
    yield many("resize", [lambda x, o=o: image.resize(x, **o) for o in sizes], x)
    yield many("resize_channels_first", [lambda x: image.resize(x, (4, 5), data_format="channels_first")], first)
    yield many("resize_bytes", [lambda x: image.resize(x, (4, 5)), lambda x: image.resize(x, (3, 3), interpolation="nearest")], (x * 255).astype("uint8"), atol=1)
    yield many("colours", [image.rgb_to_grayscale, image.rgb_to_hsv, lambda x: image.hsv_to_rgb(x * 1.5 - 0.2), lambda x: image.rgb_to_hsv(ops.round(x))], x)
    yield many("colours_channels_first", [lambda x, f=f: f(x, data_format="channels_first") for f in (image.rgb_to_grayscale, image.rgb_to_hsv, image.hsv_to_rgb)], first)
    yield many("gray_of_bytes", [image.rgb_to_grayscale], (x * 255).astype("uint8"), atol=1)
    yield many("borders", [
        lambda x: image.pad_images(x, 1, 2, 3, 0), lambda x: image.pad_images(x, top_padding=1, left_padding=0, target_height=9, target_width=10),
        lambda x: image.pad_images(x, bottom_padding=2, right_padding=1, target_height=9, target_width=9), lambda x: image.crop_images(x, 1, 2, 1, 0),
        lambda x: image.crop_images(x, top_cropping=1, left_cropping=2, target_height=3, target_width=4),
        lambda x: image.crop_images(x, bottom_cropping=1, right_cropping=2, target_height=3, target_width=4),
    ], x)  # fmt: skip
    yield many("filters", [image.gaussian_blur, lambda x: image.gaussian_blur(x, (5, 3), (1.5, 0.5)), image.sobel_edges], x)
    yield many("filters_channels_first", [lambda x: image.gaussian_blur(x, data_format="channels_first"), lambda x: image.sobel_edges(x, data_format="channels_first")], first)
    large = inside(0, 1, (2, 13, 14, 2))
    yield many("ssim", [lambda x: image.ssim(x, x * 0.9), lambda x: image.ssim(x, ops.flip(x, 1), max_val=2.0, filter_size=5, filter_sigma=1.0)], large)
    turn = np.float32([0.9, -0.3, 1.5, 0.2, 1.1, -0.7, 0, 0])
    modes = ("constant", "nearest", "wrap", "mirror", "reflect")
    yield many("affine_transforms", [lambda x, m=m, i=i: image.affine_transform(x, x[:, 0, 0, :1] * 0 + turn, interpolation=i, fill_mode=m, fill_value=0.25)
                                     for m in modes for i in ("bilinear", "nearest")], x)  # fmt: skip
    yield many("affine_transform_by_image", [lambda x, t: image.affine_transform(x, t)], x, np.stack([turn, turn[::-1] * np.float32([0, 0, 1, 1, 1, 1, 1, 1])]),
               single=False)
    places = np.float32([[0, 0.5, 1.7, -0.6, 2.2], [3, 0.25, -1.5, 7.7, 4.5], [1, 2, 0.5, -0.2, 2.6]])
    yield many("map_coordinates", [lambda x, m=m, o=o: image.map_coordinates(x, places, o, fill_mode=m, fill_value=0.5) for m in modes for o in (0, 1)],
               inside(0, 1, (3, 4, 3)), single=False)


def phase(parts):
    return ops.arctan2(parts[1], parts[0])


def signals():
    x, y = wide(0, (3, 2, 12), 1.0), wide(1, (3, 2, 12), 1.0)
    yield many("fourier", [
        lambda x, y: ops.fft((x, y)), lambda x, y: ops.fft2((x, y)), lambda x, y: ops.ifft2((x, y)), lambda x, y: ops.rfft(x), lambda x, y: ops.rfft(x, 8),
        lambda x, y: ops.rfft(x, 15), lambda x, y: ops.irfft((x, y)), lambda x, y: ops.irfft((x, y), 9), lambda x, y: ops.irfft(ops.rfft(x)),
    ], x, y)  # fmt: skip
    signal = wide(0, (2, 40), 1.0)
    # Where a real signal has no imaginary part, the sign of its zero is the phase's.
    yield many("phases", [lambda x: phase(ops.rfft(x)), lambda x: phase(ops.rfft(x, 15)), lambda x: phase(ops.fft((x, ops.zeros_like(x)))),
                          lambda x: phase(ops.stft(x, 8, 4, 8, center=False))], signal)  # fmt: skip
    options = [dict(), dict(window="hamming"), dict(window=None), dict(center=False)]
    yield many("stft", [lambda x, o=o: ops.stft(x, 8, 3, 10, **o) for o in options] + [lambda x: ops.stft(x, 8, 4, 8), lambda x: ops.stft(x, 1, 1, 2)], signal)
    yield many("istft", [lambda x, o=o: ops.istft(ops.stft(x, 8, 2, 8, **o), 8, 2, 8, **o) for o in options[:2]]
               + [lambda x: ops.istft(ops.stft(x, 8, 2, 8), 8, 2, 8, length=30), lambda x: ops.istft(ops.stft(x, 6, 3, 8), 6, 3, 8)], signal)  # fmt: skip
    patterns = [("b h w c -> b c h w", {}), ("b h w c -> b (h w) c", {}), ("b (h p) (w q) c -> b (h w) (p q c)", {"p": 2, "q": 2}), ("b h w c -> (b h) w c", {}),
                ("b h w (c d) -> b h w d c", {"d": 3})]  # fmt: skip
    yield many("rearrange", [lambda x, p=p, o=o: ops.rearrange(x, p, **o) for p, o in patterns], wide(0, (2, 4, 6, 6)), fixed_batch=True, single=False, eager=True)
