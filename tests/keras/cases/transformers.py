"""Transformers as people write them with layers and operations: encoders, decoders, language models, vision transformers, forecasters."""

import keras
import numpy as np
from harness import case
from keras import layers, ops

IDS = np.int32([[1, 2, 3, 4, 0, 0], [5, 6, 7, 0, 0, 0], [8, 1, 2, 3, 4, 5]])
TARGET = np.int32([[1, 2, 3, 0, 0], [4, 5, 6, 7, 8], [2, 0, 0, 0, 0]])
WORDS, WIDTH = 10, 8


def cases():
    both = dict(inputs=[IDS, TARGET])
    yield case("encoder", encoder)
    yield case("encoder_first_normalized", lambda: encoder(first=True))
    yield case("encoder_of_two_blocks", lambda: encoder(blocks=2, dropout=0.1))
    yield case("encoder_gelu_mixed_bfloat16", lambda: encoder(activation="gelu", dtype="mixed_bfloat16"))
    yield case("classifier_of_tokens", classifier, IDS)
    yield case("classifier_of_masked_tokens", lambda: classifier(mask_zero=True), IDS)
    yield case("classifier_by_its_first_token", first_token, IDS)
    yield case("tagger_of_masked_tokens", tagger, IDS)
    yield case("positions_by_embedding_of_a_constant", lambda: positions("constant"), IDS)
    yield case("positions_by_cumulative_sum", lambda: positions("cumsum"), IDS)
    yield case("positions_by_sines_as_a_constant", lambda: positions("sines"), IDS)
    yield case("positions_by_sines_of_operations", lambda: positions("operations"), IDS)
    yield case("rotary_positions", rotary, IDS)
    yield case("alibi_bias", alibi, IDS)
    yield case("decoder", decoder, IDS)
    yield case("language_model", language_model, IDS)
    yield case("language_model_with_tied_words", lambda: language_model(tied=True), IDS)
    yield case("language_model_grouped", lambda: language_model(grouped=True), IDS)
    yield case("language_model_llama_like", llama_like, IDS)
    yield case("sequence_to_sequence", lambda: sequence_to_sequence(1), **both)
    yield case("sequence_to_sequence_of_two_blocks", lambda: sequence_to_sequence(2), **both)
    yield case("sequence_to_sequence_masked", lambda: sequence_to_sequence(1, mask_zero=True), **both)
    yield case("sequence_to_sequence_masked_of_two_blocks", lambda: sequence_to_sequence(2, mask_zero=True), **both)
    yield case("attention_by_hand", attention_by_hand)
    yield case("attention_by_hand_with_a_mask", lambda: attention_by_hand(masked=True), IDS)
    yield case("vision_transformer", vision_transformer)
    yield case("vision_transformer_by_convolution", lambda: vision_transformer(patches="convolution"))
    yield case("vision_transformer_by_reshaping", lambda: vision_transformer(patches="reshape"))
    yield case("swin_like_windows", swin_like)
    yield case("perceiver_like", perceiver_like)
    yield case("forecaster_with_patches", patch_forecaster)
    yield case("mixer", mixer)
    yield case("nested_blocks", nested_blocks)


def embedded(length, name, mask_zero=False):
    ids = keras.Input((length,), dtype="int32", name=name)
    return ids, layers.Embedding(WORDS, WIDTH, mask_zero=mask_zero)(ids)


def feed_forward(x, activation="relu", dropout=0.0):
    x = layers.Dense(2 * WIDTH, activation=activation)(x)
    return layers.Dropout(dropout)(layers.Dense(WIDTH)(x))


def encoder_block(x, first=False, activation="relu", dropout=0.0):
    if first:
        h = layers.LayerNormalization(epsilon=1e-6)(x)
        x = x + layers.MultiHeadAttention(2, 4, dropout=dropout)(h, h)
        return x + feed_forward(layers.LayerNormalization(epsilon=1e-6)(x), activation, dropout)
    x = layers.LayerNormalization()(layers.Add()([x, layers.MultiHeadAttention(2, 4, dropout=dropout)(x, x)]))
    return layers.LayerNormalization()(layers.Add()([x, feed_forward(x, activation, dropout)]))


