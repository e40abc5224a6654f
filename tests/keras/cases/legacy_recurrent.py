"""Recurrent layers in files of Keras 2, which masks, states and directions it wrote its own way."""

import numpy as np
from harness import case

KEPT = np.array([[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1], [1, 1, 0, 1, 0, 1], [1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0]], bool)
TOKENS = np.where(KEPT, 1 + np.arange(30).reshape(5, 6) % 6, 0).astype("int32")
SERIES = (np.where(KEPT[..., None], np.random.default_rng(1).standard_normal((5, 6, 3)), 0)).astype("float32")
KINDS = ("LSTM", "GRU", "SimpleRNN")


def cases():
    for kind in KINDS:
        name = {"LSTM": "lstm", "GRU": "gru", "SimpleRNN": "simple_rnn"}[kind]
        yield legacy(f"{name}_plain", lambda L, kind=kind: getattr(L, kind)(4))
        yield legacy(f"{name}_all", lambda L, kind=kind: getattr(L, kind)(4, return_sequences=True, return_state=True, go_backwards=True))
        yield legacy(f"{name}_unknown_time", lambda L, kind=kind: getattr(L, kind)(4, return_sequences=True), (None, 3))
        yield legacy(f"{name}_dropout", lambda L, kind=kind: getattr(L, kind)(4, dropout=0.2, recurrent_dropout=0.1))
        yield legacy(f"{name}_without_bias", lambda L, kind=kind: getattr(L, kind)(4, use_bias=False, activation="relu", unroll=True))
        yield legacy(f"{name}_mixed_float16", lambda L, kind=kind: getattr(L, kind)(4, dtype="mixed_float16"))
        for options in (
            {},
            {"return_sequences": True, "return_state": True},
            {"return_sequences": True, "go_backwards": True},
            {"return_sequences": True, "zero_output_for_mask": True},
            {"return_sequences": True, "unroll": True},
            {"return_sequences": True, "unroll": True, "zero_output_for_mask": True, "go_backwards": True},
        ):
            label = "_".join(["masked", name, *options])
            yield masked(label, lambda L, kind=kind, options=options: getattr(L, kind)(4, **options))
        yield masked(f"masked_{name}_bidirectional", lambda L, kind=kind: L.Bidirectional(getattr(L, kind)(4, return_sequences=True)))
        yield masked(
            f"masked_{name}_bidirectional_unrolled",
            lambda L, kind=kind: L.Bidirectional(getattr(L, kind)(4, return_sequences=True, unroll=True), merge_mode="sum"),
        )
        yield case(f"{name}_initial_state", lambda kind=kind: initial_state(kind), oracle="tf_keras")
        yield case(
            f"masked_{name}_initial_state", lambda kind=kind: initial_state(kind, mask=True), [SERIES, *states(kind)], oracle="tf_keras"
        )
        yield case(f"{name}_cell_alone", lambda kind=kind: cell_alone(kind), oracle="tf_keras")
    yield legacy("gru_reset_before", lambda L: L.GRU(4, reset_after=False, return_sequences=True))
    yield legacy("lstm_hard_sigmoid", lambda L: L.LSTM(4, recurrent_activation="hard_sigmoid", implementation=1))
    yield legacy("lstm_time_major", lambda L: L.LSTM(4, time_major=True, return_sequences=True), batch=6, single=False)
    yield legacy("bidirectional_time_major", lambda L: L.Bidirectional(L.GRU(4, time_major=True, return_sequences=True)), batch=6, single=False)
    for mode in ("concat", "sum", "mul", "ave", None):
        yield legacy(
            f"bidirectional_{str(mode).lower()}",
            lambda L, mode=mode: L.Bidirectional(L.LSTM(4, return_sequences=True, return_state=True), merge_mode=mode),
        )
    yield legacy(
        "bidirectional_backward_layer",
        lambda L: L.Bidirectional(L.LSTM(4), backward_layer=L.GRU(3, go_backwards=True, activation="relu"), name="both"),
    )
    yield legacy("bidirectional_of_backwards", lambda L: L.Bidirectional(L.GRU(4, go_backwards=True, return_sequences=True)))
    yield legacy("bidirectional_of_float64", lambda L: L.Bidirectional(L.GRU(4, dtype="float64"), merge_mode="sum"))
    yield case("bidirectional_initial_state", bidirectional_initial_state, oracle="tf_keras")
    yield legacy("rnn_of_cells", lambda L: L.RNN([L.LSTMCell(4), L.GRUCell(3), L.SimpleRNNCell(2)], return_state=True, return_sequences=True))
    yield legacy("rnn_of_one_cell", lambda L: L.RNN(L.GRUCell(4, reset_after=False)))
    yield legacy(
        "rnn_of_cells_reversed_states",
        lambda L: L.RNN(L.StackedRNNCells([L.LSTMCell(4), L.LSTMCell(4)], reverse_state_order=True), return_state=True),
    )
    yield legacy("bidirectional_rnn_of_cells", lambda L: L.Bidirectional(L.RNN([L.LSTMCell(4), L.LSTMCell(3)], return_sequences=True)))
    yield masked("masked_rnn_of_cells", lambda L: L.RNN([L.LSTMCell(4), L.GRUCell(3)], return_sequences=True))
    yield legacy("conv_lstm2d", lambda L: L.ConvLSTM2D(3, 3, return_sequences=True), (3, 6, 5, 2))
    yield legacy("conv_lstm1d", lambda L: L.ConvLSTM1D(3, 3, strides=2, return_state=True, go_backwards=True), (3, 7, 2))
    yield legacy("conv_lstm3d", lambda L: L.ConvLSTM3D(2, 2, recurrent_activation="sigmoid"), (2, 4, 4, 3, 1))
    yield legacy("bidirectional_conv_lstm2d", lambda L: L.Bidirectional(L.ConvLSTM2D(2, 3, return_sequences=True)), (3, 5, 5, 2))
    yield legacy("time_distributed_dense", lambda L: L.TimeDistributed(L.Dense(4)), (5, 3))
    yield legacy("time_distributed_convolution", lambda L: L.TimeDistributed(L.Conv2D(3, 3)), (4, 6, 5, 2))
    yield legacy("time_distributed_batch_normalization", lambda L: L.TimeDistributed(L.BatchNormalization()), (4, 3))
    yield case("time_distributed_model", time_distributed_model, oracle="tf_keras")
    yield case("time_distributed_masks", time_distributed_masks, np.stack([TOKENS, TOKENS[::-1]], 1), oracle="tf_keras")
    yield case("masks_through_a_stack", masks_through_a_stack, TOKENS, oracle="tf_keras")
    yield case("stateful", stateful, oracle="tf_keras", single=False)
    yield case("encoder_decoder", encoder_decoder, oracle="tf_keras")
    yield case("cudnn", cudnn, oracle="tf_keras", keep_weights=True)


