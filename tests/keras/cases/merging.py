"""Layers that make one tensor of several: ranks that differ, masks, dtypes."""

import keras
import numpy as np
from harness import case, layer, padded
from keras import layers

SERIES = [padded(3, 5, 3, value=0.1), padded(3, 5, 3, value=0.1)[::-1].copy()]
ELEMENTWISE = [layers.Add, layers.Subtract, layers.Multiply, layers.Average, layers.Maximum, layers.Minimum]


def with_constant(merge):
    x = keras.Input((4, 3))
    return keras.Model(x, merge(x, keras.ops.convert_to_tensor(np.arange(12, dtype="float32").reshape(1, 4, 3))))


# Wide enough that two threads make one tower each, and what joins them reads through their last layers.
def towers(end, join):
    x = keras.Input((768,))
    first, second = [end(layers.Dense(24)(layers.Dense(256, activation="relu")(x))) for _ in range(2)]
    return keras.Model(x, join(first, second))


def duelling():
    x = keras.Input((768,))
    value, advantage = [layers.Dense(units)(layers.Dense(256, activation="relu")(x)) for units in (1, 6)]
    return keras.Model(x, [value + (advantage - keras.ops.mean(advantage, axis=1, keepdims=True)), keras.ops.exp(value - advantage)])


def attending():
    x = keras.Input((20, 128))
    return keras.Model(x, layers.AdditiveAttention()([layers.Dense(64)(x), layers.Dense(64)(x)]))


def cases():
    ops = keras.ops
    yield case("towers_duelling", duelling(), formats=("keras",))
    yield case("towers_attending", attending())
    yield case("towers_repeated", towers(lambda x: ops.tile(ops.expand_dims(x, 1), (1, 5, 1)), lambda a, b: ops.tanh(a + b)), formats=("keras",))
    yield case("towers_crossed", towers(lambda x: x, lambda a, b: ops.expand_dims(a, 1) * ops.expand_dims(b, 2)), formats=("keras",))
    yield case("towers_cut", towers(lambda x: x[:, 3:19:2], lambda a, b: a * b - b), formats=("keras",))
    yield case("towers_turned", towers(lambda x: ops.transpose(ops.reshape(x, (-1, 4, 6)), (0, 2, 1)), lambda a, b: ops.matmul(a, ops.transpose(b, (0, 2, 1)))), formats=("keras",))
    yield layer("add_whole_numbers", layers.Add(dtype="int32"), (4,), (4,), inputs=[np.float32([[1.7, -1.7, 0.2, 9.9]]), np.float32([[0.7, -0.7, 0.9, 1]])])
    for kind in ELEMENTWISE:
        name = kind.__name__.lower()
        yield layer(name, kind(), (4,), (4,))
        yield layer(f"{name}_images", kind(), (3, 4, 2), (3, 4, 2))
        yield layer(f"{name}_broadcast", kind(), (3, 1, 2), (3, 4, 1))
        yield layer(f"{name}_ranks", kind(), (3, 4, 2), (2,))
        yield layer(f"{name}_ranks_turned", kind(), (4,), (5, 3, 4))
        yield layer(f"{name}_open", kind(), (None, 4), (None, 4))
        yield layer(f"{name}_open_and_fixed", kind(), (None, 4), (7, 4), length=7)
        yield layer(f"{name}_float16", kind(dtype="mixed_float16"), (4,), (4,))
        yield layer(f"{name}_integers", kind(), (4,), (4,), dtype="int32", inputs=[np.arange(8).reshape(2, 4), np.arange(8).reshape(2, 4) % 3])
        yield layer(f"{name}_integers_and_floats", kind(), (4,), (4,), dtype=["int32", "float32"])
        yield case(f"{name}_masked", masked(kind, "both"), SERIES)
        yield case(f"{name}_one_masked", masked(kind, "left"), SERIES)
        yield case(f"{name}_masked_ranks", masked_ranks(kind), [SERIES[0], SERIES[1][:, 0]])
        yield case(f"legacy_{name}_masked", legacy_masked(kind.__name__, "both"), SERIES, oracle="tf_keras")
        yield case(f"legacy_{name}_one_masked", legacy_masked(kind.__name__, "left"), SERIES, oracle="tf_keras")
        if kind is not layers.Subtract:
            yield layer(f"{name}_five", kind(), *[(4,)] * 5)
            yield layer(f"{name}_three_ranks", kind(), (4,), (3, 4), (2, 3, 4))
    yield case("same_input_twice", same_input_twice())
    yield case("add_a_constant", with_constant(lambda x, array: layers.Add()([x, array])))
    yield case("multiply_by_a_constant", with_constant(lambda x, array: layers.Multiply()([x, array])))
    yield case("concatenate_a_constant_batch_1", with_constant(lambda x, array: layers.Concatenate(axis=1)([x, array])), batch=1)
    yield case("attention_with_a_constant_mask", with_constant(lambda x, array: layers.MultiHeadAttention(1, 2)(x, x, attention_mask=np.tril(np.ones((1, 4, 4), "bool")))))
    yield layer("concatenate", layers.Concatenate(), (3,), (4,))
    yield layer("concatenate_many", layers.Concatenate(), (3,), (4,), (1,), (2,))
    yield layer("concatenate_axis_1", layers.Concatenate(axis=1), (3, 2), (4, 2))
    yield layer("concatenate_axis_minus_2", layers.Concatenate(axis=-2), (3, 5, 2), (3, 1, 2))
    yield layer("concatenate_axis_3", layers.Concatenate(axis=3), (3, 5, 2), (3, 5, 1))
    yield layer("concatenate_open", layers.Concatenate(axis=1), (None, 2), (None, 2))
    yield layer("concatenate_integers_and_floats", layers.Concatenate(), (3,), (4,), dtype=["int32", "float32"])
    yield layer("concatenate_float16", layers.Concatenate(dtype="float16"), (3,), (4,))
    for which in ("both", "left"):
        for axis in (-1, 1):
            yield case(f"concatenate_masked_{which}_{axis % 3}", masked(lambda axis=axis: layers.Concatenate(axis=axis), which), SERIES)
    yield case("legacy_concatenate_masked", legacy_masked("Concatenate", "both"), SERIES, oracle="tf_keras")
    yield case("legacy_concatenate_one_masked", legacy_masked("Concatenate", "left"), SERIES, oracle="tf_keras")
    yield layer("dot", layers.Dot(axes=1), (4,), (4,))
    yield layer("dot_normalized", layers.Dot(axes=1, normalize=True), (4,), (4,))
    yield layer("dot_normalized_zero", layers.Dot(axes=1, normalize=True), (4,), (4,), inputs=[np.zeros((2, 4)), np.ones((2, 4))])
    yield layer("dot_negative_axis", layers.Dot(axes=-1), (4,), (3, 4))
    yield layer("dot_two_axes", layers.Dot(axes=(1, 2)), (3, 5), (6, 3))
    yield layer("dot_matrix_vector", layers.Dot(axes=(2, 1)), (3, 5), (5,))
    yield layer("dot_vector_matrix", layers.Dot(axes=(1, 2)), (5,), (3, 5))
    yield layer("dot_same_axis", layers.Dot(axes=2), (3, 5), (4, 5))
    yield layer("dot_rank_4", layers.Dot(axes=(2, 1)), (2, 3, 4), (3, 5))
    yield layer("dot_rank_4_and_4", layers.Dot(axes=(3, 2)), (2, 3, 4), (5, 4, 6))
    yield layer("dot_normalized_matrices", layers.Dot(axes=(1, 2), normalize=True), (3, 5), (6, 3))
    yield layer("dot_float16", layers.Dot(axes=1, dtype="float16"), (4,), (4,))
    yield case("legacy_dot", legacy_dot, oracle="tf_keras")
    yield case("legacy_merges", legacy_merges, oracle="tf_keras")