def decoder_block(x, source=None):
    h = layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True)
    x = layers.LayerNormalization()(layers.Add()([x, h]))
    if source is not None:
        h = layers.MultiHeadAttention(2, 4)(query=x, value=source, key=source)
        x = layers.LayerNormalization()(layers.Add()([x, h]))
    return layers.LayerNormalization()(layers.Add()([x, feed_forward(x)]))


def encoder(blocks=1, dtype=None, **options):
    before = keras.config.dtype_policy()
    try:
        keras.config.set_dtype_policy(dtype or "float32")
        x = inputs = keras.Input((6, WIDTH), dtype="float32")
        for _ in range(blocks):
            x = encoder_block(x, **options)
        return keras.Model(inputs, x)
    finally:
        keras.config.set_dtype_policy(before)


def classifier(mask_zero=False):
    ids, x = embedded(6, "words", mask_zero)
    x = layers.GlobalAveragePooling1D()(encoder_block(encoder_block(x)))
    return keras.Model(ids, layers.Dense(3, activation="softmax")(layers.Dense(5, activation="relu")(x)))


def first_token():
    ids, x = embedded(6, "words")
    token = layers.Embedding(1, WIDTH, name="token")(ops.zeros_like(ids[:, :1]))
    x = encoder_block(ops.concatenate([token, x], axis=1))
    return keras.Model(ids, layers.Dense(3)(x[:, 0]))


def tagger():
    ids, x = embedded(6, "words", mask_zero=True)
    x = layers.LayerNormalization()(layers.Add()([x, layers.MultiHeadAttention(2, 4)(x, x)]))
    return keras.Model(ids, layers.TimeDistributed(layers.Dense(4, activation="softmax"))(x))


