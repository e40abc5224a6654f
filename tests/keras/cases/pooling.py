"""Pooling: windows, whole inputs, adaptive windows; both data formats, one to three spatial axes."""

import itertools

import keras
import numpy as np
from harness import case, layer
from keras import layers

WINDOWED = {
    "max": {1: layers.MaxPooling1D, 2: layers.MaxPooling2D, 3: layers.MaxPooling3D},
    "average": {1: layers.AveragePooling1D, 2: layers.AveragePooling2D, 3: layers.AveragePooling3D},
}
GLOBAL = {
    "max": {1: layers.GlobalMaxPooling1D, 2: layers.GlobalMaxPooling2D, 3: layers.GlobalMaxPooling3D},
    "average": {1: layers.GlobalAveragePooling1D, 2: layers.GlobalAveragePooling2D, 3: layers.GlobalAveragePooling3D},
}
ADAPTIVE = {
    "max": {1: layers.AdaptiveMaxPooling1D, 2: layers.AdaptiveMaxPooling2D, 3: layers.AdaptiveMaxPooling3D},
    "average": {1: layers.AdaptiveAveragePooling1D, 2: layers.AdaptiveAveragePooling2D, 3: layers.AdaptiveAveragePooling3D},
}
SHAPES = {1: (9, 3), 2: (7, 10, 3), 3: (5, 6, 7, 3)}


def shape(rank, data_format="channels_last"):
    *spatial, channels = SHAPES[rank]
    return (*spatial, channels) if data_format == "channels_last" else (channels, *spatial)


def cases():
    for kind, rank in itertools.product(("max", "average"), (1, 2, 3)):
        yield from windowed(kind, rank, WINDOWED[kind][rank])
        yield from whole(kind, rank, GLOBAL[kind][rank])
        yield from adaptive(kind, rank, ADAPTIVE[kind][rank])
    yield from uneven()
    yield from masked()
    yield from precision()


def windowed(kind, rank, pooling):
    name = f"{kind}_pooling{rank}d"
    yield layer(name, pooling(2), shape(rank))
    for data_format, padding in itertools.product(("channels_last", "channels_first"), ("valid", "same")):
        x, options = shape(rank, data_format), {"padding": padding, "data_format": data_format}
        yield layer(f"{name}_{padding}_{data_format}", pooling(3, **options), x)
        yield layer(f"{name}_strided_{padding}_{data_format}", pooling(3, strides=2, **options), x)
        yield layer(f"{name}_even_{padding}_{data_format}", pooling(4, strides=1, **options), x)
    yield layer(f"{name}_apart", pooling(2, strides=3, padding="same"), shape(rank))
    yield layer(f"{name}_larger_than_the_input", pooling(12, strides=2, padding="same"), shape(rank))
    yield layer(f"{name}_unknown_extents", pooling(2, padding="same"), (None,) * rank + (2,), length=7)


def whole(kind, rank, pooling):
    for data_format, keepdims in itertools.product(("channels_last", "channels_first"), (False, True)):
        name = f"global_{kind}_pooling{rank}d_{data_format}" + ("_keepdims" if keepdims else "")
        yield layer(name, pooling(data_format=data_format, keepdims=keepdims), shape(rank, data_format))
    yield layer(f"global_{kind}_pooling{rank}d_unknown_extents", pooling(), (None,) * rank + (2,), length=6)


def adaptive(kind, rank, pooling):
    name = f"adaptive_{kind}_pooling{rank}d"
    for data_format in ("channels_last", "channels_first"):
        x = shape(rank, data_format)
        yield layer(f"{name}_{data_format}", pooling(4, data_format=data_format), x)
    # One window, one a position, more outputs than inputs, and everything between.
    x = keras.Input(shape(rank))
    sizes = range(1, 13) if rank == 1 else ((1, 5, 12) if rank == 2 else (1, 8))
    yield case(f"{name}_at_every_size", keras.Model(x, [pooling(size)(x) for size in sizes]))


def uneven():
    for kind in ("max", "average"):
        for padding in ("valid", "same"):
            pool2, pool3 = WINDOWED[kind][2], WINDOWED[kind][3]
            yield layer(f"{kind}_pooling2d_uneven_{padding}", pool2((2, 5), strides=(3, 1), padding=padding), (8, 9, 2))
            yield layer(f"{kind}_pooling3d_uneven_{padding}", pool3((1, 2, 3), strides=(2, 1, 3), padding=padding), (5, 6, 7, 2))
        yield layer(f"adaptive_{kind}_pooling2d_uneven", ADAPTIVE[kind][2]((3, 7)), (8, 5, 2))
        yield layer(f"adaptive_{kind}_pooling3d_uneven", ADAPTIVE[kind][3]((3, 1, 7)), (8, 5, 2, 2))


def masked():
    steps = np.array([[[1, 2], [0, 0], [3, -4], [0, 0]], [[0, 0], [5, 6], [7, 8], [9, 1]], [[2, 2], [3, 1], [0, 0], [0, 0]]], "float32")
    for keepdims in (False, True):
        tail = "_keepdims" if keepdims else ""
        model = keras.Sequential([keras.Input((4, 2)), layers.Masking(), layers.GlobalAveragePooling1D(keepdims=keepdims)])
        yield case(f"global_average_pooling1d_of_masked_steps{tail}", model, steps)
    model = keras.Sequential([keras.Input((4, 2)), layers.Masking(), layers.GlobalMaxPooling1D()])
    yield case("global_max_pooling1d_of_masked_steps", model, steps)
    yield case(
        "global_average_pooling1d_of_embedding",
        keras.Sequential([keras.Input((5,), dtype="int32"), layers.Embedding(6, 3, mask_zero=True), layers.GlobalAveragePooling1D()]),
        np.array([[1, 2, 0, 0, 0], [3, 4, 5, 1, 2], [0, 0, 5, 0, 1]]),
    )
    yield layer("global_average_pooling2d_of_integers", layers.GlobalAveragePooling2D(), (4, 5, 3), dtype="uint8")
    yield case("global_average_pooling1d_with_a_mask", explicit_mask(), [steps, np.array([[1, 0, 1, 0], [1, 1, 1, 1], [0, 0, 0, 1]], "bool")], formats=("keras",))


def explicit_mask():
    x, mask = keras.Input((4, 2)), keras.Input((4,), dtype="bool")
    return keras.Model([x, mask], layers.GlobalAveragePooling1D()(x, mask=mask))


def precision():
    for kind in ("max", "average"):
        yield layer(f"{kind}_pooling2d_float16", WINDOWED[kind][2](2, padding="same", dtype="mixed_float16"), (5, 5, 2))
        yield layer(f"global_{kind}_pooling2d_bfloat16", GLOBAL[kind][2](dtype="mixed_bfloat16"), (5, 5, 2))
        pooling = WINDOWED[kind][2]
        yield layer(f"{kind}_pooling2d_float64", lambda pooling=pooling: pooling(3, 2, dtype="float64"), (5, 5, 2), dtype="float64", oracle="tensorflow")
