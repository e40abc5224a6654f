"""Normalization layers: axes, switches, precision, masks."""

import keras
import numpy as np
from harness import case, layer, padded
from keras import layers


def cases():
    yield layer("batch", layers.BatchNormalization(), (5,))
    yield layer("batch_images", layers.BatchNormalization(), (3, 4, 2))
    yield layer("batch_axis_1", layers.BatchNormalization(axis=1), (3, 4, 2))
    yield layer("batch_axis_minus_2", layers.BatchNormalization(axis=-2), (3, 4, 2))
    yield layer("batch_volumes", layers.BatchNormalization(), (2, 3, 2, 4))
    yield layer("batch_epsilon", layers.BatchNormalization(epsilon=0.3, momentum=0.5), (5,))
    yield layer("batch_no_center", layers.BatchNormalization(center=False), (5,))
    yield layer("batch_no_scale", layers.BatchNormalization(scale=False), (5,))
    yield layer("batch_plain", layers.BatchNormalization(center=False, scale=False), (5,))
    yield layer("batch_renorm", layers.BatchNormalization(renorm=True, renorm_clipping={"rmax": 3.0}), (5,))
    yield layer("batch_float16", layers.BatchNormalization(dtype="mixed_float16"), (5,))
    yield layer("batch_plain_float16", layers.BatchNormalization(dtype="float16"), (5,))
    yield layer("batch_bfloat16", layers.BatchNormalization(dtype="mixed_bfloat16"), (5,))
    yield layer("batch_float64", lambda: layers.BatchNormalization(dtype="float64"), (5,), dtype="float64", oracle="tensorflow")
    yield layer("batch_of_integers", layers.BatchNormalization(), (5,), dtype="int32")
    yield layer("batch_open", layers.BatchNormalization(), (None, 3))
    yield layer("batch_frozen", layers.BatchNormalization(trainable=False), (5,))
    yield case("batch_masked", batch_masked(), padded(3, 6, 3))
    # Keras 3's predict overrides what a call says about training; Keras 2's does not.
    yield case("batch_training", batch_training())
    yield case("legacy_batch_training", legacy_batch_training, oracle="tf_keras", single=False)
    yield case("legacy_batch_training_frozen", legacy_batch_training_frozen, oracle="tf_keras")
    yield case("legacy_batch_training_masked", legacy_batch_training_masked, padded(3, 6, 3), oracle="tf_keras", single=False)
    yield case("legacy_batch_training_renorm", legacy_batch_training_renorm, oracle="tf_keras", refused="renorm")
    yield case("batch_shared", batch_shared())
    for name, axes in {"last": -1, "axis_1": 1, "two": [1, 2], "two_turned": [2, 1], "two_negative": [-2, -1], "three": [1, 2, 3]}.items():
        formats = ("keras",) if isinstance(axes, list) else ("keras", "h5")
        yield layer(f"layer_{name}", layers.LayerNormalization(axis=axes), (3, 4, 2), formats=formats)
    yield layer("layer_mixed_signs", layers.LayerNormalization(axis=[1, -1]), (3, 4, 2), formats=("keras",))
    yield layer("layer_vector", layers.LayerNormalization(), (6,))
    yield layer("layer_epsilon", layers.LayerNormalization(epsilon=0.5), (6,))
    yield layer("layer_no_center", layers.LayerNormalization(center=False), (6,))
    yield layer("layer_no_scale", layers.LayerNormalization(scale=False), (6,))
    yield layer("layer_plain", layers.LayerNormalization(scale=False, center=False), (6,))
    yield layer("layer_rms_scaling", layers.LayerNormalization(rms_scaling=True), (3, 6))
    yield layer("layer_rms_scaling_axis_1", layers.LayerNormalization(axis=1, rms_scaling=True), (3, 6))
    yield layer("layer_float16", layers.LayerNormalization(dtype="mixed_float16"), (6,))
    yield layer("layer_bfloat16", layers.LayerNormalization(dtype="bfloat16"), (6,), formats=("keras",))
    yield layer("layer_far_from_zero", layers.LayerNormalization(), (6,), inputs=100 + np.arange(18, dtype="float32").reshape(3, 6) ** 1.5)
    yield layer("layer_open", layers.LayerNormalization(), (None, 3))
    yield layer("layer_of_float16_input", layers.LayerNormalization(), (6,), dtype="float16")
    yield case("layer_masked", layer_masked(), padded(3, 6, 3))
    for name, axes in {"last": -1, "two": [2, 3], "all": [1, 2, 3]}.items():
        yield layer(f"rms_{name}", layers.RMSNormalization(axis=axes), (3, 4, 2), formats=("keras",) if isinstance(axes, list) else ("keras", "h5"))
    yield layer("rms_epsilon", layers.RMSNormalization(epsilon=0.5), (6,))
    yield layer("rms_float16", layers.RMSNormalization(dtype="mixed_float16"), (6,))
    for groups in (1, 2, 6, -1):
        name = "each" if groups == -1 else groups
        yield layer(f"group_{name}", layers.GroupNormalization(groups), (4, 5, 6))
        yield layer(f"group_{name}_axis_1", layers.GroupNormalization(groups, axis=1), (6, 4, 5))
    yield layer("group_axis_minus_2", layers.GroupNormalization(2, axis=-2), (4, 6, 5))
    yield layer("group_axis_2", layers.GroupNormalization(3, axis=2), (4, 6, 5))
    yield layer("group_vector", layers.GroupNormalization(2), (6,))
    yield layer("group_options", layers.GroupNormalization(2, epsilon=0.2, center=False), (5, 6))
    yield layer("group_no_scale", layers.GroupNormalization(2, scale=False), (5, 6))
    yield layer("group_float16", layers.GroupNormalization(2, dtype="mixed_float16"), (5, 6))
    yield layer("group_open", layers.GroupNormalization(2), (None, None, 6))
    yield layer("group_default", layers.GroupNormalization(), (3, 64))
    yield case("group_masked", group_masked(), padded(3, 6, 4))
    yield layer("unit", layers.UnitNormalization(), (6,))
    yield layer("unit_axis_1", layers.UnitNormalization(axis=1), (3, 4))
    yield layer("unit_two_axes", layers.UnitNormalization(axis=(1, 2)), (3, 4), formats=("keras",))
    yield layer("unit_of_zeros", layers.UnitNormalization(), (6,), inputs=np.zeros((2, 6), "float32"))
    yield layer("unit_float16", layers.UnitNormalization(dtype="float16"), (6,))
    yield layer("spectral_dense", layers.SpectralNormalization(layers.Dense(4)), (5,))
    yield layer("spectral_conv", layers.SpectralNormalization(layers.Conv2D(4, 2), power_iterations=3), (5, 5, 2))
    yield layer("spectral_einsum", layers.SpectralNormalization(layers.EinsumDense("abc,cd->abd", (None, 4), bias_axes="d")), (3, 5))
    yield layer("spectral_embedding", layers.SpectralNormalization(layers.Embedding(4, 3)), (5,), dtype="int32", formats=("keras",))
    yield case("spectral_stack", spectral_stack())
    yield case("legacy", legacy, oracle="tf_keras")
    yield case("legacy_series", legacy_series, padded(3, 5, 4), oracle="tf_keras")
    yield case("legacy_batch_axes", legacy_batch_axes, oracle="tf_keras")