def sines(length):
    place = np.arange(length)[:, None] / 100.0 ** (np.arange(WIDTH // 2)[None] / WIDTH * 2)
    return np.concatenate([np.sin(place), np.cos(place)], axis=1).astype("float32")


def positions(kind):
    ids, x = embedded(6, "words")
    if kind == "constant":
        x = x + layers.Embedding(6, WIDTH, name="places")(ops.zeros_like(ids) + np.arange(6, dtype="int32"))
    elif kind == "cumsum":
        x = x + layers.Embedding(6, WIDTH, name="places")(ops.cumsum(ops.ones_like(ids), axis=1) - 1)
    elif kind == "sines":
        x = x * WIDTH**0.5 + sines(6)
    else:
        place = ops.expand_dims(ops.cast(ops.cumsum(ops.ones_like(ids), axis=1) - 1, "float32"), -1)
        angle = place * ops.exp(-np.log(100.0) * np.arange(0, WIDTH, 2, dtype="float32") / WIDTH)
        x = x + ops.concatenate([ops.sin(angle), ops.cos(angle)], axis=-1)
    return keras.Model(ids, encoder_block(x))


def heads(x, count=2):
    x = ops.reshape(layers.Dense(WIDTH)(x), (-1, x.shape[1], count, WIDTH // count))
    return ops.transpose(x, (0, 2, 1, 3))  # [batch, heads, time, depth]


def merged(x):
    return ops.reshape(ops.transpose(x, (0, 2, 1, 3)), (-1, x.shape[2], WIDTH))


def rotated(x):
    """Rotary positions on the last axis."""
    depth, length = x.shape[-1], x.shape[-2]
    angle = np.outer(np.arange(length), 1 / 10.0 ** (np.arange(0, depth, 2) / depth)).astype("float32")
    cosine, sine = np.concatenate([np.cos(angle)] * 2, -1), np.concatenate([np.sin(angle)] * 2, -1)
    half = depth // 2
    return x * cosine + ops.concatenate([-x[..., half:], x[..., :half]], axis=-1) * sine


def rotary():
    ids, x = embedded(6, "words")
    q, k, v = rotated(heads(x)), rotated(heads(x)), heads(x)
    scores = ops.matmul(q, ops.swapaxes(k, -1, -2)) / np.sqrt(WIDTH // 2)
    allowed = np.tril(np.ones((6, 6), bool))
    return keras.Model(ids, merged(ops.matmul(ops.softmax(ops.where(allowed, scores, -1e9), axis=-1), v)))


def alibi():
    ids, x = embedded(6, "words")
    slopes = np.float32([0.5, 0.25])[:, None, None]
    distance = np.arange(6)[None, None] - np.arange(6)[None, :, None]
    scores = ops.einsum("bhqd,bhkd->bhqk", heads(x), heads(x)) * 0.5 + (slopes * distance).astype("float32")
    return keras.Model(ids, merged(ops.einsum("bhqk,bhkd->bhqd", ops.softmax(scores), heads(x))))


def decoder():
    ids, x = embedded(6, "words", mask_zero=True)
    return keras.Model(ids, layers.Dense(WORDS)(decoder_block(x)))


def language_model(tied=False, grouped=False):
    ids = keras.Input((6,), dtype="int32")
    words = layers.Embedding(WORDS, WIDTH)
    x = words(ids)
    for _ in range(2):
        if grouped:
            h = layers.LayerNormalization()(x)
            x = layers.Add()([x, layers.GroupQueryAttention(4, 2, 1)(h, h, use_causal_mask=True)])
            x = layers.Add()([x, feed_forward(layers.LayerNormalization()(x), "gelu")])
        else:
            x = decoder_block(x)
    if not tied:
        return keras.Model(ids, layers.Dense(WORDS, activation="softmax")(x))
    every = words(ops.zeros_like(ids[:, :1]) + np.arange(WORDS, dtype="int32"))
    return keras.Model(ids, ops.softmax(ops.einsum("btd,bwd->btw", x, every)))


def llama_like():
    ids, x = embedded(6, "words")
    h = layers.RMSNormalization()(x)
    x = x + layers.GroupQueryAttention(4, 2, 1, use_bias=False)(h, h, use_causal_mask=True)
    h = layers.RMSNormalization()(x)
    x = x + layers.Dense(WIDTH, use_bias=False)(ops.silu(layers.Dense(12, use_bias=False)(h)) * layers.Dense(12, use_bias=False)(h))
    return keras.Model(ids, layers.Dense(WORDS, use_bias=False)(layers.RMSNormalization()(x)))


def sequence_to_sequence(blocks, mask_zero=False):
    source, x = embedded(6, "source", mask_zero)
    target, y = embedded(5, "target", mask_zero)
    for _ in range(blocks):
        x = encoder_block(x)
    for _ in range(blocks):
        y = decoder_block(y, x)
    return keras.Model([source, target], layers.Dense(WORDS, activation="softmax")(y))


def attention_by_hand(masked=False):
    if masked:
        inputs, x = embedded(6, "words")
        allowed = ops.cast(ops.not_equal(inputs, 0), "float32")[:, None, None, :]
    else:
        x = inputs = keras.Input((6, WIDTH))
    q, k, v = heads(x), heads(x), heads(x)
    scores = q @ ops.transpose(k, (0, 1, 3, 2)) / ops.sqrt(ops.cast(WIDTH // 2, "float32"))
    if masked:
        scores = scores + (1.0 - allowed) * -1e9
    shares = ops.softmax(scores, axis=-1)
    return keras.Model(inputs, [layers.Dense(WIDTH)(merged(shares @ v)), shares])


def vision_transformer(patches="extract"):
    images = keras.Input((8, 12, 3))
    x = layers.Rescaling(1 / 2.0, offset=-0.5)(images)
    if patches == "extract":
        x = ops.reshape(ops.image.extract_patches(x, 4), (-1, 6, 48))
        x = layers.Dense(WIDTH)(x)
    elif patches == "convolution":
        x = layers.Reshape((6, WIDTH))(layers.Conv2D(WIDTH, 4, strides=4)(x))
    else:
        x = ops.reshape(x, (-1, 2, 4, 3, 4, 3))
        x = layers.Dense(WIDTH)(ops.reshape(ops.transpose(x, (0, 1, 3, 2, 4, 5)), (-1, 6, 48)))
    token = ops.tile(layers.Dense(WIDTH)(ops.zeros_like(x[:, :1, :1])), (1, 1, 1))
    x = ops.concatenate([token, x], axis=1)
    x = x + layers.Embedding(7, WIDTH)(ops.zeros_like(ops.cast(x[:, :, 0], "int32")) + np.arange(7, dtype="int32"))
    for _ in range(2):
        x = encoder_block(x, first=True, activation="gelu")
    return keras.Model(images, layers.Dense(5)(layers.LayerNormalization()(x)[:, 0]))


def swin_like():
    x = images = keras.Input((8, 8, WIDTH))
    x = ops.roll(x, (-2, -2), axis=(1, 2))
    windows = ops.reshape(ops.transpose(ops.reshape(x, (-1, 2, 4, 2, 4, WIDTH)), (0, 1, 3, 2, 4, 5)), (-1, 4, 16, WIDTH))
    windows = layers.MultiHeadAttention(2, 4, attention_axes=2)(windows, windows)
    x = ops.reshape(ops.transpose(ops.reshape(windows, (-1, 2, 2, 4, 4, WIDTH)), (0, 1, 3, 2, 4, 5)), (-1, 8, 8, WIDTH))
    x = ops.roll(x, (2, 2), axis=(1, 2))
    smaller = ops.concatenate([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], axis=-1)
    return keras.Model(images, layers.Dense(2 * WIDTH, use_bias=False)(layers.LayerNormalization()(smaller)))


def perceiver_like():
    x = inputs = keras.Input((None, WIDTH))
    latent = layers.Embedding(3, WIDTH)(ops.zeros_like(ops.cast(x[:, 0, :1], "int32")) + np.arange(3, dtype="int32"))
    latent = latent + layers.MultiHeadAttention(2, 4)(latent, x)
    return keras.Model(inputs, encoder_block(latent))


def patch_forecaster():
    """Normalized by its own window, cut into patches, back in its own scale."""
    series = keras.Input((16, 3))
    mean, deviation = ops.mean(series, axis=1, keepdims=True), ops.std(series, axis=1, keepdims=True) + 1e-5
    x = ops.transpose((series - mean) / deviation, (0, 2, 1))
    x = ops.reshape(ops.extract_sequences(x, 4, 2), (-1, 7, 4))
    x = layers.Dense(WIDTH)(x) + sines(7)
    x = ops.reshape(encoder_block(x, activation="gelu"), (-1, 3, 7 * WIDTH))
    x = ops.transpose(layers.Dense(5)(x), (0, 2, 1))
    return keras.Model(series, x * deviation + mean)


def mixer():
    x = inputs = keras.Input((6, WIDTH))
    for _ in range(2):
        h = layers.Permute((2, 1))(layers.LayerNormalization()(x))
        h = layers.Permute((2, 1))(layers.Dense(6)(layers.Dense(12, activation="gelu")(h)))
        x = layers.Add()([x, h])
        x = layers.Add()([x, feed_forward(layers.LayerNormalization()(x), "gelu")])
    return keras.Model(inputs, layers.GlobalAveragePooling1D()(x))


def nested_blocks():
    def block(name):
        x = inputs = keras.Input((6, WIDTH))
        return keras.Model(inputs, encoder_block(x), name=name)

    x = inputs = keras.Input((6, WIDTH))
    shared = block("shared")
    return keras.Model(inputs, block("last")(shared(shared(x))))
