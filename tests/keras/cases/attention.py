"""Attention layers: every option, and masks that come with the tensors or by name."""

import keras
import numpy as np
from harness import case
from keras import layers, ops

IDS = np.int32([[1, 2, 3, 0, 0], [4, 5, 0, 0, 0], [6, 1, 2, 3, 4]])
SOURCE = np.int32([[3, 0, 0, 0], [1, 2, 3, 4], [5, 6, 0, 0]])


def cases():
    yield from multi_head()
    yield from grouped()
    yield from plain()
    yield from masked()
    yield from legacy()


def called(name, make, *shapes, arguments=None, **options):
    """A model of one layer, which is called with the inputs one by one."""

    def model():
        inputs = [keras.Input(shape) for shape in shapes]
        return keras.Model(inputs, make()(*inputs, **(arguments or {})))

    return case(name, model, **options)


def multi_head():
    heads = layers.MultiHeadAttention
    q, v = (5, 8), (4, 6)
    yield called("multi_head", lambda: heads(2, 3), q, q)
    yield case("multi_head_of_integers", multi_head_of_integers())
    yield called("multi_head_query_and_value", lambda: heads(2, 3), q, v)
    yield called("multi_head_query_value_and_key", lambda: heads(2, 3), q, v, (4, 7))
    yield called("multi_head_without_bias", lambda: heads(2, 3, use_bias=False), q, v)
    yield called("multi_head_value_dim", lambda: heads(2, 3, value_dim=5), q, v, oracle="tensorflow")
    yield called("multi_head_value_dim_with_scores", lambda: heads(2, 3, value_dim=5), q, v, arguments={"return_attention_scores": True})
    yield called("multi_head_output_shape", lambda: heads(2, 3, output_shape=7), q, v)
    yield called("multi_head_output_shape_of_two_axes", lambda: heads(2, 3, output_shape=(3, 4)), q, v)
    yield called("multi_head_dropout", lambda: heads(2, 3, dropout=0.3), q, v)
    yield called("multi_head_gate", lambda: heads(2, 3, use_gate=True), q, v)
    yield called("multi_head_gate_value_dim", lambda: heads(2, 3, value_dim=5, use_gate=True, dropout=0.1), q, v)
    yield called("multi_head_causal", lambda: heads(2, 3), q, q, arguments={"use_causal_mask": True})
    yield called("multi_head_causal_with_scores", lambda: heads(2, 3), q, v, arguments={"use_causal_mask": True, "return_attention_scores": True})
    yield called("multi_head_causal_with_dropout", lambda: heads(2, 3, dropout=0.1), q, v, arguments={"use_causal_mask": True})
    yield called("multi_head_causal_longer_source", lambda: heads(1, 3), (3, 8), (6, 8), arguments={"use_causal_mask": True})
    yield called("multi_head_sliding_window", lambda: heads(2, 3, sliding_window=2), q, v)
    yield called("multi_head_sliding_window_causal", lambda: heads(2, 3, sliding_window=2), q, q, arguments={"use_causal_mask": True})
    yield called("multi_head_scores", lambda: heads(3, 2), q, v, arguments={"return_attention_scores": True})
    yield called("multi_head_of_images", lambda: heads(2, 3), (3, 4, 8), (3, 4, 8))
    for axes in [(1,), (2,), (1, 2), (2, 1), (-2,)]:
        name = "_".join(str(axis).replace("-", "minus_") for axis in axes)
        yield called(f"multi_head_attention_axes_{name}", lambda axes=axes: heads(2, 3, attention_axes=axes), (3, 4, 8), (3, 4, 8), arguments={"return_attention_scores": True})
    yield called("multi_head_attention_axes_without_scores", lambda: heads(2, 3, attention_axes=2), (3, 4, 8), (3, 6, 8))
    yield called("multi_head_of_volumes", lambda: heads(1, 3, attention_axes=(1, 3)), (2, 3, 2, 5), (2, 3, 2, 5))
    yield called("multi_head_one_head", lambda: heads(1, 8), q, q)
    yield called("multi_head_unknown_length", lambda: heads(2, 3), (None, 8), (None, 8), arguments={"use_causal_mask": True})
    for dtype in ("mixed_float16", "mixed_bfloat16"):
        oracle = "tensorflow" if dtype == "mixed_float16" else "jax"  # JAX's attention has no 16-bit floats on a CPU
        yield called(f"multi_head_{dtype}", lambda dtype=dtype: heads(2, 3, dtype=dtype), q, v, oracle=oracle)
        yield called(f"multi_head_{dtype}_with_scores", lambda dtype=dtype: heads(2, 3, dtype=dtype), q, v, arguments={"return_attention_scores": True})
    yield case("multi_head_float64", multi_head_float64, oracle="tensorflow")
    yield case("multi_head_mask_by_name", attention_mask_by_name)
    yield case("multi_head_mask_by_name_with_scores", lambda: attention_mask_by_name(scores=True))
    yield case("multi_head_shared", shared)
    yield case("multi_head_keyword_arguments", keyword_arguments, formats=("keras",))


