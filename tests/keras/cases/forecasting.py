"""Nets that people forecast series with: encoders and decoders, stacks, attention, N-BEATS, TCN, Transformers."""

import keras
import numpy as np
from harness import case
from keras import layers, ops

STEPS, FEATURES, HORIZON = 12, 3, 4


def cases():
    yield case("lstm_to_dense", sequential(layers.LSTM(8), layers.Dense(HORIZON)))
    yield case("stacked_lstm", sequential(layers.LSTM(8, return_sequences=True), layers.Dropout(0.2), layers.LSTM(6), layers.Dense(1)))
    yield case("stacked_gru", stacked_gru())
    yield case("gru_without_reset_after", sequential(layers.GRU(6, reset_after=False, return_sequences=True), layers.GRU(4), layers.Dense(2)))
    yield case("bidirectional_stack", bidirectional_stack())
    yield case("repeat_vector", repeat_vector())
    yield case("encoder_decoder_states", encoder_decoder_states())
    yield case("encoder_decoder_gru_deep", encoder_decoder_deep())
    yield case("unknown_time", unknown_time(), length=9)
    yield case("conv_then_lstm", conv_then_lstm())
    yield case("video", video())
    yield case("video_to_class", video_to_class())
    yield case("frames_by_cnn", frames_by_cnn())
    yield case("dot_product_attention", dot_product_attention())
    yield case("bahdanau_attention", bahdanau_attention())
    yield case("luong_attention", luong_attention())
    yield case("self_written_attention", self_written_attention())
    yield case("deep_ar", deep_ar(), formats=("keras",))
    yield case("static_and_sequence", static_and_sequence(), [series(), statics(), calendar()])
    yield case("quantiles", quantiles())
    yield case("masked_series", masked_series(), padded())
    yield case("n_beats", n_beats())
    yield case("tcn", tcn())
    yield case("wavenet", wavenet())
    yield case("transformer_encoder", transformer_encoder())
    yield case("gated_residual", gated_residual())
    yield case("linear_decomposition", linear_decomposition(), formats=("keras",))
    yield case("autoencoder", autoencoder())
    yield case("stateful_one_step", stateful_one_step(), single=False)


def series():
    return np.random.default_rng(5).standard_normal((3, STEPS, FEATURES)).astype("float32")


def statics():
    return np.array([[0], [3], [1]], "int32")


def calendar():
    return np.random.default_rng(6).integers(0, 7, (3, STEPS)).astype("int32")


def padded():
    values = series()
    values[0, 8:] = values[1, :5] = values[2, 3:6] = -1
    return values


def sequential(*stack):
    return keras.Sequential([keras.Input((STEPS, FEATURES)), *stack])


def stacked_gru():
    x = keras.Input((STEPS, FEATURES))
    y = layers.BatchNormalization()(x)
    for units in (8, 8, 4):
        y = layers.GRU(units, return_sequences=True, dropout=0.1, recurrent_dropout=0.1)(y)
    return keras.Model(x, layers.Dense(HORIZON)(layers.Flatten()(y)))


def bidirectional_stack():
    return sequential(
        layers.Bidirectional(layers.LSTM(6, return_sequences=True)),
        layers.LayerNormalization(),
        layers.Bidirectional(layers.GRU(5, return_sequences=True), merge_mode="sum"),
        layers.Bidirectional(layers.SimpleRNN(4)),
        layers.Dense(HORIZON),
    )


def repeat_vector():
    return sequential(
        layers.LSTM(8, activation="relu"),
        layers.RepeatVector(HORIZON),
        layers.LSTM(8, activation="relu", return_sequences=True),
        layers.TimeDistributed(layers.Dense(5, activation="relu")),
        layers.TimeDistributed(layers.Dense(1)),
    )


def encoder_decoder_states():
    past, future = keras.Input((STEPS, FEATURES), name="past"), keras.Input((HORIZON, 2), name="future")
    _, h, c = layers.LSTM(8, return_state=True, name="encoder")(past)
    y = layers.LSTM(8, return_sequences=True, name="decoder")(future, initial_state=[h, c])
    return keras.Model([past, future], layers.TimeDistributed(layers.Dense(1))(y))


def encoder_decoder_deep():
    past, future = keras.Input((None, FEATURES), name="past"), keras.Input((None, 2), name="future")
    y, states = past, []
    for units in (6, 5):
        y, state = layers.GRU(units, return_sequences=True, return_state=True)(y)
        states.append(state)
    z = future
    for units, state in zip((6, 5), states, strict=True):
        z = layers.GRU(units, return_sequences=True)(z, initial_state=state)
    return keras.Model([past, future], layers.Dense(1)(z))


def unknown_time():
    x = keras.Input((None, FEATURES))
    y = layers.Conv1D(6, 3, padding="causal", activation="relu")(x)
    y = layers.LSTM(5, return_sequences=True)(y)
    return keras.Model(x, [layers.TimeDistributed(layers.Dense(1))(y), layers.GlobalAveragePooling1D()(y)])


