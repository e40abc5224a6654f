"""Models for the tests of the command line, each with inputs and what Keras predicts for them: NAME.keras (or .h5), NAME_in.npz, NAME_out.npz."""

import os
import sys

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras
import numpy as np
from keras import layers

OUT = sys.argv[1]


def save(name, model, inputs, suffix=".keras"):
    """`inputs` by input name; weights become random, so that no output is zero by construction."""
    rng = np.random.default_rng(7)
    model.set_weights([rng.normal(0, 0.5, w.shape).astype(w.dtype) if w.dtype.kind == "f" else w for w in model.get_weights()])
    model.save(os.path.join(OUT, name + suffix))
    outputs = model.predict(inputs, verbose=0)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    np.savez(os.path.join(OUT, name + "_in.npz"), **inputs)
    names = getattr(model, "_functional", model).output_names
    np.savez(os.path.join(OUT, name + "_out.npz"), **{n: np.asarray(o, "float32") for n, o in zip(names, outputs, strict=True)})


def normal(*shape):
    return np.random.default_rng(3).normal(size=shape).astype("float32")


def dense():
    model = keras.Sequential([keras.Input((4,), name="features"), layers.Dense(8, activation="relu"), layers.Dense(3, name="scores")], name="small")
    model.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    return model


def two_by_two():
    a, b = keras.Input((3,), name="a"), keras.Input((2,), name="b")
    shared = layers.Dense(2, name="shared")
    x, y = layers.Dense(2, name="widen")(a), shared(b)
    return keras.Model([a, b], [layers.Add(name="total")([x, y]), shared(x)], name="two_by_two")


def nested():
    inner = keras.Sequential([keras.Input((6,)), layers.Dense(5, name="inner_dense")], name="inner")
    inner.trainable = False
    x = keras.Input((6,), name="x")
    return keras.Model(x, layers.Dense(2, name="head")(inner(x)), name="outer")


def open_time():
    return keras.Sequential([keras.Input((None, 2), name="series"), layers.Dense(3, name="steps")], name="open_time")


def ids():
    return keras.Sequential([keras.Input((4,), dtype="int32", name="ids"), layers.Embedding(10, 3), layers.Flatten(), layers.Dense(2)], name="ids")


def image():
    return keras.Sequential([keras.Input((2, 3, 1), name="image"), layers.Flatten(), layers.Dense(2)], name="image")


def recurrent():
    return keras.Sequential([keras.Input((6, 3), name="series"), layers.LSTM(8), layers.Dense(2)], name="recurrent")


def repeated():
    return keras.Sequential([keras.Input((8,), name="x"), *(layers.Dense(8, activation="relu") for _ in range(3))], name="repeated")


def types():
    """An input of each type that gives itself back, turned around."""
    names = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64")
    inputs = [keras.Input((3,), dtype=name, name=name) for name in names]
    return keras.Model(inputs, [keras.ops.flip(x, axis=1) for x in inputs], name="types")


def refused():
    x = keras.Input((4,), name="x")
    y = layers.Lambda(lambda v: v * 2, name="double")(x)
    y = layers.Dense(3, name="between")(y)
    return keras.Model(x, layers.Lambda(lambda v: v + 1, name="increment")(y), name="refused")


def main():
    save("dense", dense(), {"features": normal(70, 4)})
    save("legacy", dense(), {"features": normal(5, 4)}, ".h5")
    save("two_by_two", two_by_two(), {"a": normal(9, 3), "b": normal(9, 2)})
    save("nested", nested(), {"x": normal(3, 6)})
    save("open_time", open_time(), {"series": normal(5, 7, 2)})
    save("recurrent", recurrent(), {"series": normal(4, 6, 3)})
    save("repeated", repeated(), {"x": normal(4, 8)})
    save("ids", ids(), {"ids": np.random.default_rng(5).integers(0, 10, (6, 4)).astype("int32")})
    save("image", image(), {"image": normal(4, 2, 3, 1)})
    save("bfloat16", keras.Sequential([keras.Input((4,), name="x"), layers.Dense(2, dtype="bfloat16")]), {"x": normal(3, 4)})
    save("wide", keras.Sequential([keras.Input((50000,), name="wide"), layers.Dense(1)]), {"wide": normal(2, 50000)})
    for name, axis in {"batch_mean": (0,), "batch_transposed": None, "number": (0, 1)}.items():
        x = keras.Input((4,), name="x")
        y = keras.ops.transpose(x) if axis is None else keras.ops.mean(x, axis=axis, keepdims=axis == (0,))
        keras.Model(x, [y, keras.ops.add(x, 1.0)]).save(os.path.join(OUT, name + ".keras"))
    x = keras.Input((4,), name="x")
    save("centred", keras.Model(x, x - keras.ops.mean(x, axis=0, keepdims=True)), {"x": normal(100, 4)})
    x = keras.Input((4, 3), name="x")
    keras.Model(x, keras.ops.matmul(x, keras.ops.transpose(x, (0, 2, 1)))).save(os.path.join(OUT, "gram.keras"))
    keras.Sequential([keras.Input((4,)), layers.SpectralNormalization(layers.Dense(3))]).save(os.path.join(OUT, "spectral.keras"))
    types().save(os.path.join(OUT, "types.keras"))
    refused().save(os.path.join(OUT, "refused.keras"))


if __name__ == "__main__":
    main()