def masked(kind, which):
    """Two masked series, their merge, and an LSTM that shows the mask."""
    left, right = keras.Input((5, 3)), keras.Input((5, 3))
    a = layers.Masking(0.1)(left)
    b = layers.Masking(0.1)(right) if which == "both" else right
    merged = kind()([a, b])
    return keras.Model([left, right], [merged, layers.LSTM(3)(merged)])


def masked_ranks(kind):
    left, right = keras.Input((5, 3)), keras.Input((3,))
    merged = kind()([layers.Masking(0.1)(left), right])
    return keras.Model([left, right], [merged, layers.LSTM(3)(merged)])


def same_input_twice():
    x = keras.Input((4,))
    return keras.Model(x, [layers.Add()([x, x]), layers.Concatenate()([x, x, x]), layers.Dot(axes=1)([x, x])])


def legacy_masked(name, which):
    def model():
        from tf_keras import Input, Model
        from tf_keras import layers as old

        left, right = Input((5, 3)), Input((5, 3))
        a = old.Masking(0.1)(left)
        b = old.Masking(0.1)(right) if which == "both" else right
        merged = getattr(old, name)()([a, b])
        return Model([left, right], [merged, old.LSTM(3)(merged)])

    return model


def legacy_dot():
    from tf_keras import Input, Model
    from tf_keras import layers as old

    a, b, v = Input((3, 5)), Input((6, 3)), Input((5,))
    return Model([a, b, v], [old.Dot(axes=(1, 2), normalize=True)([a, b]), old.Dot(axes=-1)([a, v]), old.Dot(axes=1)([v, v])])


def legacy_merges():
    from tf_keras import Input, Model
    from tf_keras import layers as old

    a, b = Input((3, 4)), Input((4,))
    kinds = [old.Add, old.Subtract, old.Multiply, old.Average, old.Maximum, old.Minimum]
    return Model([a, b], [kind()([a, b]) for kind in kinds] + [old.Concatenate(axis=1)([a, a])])