def conv_then_lstm():
    return sequential(
        layers.Conv1D(8, 3, activation="relu"),
        layers.MaxPooling1D(2),
        layers.LSTM(6, return_sequences=True),
        layers.LSTM(4),
        layers.Dense(HORIZON),
    )


def video():
    x = keras.Input((4, 8, 8, 1))
    y = layers.ConvLSTM2D(4, 5, padding="same", return_sequences=True, activation="relu")(x)
    y = layers.BatchNormalization()(y)
    y = layers.ConvLSTM2D(3, 3, padding="same", return_sequences=True, activation="relu")(y)
    return keras.Model(x, layers.Conv3D(1, 3, activation="sigmoid", padding="same")(y))


def video_to_class():
    return keras.Sequential(
        [
            keras.Input((None, 8, 8, 2)),
            layers.ConvLSTM2D(3, 3, recurrent_activation="hard_sigmoid", return_sequences=True),
            layers.TimeDistributed(layers.MaxPooling2D()),
            layers.Bidirectional(layers.ConvLSTM2D(2, 2)),
            layers.Flatten(),
            layers.Dense(3, activation="softmax"),
        ]
    )


def frames_by_cnn():
    cnn = keras.Sequential([keras.Input((8, 8, 3)), layers.Conv2D(4, 3, activation="relu"), layers.GlobalAveragePooling2D()])
    x = keras.Input((5, 8, 8, 3))
    return keras.Model(x, layers.Dense(2)(layers.LSTM(4)(layers.TimeDistributed(cnn)(x))))


def dot_product_attention():
    x = keras.Input((STEPS, FEATURES))
    y = layers.LSTM(6, return_sequences=True)(x)
    return keras.Model(x, layers.Dense(HORIZON)(layers.GlobalAveragePooling1D()(layers.Attention()([y, y]))))


def bahdanau_attention():
    past, future = keras.Input((STEPS, FEATURES)), keras.Input((HORIZON, 2))
    encoded, h, c = layers.LSTM(6, return_sequences=True, return_state=True)(past)
    decoded = layers.LSTM(6, return_sequences=True)(future, initial_state=[h, c])
    context = layers.AdditiveAttention()([decoded, encoded])
    return keras.Model([past, future], layers.Dense(1)(layers.Concatenate()([decoded, context])))


def luong_attention():
    past = keras.Input((STEPS, FEATURES))
    encoded, h, c = layers.LSTM(6, return_sequences=True, return_state=True)(past)
    decoded = layers.LSTM(6, return_sequences=True)(layers.RepeatVector(HORIZON)(h), initial_state=[h, c])
    scores = layers.Activation("softmax")(layers.Dot(axes=[2, 2])([decoded, encoded]))
    context = layers.Dot(axes=[2, 1])([scores, encoded])
    return keras.Model(past, layers.TimeDistributed(layers.Dense(1))(layers.concatenate([context, decoded])))


def self_written_attention():
    x = keras.Input((STEPS, FEATURES))
    y = layers.Bidirectional(layers.GRU(4, return_sequences=True))(x)
    weights = layers.Softmax(axis=1)(layers.Dense(1, activation="tanh")(y))
    weights = layers.Permute((2, 1))(layers.RepeatVector(8)(layers.Flatten()(weights)))
    y = layers.Multiply()([y, weights])
    return keras.Model(x, layers.Dense(1)(layers.GlobalMaxPooling1D()(y)))


def deep_ar():
    """Mean and deviation of each step, scaled by the series' own mean."""
    x = keras.Input((None, 2))
    scale = ops.mean(ops.abs(x), axis=1, keepdims=True) + 1e-3
    y = layers.LSTM(6, return_sequences=True)(layers.LSTM(6, return_sequences=True)(x / scale))
    mean = layers.Dense(1)(y) * scale[:, :, :1]
    deviation = ops.softplus(layers.Dense(1)(y)) * scale[:, :, :1] + 1e-6
    return keras.Model(x, {"mean": mean, "deviation": deviation})


def static_and_sequence():
    values, static, days = keras.Input((STEPS, FEATURES)), keras.Input((1,), dtype="int32"), keras.Input((STEPS,), dtype="int32")
    store = layers.Flatten()(layers.Embedding(5, 3)(static))
    y = layers.Concatenate()([values, layers.Embedding(7, 2)(days), layers.RepeatVector(STEPS)(store)])
    y = layers.LSTM(6)(y, initial_state=[layers.Dense(6, activation="tanh")(store), layers.Dense(6)(store)])
    return keras.Model([values, static, days], layers.Dense(HORIZON)(layers.concatenate([y, store])))


def quantiles():
    x = keras.Input((STEPS, FEATURES))
    y = layers.GRU(6)(x)
    return keras.Model(x, [layers.Dense(HORIZON, name=f"q{q}")(y) for q in (10, 50, 90)])


