"""Models and the layers nearly all of them have: Sequential, Functional, several inputs and outputs, shared and nested layers."""

import keras
import numpy as np
from harness import case, layer, padded
from keras import layers

TOKENS = np.array([[1, 4, 2, 0, 0, 0], [3, 0, 6, 5, 1, 2], [0, 0, 0, 0, 0, 0]], "int32")


def cases():
    yield layer("dense", layers.Dense(4), (5,))
    yield layer("dense_relu", layers.Dense(4, activation="relu"), (5,))
    yield layer("dense_without_bias", layers.Dense(3, use_bias=False), (5,))
    yield layer("dense_on_the_last_axis", layers.Dense(3), (2, 4, 5))
    yield layer("dense_open", layers.Dense(3), (None, None, 5))
    yield layer("dense_options", layers.Dense(3, kernel_initializer="he_normal", bias_regularizer="l2", kernel_constraint="max_norm"), (5,))
    yield layer("dense_float16", layers.Dense(4, dtype="mixed_float16"), (5,))
    yield layer("dense_bfloat16", layers.Dense(4, dtype="bfloat16"), (5,), formats=("keras",))
    yield layer("dense_bfloat16_in_h5", layers.Dense(4, dtype="bfloat16"), (5,), formats=("h5",), refused="it may be bfloat16")  # by Keras too
    yield layer("dense_float64", lambda: layers.Dense(4, dtype="float64"), (5,), dtype="float64", oracle="tensorflow")
    yield layer("dense_of_integers", layers.Dense(4), (5,), dtype="int32")
    yield case("dense_lora", lora(layers.Dense(4, lora_rank=2), (5,)))
    yield case("dense_lora_alpha", lora(layers.Dense(4, lora_rank=2, lora_alpha=5.0), (5,)))
    yield from einsum_dense()
    yield from embedding()
    yield layer("identity", layers.Identity(), (5,))
    yield case("identity_of_several", identity_of_several(), formats=("keras",))
    yield case("identity_masked", keras.Sequential([keras.Input((6, 3)), layers.Masking(0.0), layers.Identity(), layers.LSTM(3)]), padded(3, 6, 3))
    yield layer("masking", layers.Masking(0.5), (6, 3), inputs=padded(3, 6, 3, value=0.5))
    yield layer("masking_default", layers.Masking(), (6, 3), inputs=padded(3, 6, 3))
    yield layer("masking_rank_4", layers.Masking(), (6, 2, 3), inputs=padded(3, 6, 2, 3))
    yield layer("masking_integers", layers.Masking(-1), (6, 3), dtype="int32", inputs=padded(3, 6, 3, value=-1).astype("int32"))
    yield case("masking_over_masking", masking_over_masking(), padded(3, 6, 3))
    yield case("masking_legacy", masking_legacy, padded(3, 6, 3, value=2.0), oracle="tf_keras")

    yield case("sequential", keras.Sequential([keras.Input((5,)), layers.Dense(4, activation="tanh"), layers.Dense(2)]))
    yield case("sequential_without_input", sequential_without_input())
    yield case("two_inputs_two_outputs", two_inputs_two_outputs())
    yield case("siamese", siamese())
    yield case("nested", nested())
    yield case("nested_shared", nested_shared(), formats=("h5",))
    yield case("residual", residual())
    yield case("mixed_precision_stack", mixed_precision_stack())
    yield case("batch_size_in_the_file", fixed_batch())
    yield case("lambda", keras.Sequential([keras.Input((3,)), layers.Lambda(lambda x: x * 2)]), refused="Lambda")


