"""Convolutions: every option, both data formats, one to three spatial axes."""

import itertools

import keras
import numpy as np
from harness import case, layer
from keras import layers

PLAIN = {1: layers.Conv1D, 2: layers.Conv2D, 3: layers.Conv3D}
TRANSPOSED = {1: layers.Conv1DTranspose, 2: layers.Conv2DTranspose, 3: layers.Conv3DTranspose}
DEPTHWISE = {1: layers.DepthwiseConv1D, 2: layers.DepthwiseConv2D}
SEPARABLE = {1: layers.SeparableConv1D, 2: layers.SeparableConv2D}

# Odd and uneven on purpose; the channels come last.
SHAPES = {1: (9, 4), 2: (7, 9, 4), 3: (5, 6, 7, 4)}


def shape(rank, data_format="channels_last"):
    *spatial, channels = SHAPES[rank]
    return (*spatial, channels) if data_format == "channels_last" else (channels, *spatial)


def cases():
    for rank in (1, 2, 3):
        yield from plain(rank)
        yield from transposed(rank)
    for rank in (1, 2):
        yield from depthwise(rank)
        yield from separable(rank)
    yield from causal()
    yield from uneven()
    yield from same_at_every_stride()
    yield from transposed_lengths()
    yield from others()


def plain(rank):
    conv, last = PLAIN[rank], shape(rank)
    yield layer(f"conv{rank}d", conv(3, 2), last)
    yield layer(f"conv{rank}d_one", conv(5, 1, use_bias=False), last)
    yield layer(f"conv{rank}d_relu", conv(3, 3, activation="relu"), last)
    yield layer(f"conv{rank}d_groups", conv(6, 3, groups=2), last)
    yield layer(f"conv{rank}d_groups_are_channels", conv(8, 3, groups=4, padding="same"), last)
    for data_format, padding in itertools.product(("channels_last", "channels_first"), ("valid", "same")):
        x, tail = shape(rank, data_format), f"{padding}_{data_format}"
        yield layer(f"conv{rank}d_strided_{tail}", conv(3, 3, strides=2, padding=padding, data_format=data_format), x)
        yield layer(f"conv{rank}d_dilated_{tail}", conv(3, 2, dilation_rate=3, padding=padding, data_format=data_format), x)
        yield layer(f"conv{rank}d_even_{tail}", conv(3, 4, padding=padding, data_format=data_format, activation="tanh"), x)
    yield layer(f"conv{rank}d_softmax_channels_first", conv(3, 2, data_format="channels_first", activation="softmax"), shape(rank, "channels_first"))
    yield layer(f"conv{rank}d_groups_channels_first", conv(6, 2, groups=2, data_format="channels_first"), shape(rank, "channels_first"))
    yield layer(f"conv{rank}d_unknown_extents", conv(3, 3, strides=2, padding="same"), (None,) * rank + (2,), length=7)


def transposed(rank):
    conv, last = TRANSPOSED[rank], shape(rank)
    yield layer(f"conv{rank}d_transpose", conv(3, 2), last)
    yield layer(f"conv{rank}d_transpose_without_bias", conv(3, 3, use_bias=False, activation="elu"), last)
    for data_format, padding in itertools.product(("channels_last", "channels_first"), ("valid", "same")):
        x, tail = shape(rank, data_format), f"{padding}_{data_format}"
        yield layer(f"conv{rank}d_transpose_strided_{tail}", conv(2, 3, strides=2, padding=padding, data_format=data_format), x)
        yield layer(f"conv{rank}d_transpose_dilated_{tail}", conv(2, 2, dilation_rate=2, padding=padding, data_format=data_format), x)
        yield layer(
            f"conv{rank}d_transpose_output_padding_{tail}",
            conv(2, 3, strides=3, output_padding=1, padding=padding, data_format=data_format),
            x,
        )
    yield layer(f"conv{rank}d_transpose_unknown_extents", conv(3, 3, strides=2, padding="same"), (None,) * rank + (2,), length=4)


def depthwise(rank):
    conv, last = DEPTHWISE[rank], shape(rank)
    yield layer(f"depthwise_conv{rank}d", conv(2), last)
    yield layer(f"depthwise_conv{rank}d_without_bias", conv(3, use_bias=False, activation="relu"), last)
    for data_format, padding in itertools.product(("channels_last", "channels_first"), ("valid", "same")):
        x, tail = shape(rank, data_format), f"{padding}_{data_format}"
        options = {"padding": padding, "data_format": data_format}
        yield layer(f"depthwise_conv{rank}d_multiplied_{tail}", conv(3, depth_multiplier=3, **options), x)
        yield layer(f"depthwise_conv{rank}d_strided_{tail}", conv(3, strides=2, depth_multiplier=2, **options), x)
        yield layer(f"depthwise_conv{rank}d_dilated_{tail}", conv(2, dilation_rate=2, **options), x)


def separable(rank):
    conv, last = SEPARABLE[rank], shape(rank)
    yield layer(f"separable_conv{rank}d", conv(3, 2), last)
    yield layer(f"separable_conv{rank}d_without_bias", conv(3, 3, use_bias=False, activation="relu"), last)
    for data_format, padding in itertools.product(("channels_last", "channels_first"), ("valid", "same")):
        x, tail = shape(rank, data_format), f"{padding}_{data_format}"
        options = {"padding": padding, "data_format": data_format}
        yield layer(f"separable_conv{rank}d_multiplied_{tail}", conv(5, 3, depth_multiplier=3, **options), x)
        yield layer(f"separable_conv{rank}d_strided_{tail}", conv(5, 3, strides=2, depth_multiplier=2, **options), x)
        yield layer(f"separable_conv{rank}d_dilated_{tail}", conv(5, 2, dilation_rate=2, **options), x)