def batch_masked():
    return keras.Sequential([keras.Input((6, 3)), layers.Masking(0.0), layers.BatchNormalization(), layers.LSTM(3)])


def batch_training(**options):
    x = keras.Input((5,))
    return keras.Model(x, layers.BatchNormalization(**options)(x, training=True))


def legacy_batch_training(masked=False, **options):
    from tf_keras import Input, Model
    from tf_keras import layers as old

    x = Input((6, 3))
    return Model(x, old.BatchNormalization(**options)(old.Masking(0.0)(x) if masked else x, training=True))


def legacy_batch_training_frozen():
    return legacy_batch_training(trainable=False)


def legacy_batch_training_masked():
    return legacy_batch_training(masked=True)


def legacy_batch_training_renorm():
    return legacy_batch_training(renorm=True)


def batch_shared():
    a, b, shared = keras.Input((4,)), keras.Input((4,)), layers.BatchNormalization()
    return keras.Model([a, b], [shared(a), layers.Dense(2)(shared(b))])


def layer_masked():
    return keras.Sequential([keras.Input((6, 3)), layers.Masking(0.0), layers.LayerNormalization(), layers.UnitNormalization(), layers.LSTM(3)])


def group_masked():
    return keras.Sequential([keras.Input((6, 4)), layers.Masking(0.0), layers.GroupNormalization(2), layers.LSTM(3)])


def spectral_stack():
    stack = [layers.SpectralNormalization(layers.Dense(4, activation="relu")), layers.BatchNormalization(), layers.Dense(3)]
    return keras.Sequential([keras.Input((5,)), *stack, layers.SpectralNormalization(layers.Dense(2, use_bias=False))])


def legacy():
    from tf_keras import Sequential
    from tf_keras import layers as old

    return Sequential(
        [
            old.Input((4, 6, 4)),
            old.BatchNormalization(),
            old.BatchNormalization(axis=1),
            old.BatchNormalization(scale=False, renorm=True, fused=False),
            old.LayerNormalization(),
            old.LayerNormalization(axis=[1, 3]),
            old.LayerNormalization(axis=[3, 2], center=False),
            old.GroupNormalization(2),
            old.GroupNormalization(2, axis=1, epsilon=0.1),
            old.UnitNormalization(),
            old.SpectralNormalization(old.Conv2D(3, 2)),
        ]
    )


def legacy_series():
    from tf_keras import Sequential
    from tf_keras import layers as old

    return Sequential([old.Input((5, 4)), old.Masking(0.0), old.BatchNormalization(), old.LayerNormalization(), old.UnitNormalization(), old.LSTM(3)])


def legacy_batch_axes():
    from tf_keras import Sequential
    from tf_keras import layers as old

    return Sequential([old.Input((3, 4)), old.BatchNormalization(axis=[1, 2]), old.BatchNormalization(axis=[2])])