def legacy(name, make, shape=(6, 3), **options):
    def model():
        from tf_keras import Input, Model, layers

        x = Input(shape)
        return Model(x, make(layers)(x))

    return case(name, model, oracle="tf_keras", **options)


def masked(name, make):
    def model():
        from tf_keras import Input, Model, layers

        x = Input((6, 3))
        return Model(x, make(layers)(layers.Masking()(x)))

    return case(name, model, SERIES, oracle="tf_keras")


def states(kind):
    random = np.random.default_rng(2)
    return [random.standard_normal((5, 4)).astype("float32") for _ in range(2 if kind == "LSTM" else 1)]


def initial_state(kind, mask=False):
    from tf_keras import Input, Model, layers

    x, given = Input((6, 3)), [Input((4,)) for _ in range(2 if kind == "LSTM" else 1)]
    y = layers.Masking()(x) if mask else x
    return Model([x, *given], getattr(layers, kind)(4, return_sequences=True, return_state=True)(y, initial_state=given))


def cell_alone(kind):
    from tf_keras import Input, Model, layers

    x, given = Input((3,)), [Input((4,)) for _ in range(2 if kind == "LSTM" else 1)]
    output, after = getattr(layers, kind + "Cell")(4)(x, given)
    return Model([x, *given], [output, *after])


def bidirectional_initial_state():
    from tf_keras import Input, Model, layers

    x, given = Input((6, 3)), [Input((4,)) for _ in range(4)]
    return Model([x, *given], layers.Bidirectional(layers.LSTM(4, return_state=True))(x, initial_state=given))


def time_distributed_model():
    from tf_keras import Input, Model, Sequential, layers

    cnn = Sequential([layers.Conv2D(3, 3, activation="relu"), layers.MaxPooling2D(), layers.Flatten(), layers.Dense(3)])
    x = Input((4, 6, 5, 2))
    return Model(x, layers.LSTM(3)(layers.TimeDistributed(cnn)(x)))


def time_distributed_masks():
    from tf_keras import Input, Model, layers

    x = Input((2, 6), dtype="int32")
    y = layers.TimeDistributed(layers.Embedding(7, 3, mask_zero=True))(x)
    y = layers.TimeDistributed(layers.LSTM(4, return_sequences=True))(y)
    y = layers.TimeDistributed(layers.GRU(3))(y)
    return Model(x, layers.GRU(2)(y))


def masks_through_a_stack():
    from tf_keras import Sequential, layers

    return Sequential(
        [
            layers.Embedding(7, 3, mask_zero=True, input_length=6),
            layers.LSTM(4, return_sequences=True),
            layers.Dropout(0.2),
            layers.TimeDistributed(layers.Dense(3)),
            layers.Bidirectional(layers.GRU(3, return_sequences=True)),
            layers.Activation("tanh"),
            layers.GlobalAveragePooling1D(),
        ]
    )


def stateful():
    from tf_keras import Sequential, layers

    return Sequential([layers.LSTM(4, stateful=True, return_sequences=True, batch_input_shape=(2, 6, 3)), layers.GRU(3, stateful=True)])


def encoder_decoder():
    from tf_keras import Input, Model, layers

    source, target = Input((None, 3)), Input((None, 2))
    _, h, c = layers.LSTM(4, return_state=True)(source)
    y, _, _ = layers.LSTM(4, return_sequences=True, return_state=True)(target, initial_state=[h, c])
    return Model([source, target], layers.Dense(2, activation="softmax")(y))


def cudnn():
    """cuDNN layers do not run on a CPU: the file is of them, the outputs are of the layers that Keras loads such a file into."""
    import tensorflow
    from tf_keras import Input, Model, layers
    from tf_keras.src.layers.rnn.cudnn_gru import CuDNNGRU
    from tf_keras.src.layers.rnn.cudnn_lstm import CuDNNLSTM
    from tf_keras.src.saving.legacy.hdf5_format import preprocess_weights_for_loading

    def build(lstm, gru):
        x = Input((6, 3))
        y = layers.Bidirectional(lstm(4, return_sequences=True))(x)
        return Model(x, gru(3, return_sequences=True, return_state=True, name="last")(y))

    model = build(layers.LSTM, layers.GRU)
    random = np.random.default_rng(3)
    model.set_weights([random.standard_normal(w.shape) * 0.4 for w in model.get_weights()])
    with tensorflow.device("cpu"):
        stored = build(CuDNNLSTM, CuDNNGRU)
    for to, source in zip(stored.layers, model.layers, strict=True):
        to.set_weights(preprocess_weights_for_loading(to, source.get_weights()))
    model.save = stored.save
    return model
