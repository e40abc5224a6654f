"""Layers that move data: both data formats, open extents, integers."""

import keras
import numpy as np
from harness import case, layer, padded
from keras import layers

WITH_FRACTIONS = np.array([-2.7, -1.5, -0.4, 0.6, 1.5, 2.9] * 6, "float32").reshape(3, 3, 4)


def cases():
    yield layer("flatten", layers.Flatten(), (3, 4, 2))
    yield layer("flatten_channels_first", layers.Flatten(data_format="channels_first"), (2, 3, 4))
    yield layer("flatten_channels_first_series", layers.Flatten(data_format="channels_first"), (3, 4))
    yield layer("flatten_vector", layers.Flatten(), (5,))
    yield layer("flatten_scalars", layers.Flatten(), ())
    yield layer("flatten_open", layers.Flatten(), (None, 4))
    yield layer("flatten_integers", layers.Flatten(), (3, 4), dtype="int32")
    yield layer("flatten_to_integers", layers.Flatten(dtype="int32"), (3, 4), inputs=WITH_FRACTIONS)
    yield case("flatten_to_integers_legacy", flatten_to_integers_legacy, WITH_FRACTIONS, oracle="tf_keras")
    yield layer("reshape", layers.Reshape((4, 3)), (12,))
    yield layer("reshape_minus_one", layers.Reshape((-1, 3)), (4, 6))
    yield layer("reshape_last_minus_one", layers.Reshape((2, -1, 3)), (4, 6))
    yield layer("reshape_to_vector", layers.Reshape((-1,)), (4, 6))
    yield layer("reshape_to_scalar", layers.Reshape(()), (1,))
    yield layer("reshape_open", layers.Reshape((-1, 2)), (None, 4))
    yield layer("reshape_open_to_a_certain_length", layers.Reshape((10, 4)), (None, 4), length=10)
    yield layer("reshape_open_into_groups", layers.Reshape((-1, 5, 4)), (None, 4), length=15)
    yield case("pooled_and_joined_again_open", pooled_and_joined(), length=14)
    yield layer("permute", layers.Permute((2, 1)), (3, 4))
    yield layer("permute_three", layers.Permute((3, 1, 2)), (3, 4, 2))
    yield layer("permute_same", layers.Permute((1, 2)), (3, 4))
    yield layer("permute_open", layers.Permute((2, 1)), (None, 4))
    yield layer("repeat_vector", layers.RepeatVector(4), (3,))
    yield layer("repeat_vector_once", layers.RepeatVector(1), (3,))
    for argument in (1, 2, (1, 2), (0, 2), (2, 0), (0, 0)):
        tag = str(argument).strip("()").replace(", ", "_")
        yield layer(f"cropping1d_{tag}", layers.Cropping1D(argument), (6, 3))
        yield layer(f"zero_padding1d_{tag}", layers.ZeroPadding1D(argument), (4, 3))
    yield layer("zero_padding1d_channels_first", layers.ZeroPadding1D((1, 2), data_format="channels_first"), (4, 3))
    yield layer("zero_padding1d_open", layers.ZeroPadding1D(2), (None, 3))
    yield layer("cropping1d_open", layers.Cropping1D(1), (None, 3))
    for data_format in ("channels_last", "channels_first"):
        for number, argument in enumerate((1, (1, 2), ((1, 0), (0, 2)), ((0, 0), (2, 1)))):
            yield layer(f"cropping2d_{number}_{data_format}", layers.Cropping2D(argument, data_format=data_format), (6, 7, 5))
            yield layer(f"zero_padding2d_{number}_{data_format}", layers.ZeroPadding2D(argument, data_format=data_format), (3, 4, 2))
        for number, argument in enumerate((1, (1, 2, 1), ((1, 0), (0, 2), (1, 1)), ((0, 0), (0, 1), (0, 0)))):
            yield layer(f"cropping3d_{number}_{data_format}", layers.Cropping3D(argument, data_format=data_format), (4, 6, 5, 4))
            yield layer(f"zero_padding3d_{number}_{data_format}", layers.ZeroPadding3D(argument, data_format=data_format), (2, 3, 4, 2))
        for size in (2, 3, (1, 3), (3, 1)):
            tag = f"{size}".strip("()").replace(", ", "_")
            yield layer(f"up_sampling2d_{tag}_{data_format}", layers.UpSampling2D(size, data_format=data_format), (3, 4, 2))
        for interpolation in ("bilinear", "bicubic", "lanczos3", "lanczos5"):
            yield layer(
                f"up_sampling2d_{interpolation}_{data_format}",
                layers.UpSampling2D((2, 3), data_format=data_format, interpolation=interpolation),
                (4, 5, 3),
            )
        yield layer(f"up_sampling3d_{data_format}", layers.UpSampling3D((2, 1, 3), data_format=data_format), (2, 3, 2, 3))
    yield layer("cropping2d_default", layers.Cropping2D(), (3, 4, 2))
    yield layer("cropping3d_default", layers.Cropping3D(), (3, 4, 5, 2))
    yield layer("up_sampling1d", layers.UpSampling1D(), (4, 3))
    yield layer("up_sampling1d_3", layers.UpSampling1D(3), (4, 3))
    yield layer("up_sampling1d_open", layers.UpSampling1D(2), (None, 3))
    yield layer("up_sampling2d_open", layers.UpSampling2D(2), (None, None, 3))
    yield layer("up_sampling2d_open_bilinear", layers.UpSampling2D(2, interpolation="bilinear"), (None, None, 3))
    yield layer("up_sampling2d_float16", layers.UpSampling2D(2, interpolation="bilinear", dtype="float16"), (3, 4, 2))
    yield layer("up_sampling2d_integers", layers.UpSampling2D(2, interpolation="bilinear"), (3, 4, 2), dtype="uint8")
    yield layer("zero_padding2d_integers", layers.ZeroPadding2D(1), (3, 4, 2), dtype="int32")
    yield case("mask_is_dropped", mask_is_dropped(), padded(3, 6, 4))
    yield case("legacy", legacy, oracle="tf_keras")


def mask_is_dropped():
    return keras.Sequential([keras.Input((6, 4)), layers.Masking(0.0), layers.Permute((2, 1)), layers.LSTM(3)])


def legacy():
    from tf_keras import Input, Model
    from tf_keras import layers as old

    x, v = Input((4, 6, 3)), Input((5,))
    return Model(
        [x, v],
        [
            old.Flatten(data_format="channels_first")(x),
            old.Reshape((-1, 6))(x),
            old.Permute((2, 3, 1))(x),
            old.RepeatVector(3)(v),
            old.Cropping2D(((1, 0), (1, 2)))(x),
            old.ZeroPadding2D(((1, 0), (1, 2)))(x),
            old.UpSampling2D((2, 3))(x),
            old.UpSampling2D(2, interpolation="bilinear")(x),
            old.ZeroPadding1D((1, 2))(old.Reshape((4, 18))(x)),
            old.Cropping1D((1, 2))(old.Reshape((4, 18))(x)),
            old.UpSampling1D(3)(old.Reshape((4, 18))(x)),
        ],
    )


def pooled_and_joined():
    x = keras.Input((None, None, 2))
    return keras.Model(x, layers.Concatenate()([layers.UpSampling2D(7)(layers.MaxPooling2D(7)(x)), x]))


def flatten_to_integers_legacy():
    from tf_keras import Sequential
    from tf_keras import layers as old

    return Sequential([old.Input((3, 4)), old.Flatten(dtype="int32")])