def causal():
    for data_format in ("channels_last", "channels_first"):
        x = shape(1, data_format)
        options = {"padding": "causal", "data_format": data_format}
        yield layer(f"conv1d_causal_{data_format}", layers.Conv1D(3, 3, **options), x)
        yield layer(f"conv1d_causal_dilated_{data_format}", layers.Conv1D(3, 2, dilation_rate=4, **options), x)
        yield layer(f"conv1d_causal_strided_{data_format}", layers.Conv1D(3, 3, strides=2, **options), x)
    yield layer("conv1d_causal_groups", layers.Conv1D(4, 3, padding="causal", groups=2), shape(1))
    yield layer("conv1d_causal_longer_than_the_input", layers.Conv1D(3, 12, padding="causal"), shape(1))


def uneven():
    """Another number along each axis."""
    for padding in ("valid", "same"):
        yield layer(f"conv2d_uneven_{padding}", layers.Conv2D(3, (2, 5), strides=(3, 1), padding=padding), (8, 9, 2))
        yield layer(f"conv2d_uneven_dilation_{padding}", layers.Conv2D(3, (3, 2), dilation_rate=(1, 4), padding=padding), (8, 9, 2))
        yield layer(f"conv3d_uneven_{padding}", layers.Conv3D(2, (1, 2, 3), strides=(2, 1, 3), padding=padding), (5, 6, 7, 2))
        yield layer(
            f"conv2d_transpose_uneven_{padding}",
            layers.Conv2DTranspose(3, (2, 5), strides=(3, 2), output_padding=(2, 0), padding=padding),
            (4, 3, 2),
        )
        yield layer(
            f"conv2d_transpose_uneven_dilation_{padding}", layers.Conv2DTranspose(3, (3, 2), dilation_rate=(1, 3), padding=padding), (4, 5, 2)
        )
        yield layer(
            f"conv3d_transpose_uneven_{padding}", layers.Conv3DTranspose(2, (1, 2, 3), strides=(2, 1, 3), padding=padding), (3, 4, 2, 2)
        )


def same_at_every_stride():
    """SAME padding is uneven, and depends on how the stride divides the extent; one output a convolution."""
    for length in (6, 7):
        x = keras.Input((length, 2))
        convs = [layers.Conv1D(2, kernel, strides=stride, padding="same") for kernel, stride in itertools.product((1, 2, 3, 5), (1, 2, 3))]
        yield case(f"conv1d_same_at_every_stride_length{length}", keras.Model(x, [conv(x) for conv in convs]))


def transposed_lengths():
    """The length of a transposed convolution, and which side it is cut at; one output a convolution."""
    for padding, stride in itertools.product(("valid", "same"), (1, 2, 3, 4)):
        x = keras.Input((4, 2))
        options = itertools.product((1, 2, 3, 4, 5), (None, *range(stride)))
        convs = [layers.Conv1DTranspose(2, k, strides=stride, padding=padding, output_padding=extra) for k, extra in options]
        yield case(f"conv1d_transpose_{padding}_stride{stride}_at_every_length", keras.Model(x, [conv(x) for conv in convs]))


def others():
    yield layer("conv2d_mixed_float16", layers.Conv2D(3, 3, activation="relu", dtype="mixed_float16"), (6, 6, 2))
    yield layer("conv2d_mixed_bfloat16", layers.Conv2D(3, 3, dtype="mixed_bfloat16"), (6, 6, 2))
    yield layer("conv2d_transpose_float16", layers.Conv2DTranspose(3, 3, dtype="float16"), (6, 6, 2))
    yield layer("separable_conv2d_mixed_float16", layers.SeparableConv2D(3, 3, dtype="mixed_float16"), (6, 6, 2))
    yield layer("conv2d_float64", lambda: layers.Conv2D(3, 3, dtype="float64"), (6, 6, 2), dtype="float64", oracle="tensorflow")
    yield layer("conv2d_uint8", layers.Conv2D(3, 3), (6, 6, 3), dtype="uint8", inputs=np.arange(324, dtype="uint8").reshape(3, 6, 6, 3) % 11)
    yield case("conv2d_lora", lora(), keep_weights=True)
    yield case("conv1d_shared", shared())
    yield case("conv2d_frozen", frozen())
    yield layer("conv2d_leaky_relu", layers.Conv2D(3, 3, activation=layers.LeakyReLU(0.3)), (6, 6, 2), formats=("keras",))
    yield layer(
        "conv2d_regularized",
        layers.Conv2D(3, 3, kernel_regularizer="l2", bias_constraint="non_neg", kernel_initializer=keras.initializers.HeNormal(seed=3)),
        (6, 6, 2),
    )


def lora():
    model = keras.Sequential([keras.Input((6, 6, 2)), layers.Conv2D(4, 3, lora_rank=2, lora_alpha=3), layers.Conv2D(3, 2)])
    random = np.random.default_rng(7)
    model.set_weights([random.normal(size=w.shape) for w in model.get_weights()])
    return model


def shared():
    left, right = keras.Input((8, 2)), keras.Input((12, 2))
    conv = layers.Conv1D(3, 3, padding="causal", activation="relu")
    return keras.Model([left, right], [conv(left), conv(right)])


def frozen():
    model = keras.Sequential([keras.Input((6, 6, 2)), layers.Conv2D(4, 3), layers.Conv2D(3, 2), layers.DepthwiseConv2D(2)])
    model.layers[1].trainable = False
    return model