def einsum_dense():
    shapes = {
        "ab,bc->ac": ((4,), 3, (None, "c")),
        "abc,cd->abd": ((4, 5), (4, 3), (None, "d", "bd")),
        "...x,xy->...y": ((4, 5), 3, (None, "y")),
        "ab...,bc->ac...": ((4, 5), 3, (None, "c")),
        "abc,cde->abde": ((4, 5), (4, 2, 3), (None, "de", "e", "d", "be")),
        "abcd,cde->abe": ((4, 2, 3), (None, 5), (None, "e")),
        "abc,bd->adc": ((4, 5), (3, 5), (None, "d", "dc")),
        "...ab,bc->...ac": ((3, 4, 5), (4, 2), (None, "c")),
    }
    for number, (equation, (shape, output_shape, biases)) in enumerate(shapes.items()):
        for bias in biases:
            name = f"einsum_dense_{number}_{bias.lower() if bias else 'plain'}"
            yield layer(name, layers.EinsumDense(equation, output_shape, bias_axes=bias, activation="tanh"), shape)
    yield layer("einsum_dense_open", layers.EinsumDense("abc,cd->abd", (None, 3), bias_axes="d"), (None, 5))
    yield layer("einsum_dense_float16", layers.EinsumDense("abc,cd->abd", (None, 3), bias_axes="d", dtype="mixed_float16"), (4, 5))
    yield case("einsum_dense_lora", lora(layers.EinsumDense("abc,cd->abd", (None, 3), lora_rank=2, bias_axes="d"), (4, 5)))
    yield case("einsum_dense_drops_the_mask", einsum_dense_masked(), padded(3, 6, 3))
    yield case("einsum_dense_legacy", einsum_dense_legacy, oracle="tf_keras")


def embedding():
    tokens = {"dtype": "int32", "inputs": TOKENS}
    yield layer("embedding", layers.Embedding(7, 3), (6,), **tokens)
    yield layer("embedding_mask_zero", layers.Embedding(7, 3, mask_zero=True), (6,), **tokens)
    yield layer("embedding_scalars", layers.Embedding(7, 3), (), dtype="int32", inputs=np.arange(3, dtype="int32"))
    yield layer("embedding_rank_3", layers.Embedding(7, 3), (2, 3), dtype="int32", inputs=TOKENS.reshape(3, 2, 3))
    yield layer("embedding_of_floats", layers.Embedding(7, 3), (6,), inputs=TOKENS.astype("float32") + 0.5)
    yield layer("embedding_of_bytes", layers.Embedding(300, 3), (3,), dtype="uint8", inputs=np.array([[0, 200, 255]], "uint8"))
    yield layer("embedding_of_int64", layers.Embedding(7, 3), (6,), dtype="int64", inputs=TOKENS.astype("int64"))
    yield layer("embedding_outside", layers.Embedding(7, 3), (6,), dtype="int32", inputs=np.array([[0, 6, -1, -7, 7, -8]], "int32"))
    yield layer("embedding_float16", layers.Embedding(7, 3, dtype="mixed_float16"), (6,), **tokens)
    yield layer("embedding_large_index_float16", layers.Embedding(5000, 2, dtype="mixed_float16"), (2,), inputs=np.array([[4099.0, 2049.0]], "float32"))
    yield layer("embedding_options", layers.Embedding(7, 3, embeddings_regularizer="l2", embeddings_constraint="unit_norm"), (6,), **tokens)
    yield layer("embedding_open", layers.Embedding(7, 3, mask_zero=True), (None,), **tokens)
    yield case("embedding_lora", lora(layers.Embedding(7, 3, lora_rank=2), (6,), "int32"), TOKENS)
    yield case("embedding_masked_mean", embedding_masked("sequential"), TOKENS)
    yield case("embedding_masked_functional", embedding_masked("functional"), TOKENS, formats=("keras",))
    yield case("embedding_legacy", embedding_legacy, TOKENS, oracle="tf_keras")
    for name, options in {"tied": {}, "untied": {"tie_weights": False}, "capped": {"logit_soft_cap": 0.7}, "typed": {"reverse_dtype": "float16"}}.items():
        yield case(f"reversible_embedding_{name}", reversible(**options), TOKENS, formats=("keras",))
    yield case("reversible_embedding_lora", reversible(lora_rank=2), TOKENS)
    yield case("reversible_embedding_masked", reversible(mask_zero=True, recurrent=True), TOKENS, formats=("keras",))
    yield case("reversible_embedding_float16", reversible(dtype="mixed_float16"), TOKENS, formats=("keras",))


