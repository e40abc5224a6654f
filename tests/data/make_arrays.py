"""Arrays as NumPy itself saves them: every dtype, both byte orders, both memory orders, compressed or not; and files that NumPy or anybody
could have broken. Each array counts 0, 1, 2, ... in row-major order, so that the reading side knows every value."""
import os
import sys

import ml_dtypes
import numpy as np

out = sys.argv[1]
os.makedirs(out, exist_ok=True)


def path(name):
    return os.path.join(out, name)


def counting(dtype, shape=(5, 3, 2)):
    flat = np.arange(int(np.prod(shape)))
    if np.dtype(dtype) == bool:
        flat = flat % 3 != 0
    return flat.astype(dtype).reshape(shape)


names = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "bool"]
for name in names:
    array = counting(name)
    np.save(path(name + ".npy"), array)
    np.save(path(name + "_fortran.npy"), np.asfortranarray(array))
    np.save(path(name + "_big.npy"), array.astype(np.dtype(name).newbyteorder(">")))
np.save(path("bfloat16.npy"), counting(ml_dtypes.bfloat16))
np.save(path("empty.npy"), np.zeros((0, 3, 2), "float32"))
np.save(path("empty_fortran.npy"), np.asfortranarray(np.zeros((0, 3, 2), "float32")))
np.save(path("number.npy"), np.float64(2.5))
np.save(path("vector.npy"), counting("float32", (7,)))
for version in (2, 3):
    with open(path(f"version{version}.npy"), "wb") as file:
        np.lib.format.write_array(file, counting("float32"), version=(version, 0))

np.savez(path("stored.npz"), a=counting("float32"), b=counting("int64", (4,)))
np.savez_compressed(path("deflated.npz"), a=counting("float32"), b=counting("int64", (4,)))
np.savez(path("by_order.npz"), counting("float32", (4, 3)), counting("float32", (4, 2)))

np.save(path("objects.npy"), np.array([{"a": 1}, None], dtype=object), allow_pickle=True)
np.save(path("complex.npy"), np.zeros(3, "complex64"))
np.save(path("text.npy"), np.array(["a", "bc"]))
np.save(path("fields.npy"), np.zeros(3, [("x", "f4"), ("y", "i4")]))
