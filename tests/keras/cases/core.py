"""Models and the layers nearly all of them have: Sequential, Functional, several inputs and outputs, shared and nested layers."""

import keras
import numpy as np
from harness import case, layer
from keras import layers


def cases():
    yield layer("dense", layers.Dense(4), (5,))
    yield layer("dense_relu", layers.Dense(4, activation="relu"), (5,))
    yield layer("dense_without_bias", layers.Dense(3, use_bias=False), (5,))
    yield layer("dense_on_the_last_axis", layers.Dense(3), (2, 4, 5))
    yield layer("embedding", layers.Embedding(7, 3), (6,), dtype="int32", inputs=np.arange(18).reshape(3, 6) % 7)
    yield layer("dense_float16", layers.Dense(4, dtype="mixed_float16"), (5,))
    yield layer("dense_bfloat16", layers.Dense(4, dtype="bfloat16"), (5,))
    yield layer("dense_float64", lambda: layers.Dense(4, dtype="float64"), (5,), dtype="float64", oracle="tensorflow")
    yield case("sequential", keras.Sequential([keras.Input((5,)), layers.Dense(4, activation="tanh"), layers.Dense(2)]))
    yield case("two_inputs_two_outputs", two_inputs_two_outputs())
    yield case("siamese", siamese())
    yield case("nested", nested())
    yield case("batch_size_in_the_file", fixed_batch())
    yield case("lambda", keras.Sequential([keras.Input((3,)), layers.Lambda(lambda x: x * 2)]), refused="Lambda")


def two_inputs_two_outputs():
    left, right = keras.Input((3,), name="left"), keras.Input((4,), name="right")
    both = layers.Concatenate()([left, right])
    return keras.Model([left, right], [layers.Dense(2, name="small")(both), layers.Dense(5, name="large")(both)])


def siamese():
    tower = keras.Sequential([keras.Input((4,)), layers.Dense(3, activation="relu")])
    left, right = keras.Input((4,)), keras.Input((4,))
    return keras.Model([left, right], layers.Subtract()([tower(left), tower(right)]))


def nested():
    inner_input = keras.Input((4,))
    inner = keras.Model(inner_input, layers.Dense(3, activation="relu")(inner_input))
    outer_input = keras.Input((5,))
    return keras.Model(outer_input, layers.Dense(2)(keras.Sequential([inner, layers.Dense(4)])(layers.Dense(4)(outer_input))))


def fixed_batch():
    x = keras.Input(batch_shape=(2, 5))
    return keras.Model(x, layers.Dense(4)(x))