def lora(instance, shape, dtype="float32"):
    x = keras.Input(shape, dtype=dtype)
    return keras.Model(x, instance(x))


def einsum_dense_masked():
    return keras.Sequential([keras.Input((6, 3)), layers.Masking(0.0), layers.EinsumDense("abc,cd->abd", (None, 3)), layers.LSTM(3)])


def einsum_dense_legacy():
    from tf_keras import Sequential
    from tf_keras import layers as old

    return Sequential([old.Input((4, 5)), old.EinsumDense("abc,cd->abd", (None, 3), bias_axes="d"), old.EinsumDense("...x,xy->...y", 2)])


def embedding_masked(kind):
    stack = [layers.Embedding(7, 3, mask_zero=True), layers.Dense(4), layers.GlobalAveragePooling1D()]
    if kind == "sequential":
        return keras.Sequential([keras.Input((6,), dtype="int32"), *stack])
    x = y = keras.Input((6,), dtype="int32")
    for instance in stack:
        y = instance(y)
    return keras.Model(x, y)


def embedding_legacy():
    from tf_keras import Sequential
    from tf_keras import layers as old

    return Sequential([old.Embedding(7, 3, input_length=6, mask_zero=True), old.Dense(4), old.LSTM(2)])


def reversible(recurrent=False, **options):
    x = keras.Input((6,), dtype="int32")
    shared = layers.ReversibleEmbedding(7, 3, **options)
    y = shared(x)
    z = layers.LSTM(3, return_sequences=True)(y) if recurrent else layers.Dense(3)(y)
    return keras.Model(x, [y, shared(z, reverse=True)])


def identity_of_several():
    a, b = keras.Input((3,)), keras.Input((4,))
    first, second = layers.Identity()([a, b])
    return keras.Model([a, b], [layers.Dense(2)(first), second])


def masking_over_masking():
    return keras.Sequential([keras.Input((6, 3)), layers.Masking(0.0), layers.Masking(5.0), layers.LSTM(3)])


def masking_legacy():
    from tf_keras import Sequential
    from tf_keras import layers as old

    return Sequential([old.Input((6, 3)), old.Masking(2.0), old.Dense(3), old.LSTM(3)])


def sequential_without_input():
    model = keras.Sequential([layers.Dense(4, activation="relu"), layers.Dense(2)])
    model.build((None, 5))
    return model


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


def nested_shared():
    shared = layers.Dense(4)
    a = keras.Input((4,))
    inner = keras.Model(a, layers.Activation("tanh")(shared(a)))
    b = keras.Input((4,))
    return keras.Model(b, layers.Add()([inner(shared(b)), shared(inner(b))]))


def residual():
    x = keras.Input((8,))
    y = layers.Dense(8)(x)
    for _ in range(3):
        z = layers.BatchNormalization()(layers.Dense(8, activation="relu")(y))
        y = layers.Add()([y, layers.Dropout(0.1)(z)])
    return keras.Model(x, layers.Dense(3, activation="softmax")(layers.LayerNormalization()(y)))


def mixed_precision_stack():
    return keras.Sequential(
        [
            keras.Input((5,)),
            layers.Dense(8, activation="gelu", dtype="mixed_float16"),
            layers.LayerNormalization(dtype="mixed_float16"),
            layers.Dense(4, dtype="mixed_bfloat16"),
            layers.Dense(3, dtype="float32"),
        ]
    )


def fixed_batch():
    x = keras.Input(batch_shape=(2, 5))
    return keras.Model(x, layers.Dense(4)(x))