def masked_series():
    return sequential(
        layers.Masking(-1.0),
        layers.LSTM(6, return_sequences=True),
        layers.Bidirectional(layers.LSTM(4, return_sequences=True)),
        layers.TimeDistributed(layers.Dense(3, activation="relu")),
        layers.GRU(4),
        layers.Dense(HORIZON),
    )


def n_beats():
    x = keras.Input((STEPS,))
    residual, forecasts = x, []
    for _ in range(3):
        y = residual
        for _ in range(2):
            y = layers.Dense(8, activation="relu")(y)
        residual = layers.Subtract()([residual, layers.Dense(STEPS)(layers.Dense(3, use_bias=False)(y))])
        forecasts.append(layers.Dense(HORIZON)(layers.Dense(3, use_bias=False)(y)))
    return keras.Model(x, layers.Add()(forecasts))


def tcn():
    x = y = keras.Input((16, FEATURES))
    for dilation in (1, 2, 4):
        z = y
        for _ in range(2):
            z = layers.Conv1D(5, 3, padding="causal", dilation_rate=dilation)(z)
            z = layers.SpatialDropout1D(0.1)(layers.ReLU()(layers.LayerNormalization()(z)))
        y = layers.ReLU()(layers.Add()([layers.Conv1D(5, 1)(y) if dilation == 1 else y, z]))
    return keras.Model(x, layers.Dense(1)(layers.Cropping1D((15, 0))(y)))


def wavenet():
    x = keras.Input((16, 1))
    y, skips = layers.Conv1D(4, 1)(x), []
    for dilation in (1, 2, 4, 8):
        filtered = layers.Conv1D(4, 2, padding="causal", dilation_rate=dilation, activation="tanh")(y)
        gate = layers.Conv1D(4, 2, padding="causal", dilation_rate=dilation, activation="sigmoid")(y)
        z = layers.Conv1D(4, 1)(layers.Multiply()([filtered, gate]))
        skips.append(z)
        y = layers.Add()([y, z])
    return keras.Model(x, layers.Conv1D(1, 1)(layers.Activation("relu")(layers.Add()(skips))))


def transformer_encoder():
    x = keras.Input((STEPS, FEATURES))
    y = layers.Dense(8)(x)
    for _ in range(2):
        z = layers.LayerNormalization(epsilon=1e-6)(y)
        y = layers.Add()([y, layers.Dropout(0.1)(layers.MultiHeadAttention(2, 4, dropout=0.1)(z, z))])
        z = layers.LayerNormalization(epsilon=1e-6)(y)
        y = layers.Add()([y, layers.Conv1D(8, 1)(layers.Conv1D(16, 1, activation="gelu")(z))])
    y = layers.GlobalAveragePooling1D(data_format="channels_last")(y)
    return keras.Model(x, layers.Dense(HORIZON)(y))


def gated_residual():
    """The building block of temporal fusion transformers."""
    x = keras.Input((STEPS, 6))
    y = layers.Dense(6)(layers.ELU()(layers.Dense(6)(x)))
    y = layers.Multiply()([layers.Dense(6)(y), layers.Dense(6, activation="sigmoid")(y)])
    y = layers.LayerNormalization()(layers.Add()([x, y]))
    y = layers.LSTM(6, return_sequences=True)(y)
    return keras.Model(x, layers.TimeDistributed(layers.Dense(3))(layers.MultiHeadAttention(2, 3)(y, y, use_causal_mask=True)))


def linear_decomposition():
    """DLinear: a moving average and the rest, each with its own linear map over time."""
    x = keras.Input((STEPS, FEATURES))
    front, back = ops.repeat(x[:, :1], 2, axis=1), ops.repeat(x[:, -1:], 2, axis=1)
    trend = layers.AveragePooling1D(5, strides=1)(ops.concatenate([front, x, back], axis=1))
    parts = [layers.Permute((2, 1))(part) for part in (trend, x - trend)]
    y = layers.Add()([layers.Dense(HORIZON)(part) for part in parts])
    return keras.Model(x, layers.Permute((2, 1))(y))


def autoencoder():
    x = keras.Input((STEPS, FEATURES))
    encoded = layers.LSTM(4)(layers.LSTM(6, return_sequences=True)(x))
    encoder = keras.Model(x, encoded, name="encoder")
    code = keras.Input((4,))
    y = layers.LSTM(6, return_sequences=True)(layers.RepeatVector(STEPS)(code))
    decoder = keras.Model(code, layers.TimeDistributed(layers.Dense(FEATURES))(y), name="decoder")
    whole = keras.Input((STEPS, FEATURES))
    return keras.Model(whole, decoder(encoder(whole)))


def stateful_one_step():
    x = keras.Input(batch_shape=(1, 1, FEATURES))
    y = layers.LSTM(6, stateful=True, return_sequences=True)(x)
    return keras.Model(x, layers.Dense(1)(layers.LSTM(4, stateful=True)(y)))
