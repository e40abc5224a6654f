"""Activations: by name, as a layer inside another layer, and the layers of their own."""

import keras
import numpy as np
from harness import case, layer, padded
from keras import layers

NAMES = """linear relu leaky_relu relu6 softmax log_softmax celu elu selu softplus softsign squareplus soft_shrink sparse_plus silu swish gelu
glu tanh tanh_shrink sigmoid sparse_sigmoid exponential hard_sigmoid hard_silu hard_swish hard_tanh hard_shrink mish log_sigmoid sparsemax""".split()
LEGACY_NAMES = "linear relu softmax elu selu softplus softsign swish gelu tanh sigmoid exponential hard_sigmoid mish".split()

# Every branch of every function, and values at which naive formulas overflow.
WIDE = np.concatenate([np.linspace(-4, 4, 33), [-90, -30, -10, -1, -0.5, 0, 0.5, 1, 3, 6, 8, 30, 60]]).astype("float32").reshape(1, 46)


def cases():
    for name in NAMES:
        yield layer(f"dense_{name}", layers.Dense(6, activation=name), (5,))
        wide = np.minimum(WIDE, 8) if name == "exponential" else WIDE
        yield layer(f"wide_{name}", layers.Activation(name), (46,), inputs=wide, formats=("keras",))
        yield layer(f"float16_{name}", layers.Activation(name, dtype="float16"), (6,), formats=("keras",))
    for name in LEGACY_NAMES:
        yield case(f"legacy_{name}", legacy(name), oracle="tf_keras")
    yield layer("function_object", layers.Dense(4, activation=keras.activations.gelu), (5,))
    yield layer("activation_softmax_rank_4", layers.Activation("softmax"), (2, 3, 4))
    yield layer("dense_of_leaky_relu_layer", layers.Dense(4, activation=layers.LeakyReLU(0.1)), (5,))
    yield layer("dense_of_activation_layer", layers.Dense(4, activation=layers.Activation("selu")), (5,))
    yield layer("dense_of_prelu_layer", layers.Dense(4, activation=layers.PReLU()), (5,), formats=("keras",))
    yield layer("dense_of_softmax_layer", layers.Dense(4, activation=layers.Softmax(axis=1)), (3, 5))
    yield layer("conv_of_elu_layer", layers.Conv1D(4, 2, activation=layers.ELU(0.3)), (5, 3))
    yield layer("lstm_of_leaky_relu_layer", layers.LSTM(4, activation=layers.LeakyReLU(0.1)), (5, 3))
    yield case("activation_bfloat16", keras.Sequential([keras.Input((5,)), layers.Activation("gelu", dtype="bfloat16")]))
    yield layer("activation_of_an_operation", layers.Dense(4, activation=keras.ops.sin), (5,), refused="sin")
    yield case("lambda_activation", keras.Sequential([keras.Input((5,)), layers.Dense(4, activation=lambda x: x * 2)]), refused="code")

    yield layer("relu", layers.ReLU(), (7,))
    yield layer("relu_max_value", layers.ReLU(max_value=0.7), (7,))
    yield layer("relu_six", layers.ReLU(max_value=6), (46,), inputs=WIDE)
    yield layer("relu_max_value_zero", layers.ReLU(max_value=0), (7,))
    yield layer("relu_negative_slope", layers.ReLU(negative_slope=0.2), (7,))
    yield layer("relu_threshold", layers.ReLU(threshold=0.4), (7,))
    yield layer("relu_all", layers.ReLU(max_value=1.1, negative_slope=0.3, threshold=0.2), (46,), inputs=WIDE)
    yield layer("relu_slope_and_max", layers.ReLU(max_value=1.1, negative_slope=0.3), (46,), inputs=WIDE)
    yield layer("relu_slope_and_threshold", layers.ReLU(negative_slope=0.3, threshold=0.5), (46,), inputs=WIDE)
    yield layer("relu_of_integers", layers.ReLU(), (7,), dtype="int32", inputs=np.arange(-10, 11).reshape(3, 7))
    for name, instance in {"relu": layers.ReLU(6, 0.3, 0.5, dtype="int32"), "leaky_relu": layers.LeakyReLU(dtype="int32")}.items():
        yield layer(f"{name}_in_integers", instance, (46,), inputs=WIDE)
    yield layer("leaky_relu_of_integers", layers.LeakyReLU(), (7,), dtype="int32", inputs=np.arange(-10, 11).reshape(3, 7))
    yield layer("leaky_relu", layers.LeakyReLU(), (7,))
    yield layer("leaky_relu_slope", layers.LeakyReLU(0.05), (7,))
    yield layer("elu", layers.ELU(), (7,))
    yield layer("elu_alpha", layers.ELU(alpha=0.4), (7,))
    yield layer("prelu", layers.PReLU(), (4, 5))
    yield layer("prelu_shared", layers.PReLU(shared_axes=[1]), (4, 5))
    yield layer("prelu_shared_images", layers.PReLU(shared_axes=[1, 2]), (4, 5, 3))
    yield layer("prelu_shared_open_extents", layers.PReLU(shared_axes=[1, 2]), (None, None, 3))
    yield layer("prelu_negative_axis", layers.PReLU(shared_axes=[-1]), (4, 5, 3))
    yield layer("prelu_float16", layers.PReLU(dtype="mixed_float16"), (5,))
    yield layer("softmax", layers.Softmax(), (5,))
    yield layer("softmax_axis", layers.Softmax(axis=1), (4, 5))
    yield layer("softmax_two_axes", layers.Softmax(axis=(1, 2)), (4, 5), formats=("keras",))
    yield layer("softmax_axes_of_one", layers.Softmax(axis=[-1]), (4, 5), formats=("keras",))
    yield layer("softmax_large", layers.Softmax(), (46,), inputs=WIDE * 100)
    yield layer("softmax_open", layers.Softmax(axis=1), (None, 5))
    yield case("softmax_masked", softmax_masked("bool"), formats=("keras",))
    yield case("softmax_float_mask", softmax_masked("float32"), formats=("keras",))
    yield case("softmax_float16_mask", softmax_masked("bool", "float16"), formats=("keras",))
    yield case("softmax_two_axes_masked", softmax_masked("bool", axis=(1, 2)), formats=("keras",))
    yield case("softmax_broadcast_mask", broadcast_mask(), formats=("keras",))
    yield case("softmax_all_masked", softmax_masked("bool"), [np.ones((2, 3, 4), "float32"), np.zeros((2, 3, 4), bool)], formats=("keras",))
    yield case("mask_goes_through", mask_goes_through(), padded(3, 6, 3))

    yield case("legacy_layers", legacy_layers, oracle="tf_keras")
    yield case("legacy_softmax_layer", legacy_softmax, oracle="tf_keras")
    yield case("legacy_dense_of_layer", legacy_dense_of_layer, oracle="tf_keras")


