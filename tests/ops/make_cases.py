"""Makes the data of the op cases: make_cases.py OUT writes OUT/data.bin (each case's operands, then its results, raw) and OUT/index.txt (a line
a case: offset in bytes, relative and absolute tolerance, name)."""

import pathlib
import sys
import zlib

import ml_dtypes
import numpy as np

import oracle
from node_text import Reader, expand

HERE = pathlib.Path(__file__).resolve().parent

# Ops that give exact results, or results rounded once from exact ones.
INEXACT = {
    *oracle.UNARY, "power", "atan2", "scatter", "reduce", "reduce_window", "select_and_scatter", "dot_general", "convolution", "scan",
} - {"abs", "negate", "sign", "sqrt", "ceil", "floor", "round_nearest_even", "round_nearest_afz", "is_finite", "not", "popcnt"}  # fmt: skip
PRECISION = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-48}
# Results may be sums that cancel; the operands are about 1.
CANCELLING = {"scatter", "reduce", "reduce_window", "select_and_scatter", "dot_general", "convolution", "scan", "lgamma"}
SUMS = {"dot_general", "convolution", "scan"}

FLOAT_EDGES = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, "tiny", "max", "-max", 0.5, -2.5]
MORE_FLOAT_EDGES = [
    -0.5, 1.5, -1.5, 2.5, 0.49999997, -3.7, 100.0, -100.0, 127.5, 128.0, -128.9, -129.0, 255.9, 256.0, 32768.0, 65504.0, 65520.0,
    2.0**31, -(2.0**31) - 1, 2.0**32, 2.0**63, -(2.0**63), 2.0**64, 1e-7, -1e-7, 1e-3, 88.7, 89.0, -104.0, 710.0,
]  # fmt: skip
INTEGER_EDGES = [0, 1, -1, 2, -2, "min", "max", 3, -3, 7, 10, 16, -128]
SHIFTS = [0, 1, 2, 7, 8, 15, 16, 31, 32, 63, 64, -1, 100]
INDEX_OPERANDS = {"dynamic_slice": range(1, 40), "dynamic_update_slice": range(2, 40), "gather": [1], "scatter": [1]}
INSIDE_ONE = {"asin", "acos", "atanh", "erf_inv"}


def edges(dtype, values):
    if dtype == bool:
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        named = {"min": info.min, "max": info.max}
        whole = [named.get(v, v) % 2**info.bits for v in values]
        return np.array(whole, np.uint64).astype(dtype)
    info = ml_dtypes.finfo(dtype)
    named = {"tiny": float(info.smallest_subnormal), "max": float(info.max), "-max": -float(info.max)}
    with np.errstate(over="ignore"):
        return np.array([named[v] if isinstance(v, str) else v for v in values], np.float64).astype(dtype)


def random(rng, dtype, count, op):
    if dtype == bool:
        return rng.random(count) < 0.5
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        full = rng.integers(info.min, info.max, count, dtype, endpoint=True)
        return np.where(rng.random(count) < 0.5, full, rng.integers(0 if info.min == 0 else -9, 10, count).astype(dtype))
    if op in INSIDE_ONE:
        return rng.uniform(-1, 1, count).astype(dtype)
    scales = [1.0] if op in SUMS | {"scatter", "reduce", "reduce_window", "select_and_scatter"} else [1.0, 1.0, 10.0, 1e-3]
    return (rng.standard_normal(count) * rng.choice(scales, count)).astype(dtype)


def indices(rng, type_, extent):
    """Within and a little outside of [0, extent)."""
    values = rng.integers(-2, extent + 2, type_.shape)
    if type_.dtype.kind == "u":
        values = np.maximum(values, 0)
    out = np.asarray(values.astype(type_.dtype))
    if type_.dtype == np.uint64 and out.size > 3:
        out.flat[3] = 2**63 + 5
    return out


def operand(rng, node, position, elementwise):
    type_, op = node.operands[position], node.op
    if position in INDEX_OPERANDS.get(op, []):
        return indices(rng, type_, max(node.operands[0].shape))
    count = int(np.prod(type_.shape, dtype=np.int64))
    values = random(rng, type_.dtype, count, op)
    floating = oracle.is_float(values)
    base = FLOAT_EDGES if floating else SHIFTS if op.startswith("shift") and position == 1 else INTEGER_EDGES
    if elementwise and len(node.operands) == 1:
        special = edges(type_.dtype, base + MORE_FLOAT_EDGES if floating else base)
        values[: len(special)] = special[:count]
    elif elementwise:  # every edge with every other
        special = edges(type_.dtype, base)
        pairs = np.repeat(special, len(special)) if position == len(node.operands) - 2 else np.tile(special, len(special))
        values[: len(pairs)] = pairs[:count]
    elif op == "sort" or (node.attributes.get("kind") in ("max", "min") and position == 0):
        special = edges(type_.dtype, base[:9])
        some = rng.permutation(count)[: len(special)]
        values[some] = special[: len(some)]
    return values.reshape(type_.shape)


def tolerances(node, results):
    dtype = results[0].dtype
    if node.op not in INEXACT or not oracle.is_float(results[0]):
        return 0.0, 0.0
    relative = PRECISION[dtype.name] * (8 if node.op in ("scatter", "scan") else 1)
    return relative, (1e-12 if node.op in CANCELLING else float(edges(dtype, ["tiny"])[0]))


def make(name):
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    node = Reader(name).node()
    elementwise = node.op in oracle.UNARY or node.op in oracle.BINARY or node.op in ("convert", "bitcast_convert", "compare", "select")
    if node.op == "parameter":
        node.operands = node.types
    operands = [operand(rng, node, i, elementwise) for i in range(len(node.operands))]
    with np.errstate(all="ignore"):
        results = oracle.evaluate(node, operands)
    for array, type_ in zip(results, node.types):
        assert array.dtype == type_.dtype and array.shape == type_.shape, f"{name}: {array.dtype}{array.shape}"
    return operands, results, tolerances(node, results)


def main():
    out = pathlib.Path(sys.argv[1])
    with open(out / "data.bin", "wb") as data, open(out / "index.txt", "w") as index:
        for name in expand((HERE / "cases.txt").read_text().splitlines()):
            operands, results, (relative, absolute) = make(name)
            index.write(f"{data.tell()} {relative!r} {absolute!r} {name}\n")
            for array in [*operands, *results]:
                data.write(np.ascontiguousarray(array).tobytes())


if __name__ == "__main__":
    main()