def multi_head_float64():
    x = keras.Input((5, 8), dtype="float64")
    return keras.Model(x, layers.MultiHeadAttention(2, 3, dtype="float64")(x, x))


def attention_mask_by_name(scores=False):
    q, v, mask = keras.Input((5, 8)), keras.Input((4, 6)), keras.Input((5, 4), dtype="bool")
    attention = layers.MultiHeadAttention(2, 3)
    return keras.Model([q, v, mask], attention(q, v, attention_mask=mask, return_attention_scores=scores, use_causal_mask=scores))


def shared():
    q, v = keras.Input((5, 8)), keras.Input((4, 8))
    attention = layers.MultiHeadAttention(2, 3)
    return keras.Model([q, v], [attention(q, v), attention(v, q), attention(attention(q, q), v)])


def keyword_arguments():
    q, v, k = keras.Input((5, 8)), keras.Input((4, 6)), keras.Input((4, 7))
    return keras.Model([q, v, k], layers.MultiHeadAttention(2, 3)(query=q, value=v, key=k))


def grouped():
    grouped_heads = layers.GroupQueryAttention
    q, v = (5, 8), (4, 8)
    yield called("grouped", lambda: grouped_heads(3, 4, 2), q, v)
    yield called("grouped_one_key", lambda: grouped_heads(3, 4, 1), q, v)
    yield called("grouped_all_keys", lambda: grouped_heads(3, 2, 2, use_bias=False), q, v)
    yield called("grouped_query_value_and_key", lambda: grouped_heads(3, 4, 2), q, v, (4, 7))
    yield called("grouped_gate", lambda: grouped_heads(3, 4, 2, use_gate=True), q, v)
    yield called("grouped_causal", lambda: grouped_heads(3, 4, 2), q, q, arguments={"use_causal_mask": True})
    yield called("grouped_scores", lambda: grouped_heads(3, 4, 2, dropout=0.2), q, v, arguments={"return_attention_scores": True})
    yield called("grouped_causal_scores", lambda: grouped_heads(3, 4, 2), q, v, arguments={"return_attention_scores": True, "use_causal_mask": True})
    yield called("grouped_sliding_window", lambda: grouped_heads(3, 4, 2, sliding_window=2), q, q, arguments={"use_causal_mask": True})
    yield called("grouped_mixed_bfloat16", lambda: grouped_heads(3, 4, 2, dtype="mixed_bfloat16"), q, v)
    yield case("grouped_twice", grouped_twice)


def grouped_twice():
    x = keras.Input((5, 8))
    y = layers.GroupQueryAttention(3, 4, 2)(x, x)
    return keras.Model(x, layers.GroupQueryAttention(2, 2, 1)(y, x))