def softmax_masked(mask_dtype, dtype="float32", axis=-1):
    x, mask = keras.Input((3, 4)), keras.Input((3, 4), dtype=mask_dtype)
    return keras.Model([x, mask], layers.Softmax(axis=axis, dtype=dtype)(x, mask=mask))


def broadcast_mask():
    x, mask = keras.Input((3, 4)), keras.Input((1, 4), dtype="bool")
    return keras.Model([x, mask], layers.Softmax()(x, mask))


def mask_goes_through():
    every = [layers.ReLU(), layers.LeakyReLU(), layers.ELU(), layers.PReLU(), layers.Activation("tanh")]
    return keras.Sequential([keras.Input((6, 3)), layers.Masking(0.0), *every, layers.LSTM(3)])


def legacy(name):
    def model():
        from tf_keras import Sequential
        from tf_keras import layers as legacy_layers

        return Sequential([legacy_layers.Input((5,)), legacy_layers.Dense(6, activation=name), legacy_layers.Activation(name)])

    return model


def legacy_layers():
    from tf_keras import Sequential
    from tf_keras import layers as old

    return Sequential(
        [
            old.Input((4, 5)),
            old.LeakyReLU(),
            old.LeakyReLU(alpha=0.1),
            old.ELU(alpha=0.7),
            old.ThresholdedReLU(theta=0.2),
            old.PReLU(shared_axes=[1]),
            old.Dense(6),
            old.ReLU(max_value=2.0, negative_slope=0.1, threshold=0.1),
            old.ReLU(6.0),
            old.Softmax(axis=1),
        ]
    )


def legacy_softmax():
    from tf_keras import Input, Model
    from tf_keras import layers as old

    x, mask = Input((3, 4)), Input((3, 4), dtype="bool")
    return Model([x, mask], [old.Softmax()(x, mask), old.Softmax(axis=[1, 2])(x)])


def legacy_dense_of_layer():
    import tensorflow as tf
    from tf_keras import Sequential
    from tf_keras import layers as old

    return Sequential([old.Input((5,)), old.Dense(4, activation=tf.nn.relu), old.Dense(3, activation=tf.nn.silu)])