def plain():
    def listed(name, make, *shapes, arguments=None, **options):
        def model():
            inputs = [keras.Input(shape) for shape in shapes]
            return keras.Model(inputs, make()(inputs, **(arguments or {})))

        return case(name, model, **options)

    q, v, k = (5, 6), (4, 6), (4, 6)
    for name, kind in (("attention", layers.Attention), ("additive", layers.AdditiveAttention)):
        yield listed(name, kind, q, v)
        yield listed(f"{name}_key", kind, q, (4, 7), k)
        yield listed(f"{name}_scale", lambda kind=kind: kind(use_scale=True), q, v)
        yield listed(f"{name}_without_scale", lambda kind=kind: kind(use_scale=False), q, v)
        yield listed(f"{name}_dropout", lambda kind=kind: kind(dropout=0.4), q, v)
        yield listed(f"{name}_causal", kind, q, v, arguments={"use_causal_mask": True})
        yield listed(f"{name}_scores", lambda kind=kind: kind(use_scale=True), q, v, k, arguments={"return_attention_scores": True})
        yield listed(f"{name}_float16", lambda kind=kind: kind(dtype="mixed_float16"), q, v)
    yield listed("attention_concat", lambda: layers.Attention(score_mode="concat"), q, v)
    yield listed("attention_concat_scale", lambda: layers.Attention(score_mode="concat", use_scale=True), q, v, k)
    yield listed("attention_of_several_axes", layers.Attention, (3, 5, 6), (3, 4, 6))


def masked():
    heads, grouped_heads = layers.MultiHeadAttention, layers.GroupQueryAttention
    for name, kind in (("multi_head", lambda **o: heads(2, 3, **o)), ("grouped", lambda **o: grouped_heads(3, 4, 2, **o))):
        for detail, options, arguments in (("", {}, {}), ("_dropout", {"dropout": 0.1}, {}), ("_scores", {}, {"return_attention_scores": True}),
                                           ("_causal", {}, {"use_causal_mask": True})):  # fmt: skip
            yield case(f"{name}_masked{detail}", lambda kind=kind, o=options, a=arguments: self_attention(kind(**o), a), IDS)
            yield case(f"{name}_masked_source{detail}", lambda kind=kind, o=options, a=arguments: cross_attention(kind(**o), a), [IDS, SOURCE])
        yield case(f"{name}_masked_twice", lambda kind=kind: twice(kind), IDS)
        yield case(f"{name}_masked_source_twice", lambda kind=kind: source_twice(kind), [IDS, SOURCE])
        yield case(f"{name}_masked_side_by_side", lambda kind=kind: side_by_side(kind), IDS)
        yield case(f"{name}_masked_through_layers", lambda kind=kind: through_layers(kind), IDS)
        yield case(f"{name}_masked_pooled", lambda kind=kind: pooled(kind), IDS, formats=("keras",))
        yield case(f"{name}_value_mask_by_name", lambda kind=kind: value_mask_by_name(kind), [IDS, SOURCE], formats=("keras",))
        yield case(f"{name}_masked_mixed_float16", lambda kind=kind: twice(kind, dtype="mixed_float16"), IDS, oracle="tensorflow")
    for name, kind in (("attention", layers.Attention), ("additive", layers.AdditiveAttention)):
        for detail, arguments in (("", {}), ("_causal", {"use_causal_mask": True}), ("_scores", {"return_attention_scores": True})):
            yield case(f"{name}_masked{detail}", lambda kind=kind, a=arguments: listed_attention(kind(), a), [IDS, SOURCE])
        yield case(f"{name}_masked_pooled", lambda kind=kind: listed_pooled(kind()), [IDS, SOURCE], formats=("keras",))
        yield case(f"{name}_mask_by_name", lambda kind=kind: mask_by_name(kind()), formats=("keras",))
        yield case(f"{name}_masked_float16", lambda kind=kind: listed_attention(kind(dtype="mixed_float16"), {}), [IDS, SOURCE])


def embedded(length, width=8, **options):
    ids = keras.Input((length,), dtype="int32")
    return ids, layers.Embedding(7, width, mask_zero=True, **options)(ids)


def self_attention(attention, arguments):
    ids, x = embedded(5)
    return keras.Model(ids, attention(x, x, **arguments))


def cross_attention(attention, arguments):
    ids, x = embedded(5)
    source, y = embedded(4)
    return keras.Model([ids, source], attention(x, y, **arguments))


def twice(kind, dtype="float32"):
    ids, x = embedded(5)
    y = kind(dtype=dtype)(x, x)
    return keras.Model(ids, [y, kind(dtype=dtype)(y, x)])


def source_twice(kind):
    ids, x = embedded(5)
    source, y = embedded(4)
    once = kind()(x, y)
    return keras.Model([ids, source], [once, kind()(once, y), kind()(layers.Dense(8)(y), y)])


def side_by_side(kind):
    ids, x = embedded(5)
    return keras.Model(ids, [kind()(x, x), kind()(x, x), layers.Add()([kind()(x, x), x])])


def through_layers(kind):
    ids, x = embedded(5)
    x = layers.Dropout(0.1)(layers.LayerNormalization()(x))
    x = layers.LayerNormalization()(layers.Add()([x, kind()(x, x)]))
    return keras.Model(ids, kind()(layers.Dense(8)(x), x))


def pooled(kind):
    ids, x = embedded(5)
    x = layers.Add()([x, kind()(x, x)])
    return keras.Model(ids, layers.GlobalAveragePooling1D()(layers.LayerNormalization()(kind()(x, x))))


def value_mask_by_name(kind):
    ids, source = keras.Input((5,), dtype="int32"), keras.Input((4,), dtype="int32")
    x, y = layers.Embedding(7, 8)(ids), layers.Embedding(7, 8)(source)
    return keras.Model([ids, source], kind()(x, y, value_mask=ops.not_equal(source, 0), query_mask=ops.not_equal(ids, 0)))


def listed_attention(attention, arguments):
    ids, x = embedded(5)
    source, y = embedded(4)
    return keras.Model([ids, source], attention([x, y], **arguments))


def listed_pooled(attention):
    ids, x = embedded(5)
    source, y = embedded(4)
    return keras.Model([ids, source], layers.GlobalAveragePooling1D()(attention([x, y, layers.Dense(8)(y)])))


def mask_by_name(attention):
    q, v = keras.Input((5, 6)), keras.Input((4, 6))
    qm, vm = keras.Input((5,), dtype="bool"), keras.Input((4,), dtype="bool")
    return keras.Model([q, v, qm, vm], [attention([q, v], mask=[qm, vm]), attention([q, v], mask=[None, vm])])


def legacy():
    yield case("legacy_multi_head", legacy_multi_head, [IDS, SOURCE], oracle="tf_keras")
    yield case("legacy_multi_head_scores", lambda: legacy_multi_head(return_attention_scores=True, use_causal_mask=True), [IDS, SOURCE], oracle="tf_keras")
    yield case("legacy_multi_head_of_images", legacy_images, oracle="tf_keras")
    for name in ("Attention", "AdditiveAttention"):
        yield case(f"legacy_{name.lower()}", lambda name=name: legacy_plain(name), [IDS, SOURCE], oracle="tf_keras")
        yield case(f"legacy_{name.lower()}_causal", lambda name=name: legacy_plain(name, use_causal_mask=True, return_attention_scores=True), [IDS, SOURCE],
                   oracle="tf_keras")


def legacy_embedded(length):
    from tf_keras import Input
    from tf_keras import layers as old

    ids = Input((length,), dtype="int32")
    return ids, old.Embedding(7, 8, mask_zero=True)(ids)


def legacy_multi_head(**arguments):
    from tf_keras import Model
    from tf_keras import layers as old

    (ids, x), (source, y) = legacy_embedded(5), legacy_embedded(4)
    first = old.MultiHeadAttention(2, 3, value_dim=5)(x, y, **arguments)
    if arguments:
        return Model([ids, source], first)
    return Model([ids, source], [first, old.MultiHeadAttention(2, 3, output_shape=6, dropout=0.1)(first, y, key=old.Dense(7)(y))])


def legacy_images():
    from tf_keras import Input, Model
    from tf_keras import layers as old

    x = Input((3, 4, 8))
    return Model(x, [old.MultiHeadAttention(2, 3, attention_axes=(1, 2))(x, x), old.MultiHeadAttention(2, 3, attention_axes=(2,))(x, x)])


def legacy_plain(name, **arguments):
    from tf_keras import Model
    from tf_keras import layers as old

    (ids, x), (source, y) = legacy_embedded(5), legacy_embedded(4)
    return Model([ids, source], getattr(old, name)(use_scale=True)([x, y], **arguments))


def multi_head_of_integers():
    x = keras.Input((4, 6), dtype="int32")
    return keras.Model(x, layers.MultiHeadAttention(2, 3)(x, x))
