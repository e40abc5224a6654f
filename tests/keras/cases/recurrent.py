"""Recurrent layers: cells, stacks, directions, states, masks; ConvLSTM; TimeDistributed."""

from functools import partial

import keras
import numpy as np
from harness import case, layer
from keras import layers

KINDS = {"lstm": layers.LSTM, "gru": layers.GRU, "simple_rnn": layers.SimpleRNN}
CELLS = {"lstm": layers.LSTMCell, "gru": layers.GRUCell, "simple_rnn": layers.SimpleRNNCell}

# Samples with steps left out in front, in the middle, at the end, and altogether.
KEPT = np.array([[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1], [1, 1, 0, 1, 0, 1], [1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0]], bool)
TOKENS = np.where(KEPT, 1 + np.arange(30).reshape(5, 6) % 6, 0).astype("int32")
SERIES = (np.where(KEPT[..., None], np.random.default_rng(1).standard_normal((5, 6, 3)), 0)).astype("float32")


def given_mask(call):
    x, mask = keras.Input((6, 3)), keras.Input((6,), dtype="bool")
    return keras.Model([x, mask], call(x, mask))


def inner_lstm():
    x = keras.Input((6, 3))
    return keras.Model(x, layers.LSTM(4)(x))


def states_and_a_second_layer():
    x = keras.Input((6, 3))
    sequence, hidden, carry = layers.LSTM(4, return_sequences=True, return_state=True, name="lstm")(x)
    return keras.Model(x, [sequence, hidden, carry, layers.LSTM(5, name="lstm_1")(sequence)])


def cases():
    yield case("states_and_a_second_layer", states_and_a_second_layer())
    series, kept = SERIES[:4], KEPT[:4]
    for name, call in {
        "lstm": lambda x, mask: layers.LSTM(4)(x, None, mask),
        "bidirectional": lambda x, mask: layers.Bidirectional(layers.GRU(4))(x, None, mask),
        "average": lambda x, mask: layers.GlobalAveragePooling1D()(x, mask),
        "model": lambda x, mask: inner_lstm()(x, mask=mask),
        "sequential": lambda x, mask: keras.Sequential([keras.Input((6, 3)), layers.LSTM(4, return_sequences=True), layers.GRU(2)])(x, mask=mask),
    }.items():
        yield case(f"mask_given_to_{name}", given_mask(call), [series, kept])
    yield case("mask_given_to_attention", given_mask(lambda x, mask: layers.Attention()([x, x], [None, mask])), [series, kept], formats=("keras",))
    yield from plain()
    yield from precision()
    yield from masked()
    yield from initial_states()
    yield from cells()
    yield from bidirectional()
    yield from conv_lstm()
    yield from time_distributed()


def plain():
    options = {
        "last": {},
        "sequences": {"return_sequences": True},
        "state": {"return_state": True},
        "sequences_and_state": {"return_sequences": True, "return_state": True},
        "backwards": {"go_backwards": True},
        "backwards_sequences": {"go_backwards": True, "return_sequences": True, "return_state": True},
        "without_bias": {"use_bias": False, "return_sequences": True},
        "relu": {"activation": "relu"},
        "linear": {"activation": None},
        "unrolled": {"unroll": True, "return_sequences": True, "go_backwards": True},
        "dropout": {"dropout": 0.3, "recurrent_dropout": 0.2, "seed": 1},
    }
    for kind, make in KINDS.items():
        for name, arguments in options.items():
            yield layer(f"{kind}_{name}", make(4, **arguments), (6, 3))
        yield layer(f"{kind}_unknown_time", make(4, return_sequences=True), (None, 3), length=7)
        yield layer(f"{kind}_one_step_one_unit", make(1, return_sequences=True), (1, 1))
        yield case(f"{kind}_stateful", stateful(make), single=False)
        if kind != "simple_rnn":
            for activation in ("hard_sigmoid", "relu", None, "softsign"):
                yield layer(f"{kind}_recurrent_{str(activation).lower()}", make(4, recurrent_activation=activation, activation="elu"), (6, 3))
    yield layer("lstm_without_unit_forget_bias", layers.LSTM(4, unit_forget_bias=False), (6, 3))
    yield layer("lstm_activation_layer", layers.LSTM(4, activation=layers.LeakyReLU(0.2)), (6, 3), formats=("keras",))
    yield layer("gru_reset_before", layers.GRU(4, reset_after=False, return_sequences=True), (6, 3))
    yield layer("gru_reset_before_without_bias", layers.GRU(4, reset_after=False, use_bias=False), (6, 3))
    yield layer("gru_reset_before_dropout", layers.GRU(4, reset_after=False, recurrent_dropout=0.2), (6, 3))
    yield layer("lstm_integer_input", layers.LSTM(4), (6, 3), dtype="int32")
    yield case("lstm_training_dropout", training_dropout())
    shared_layer = layers.LSTM(4)
    left, right = keras.Input((5, 3)), keras.Input((7, 3))
    yield case("lstm_shared", keras.Model([left, right], layers.Concatenate()([shared_layer(left), shared_layer(right)])))
    yield case("lstm_frozen", frozen())


def stateful(make):
    x = keras.Input(batch_shape=(2, 6, 3))
    return keras.Model(x, make(4, stateful=True, return_sequences=True)(x))


def training_dropout():
    x = keras.Input((6, 3))
    return keras.Model(x, layers.LSTM(4, dropout=0.5)(x, training=True))


def frozen():
    x = keras.Input((6, 3))
    y = layers.LSTM(4, trainable=False, return_sequences=True)(x)
    y = layers.Bidirectional(layers.GRU(3, return_sequences=True), trainable=False)(y)
    return keras.Model(x, layers.GRU(2)(y))


def precision():
    for policy in ("mixed_float16", "mixed_bfloat16", "float16"):
        for kind, make in KINDS.items():
            yield layer(f"{kind}_{policy}", make(4, return_sequences=True, return_state=True, dtype=policy), (6, 3))
    for kind in KINDS:
        yield layer(f"{kind}_float64", lambda kind=kind: KINDS[kind](4, dtype="float64"), (6, 3), dtype="float64", oracle="tensorflow")
    yield layer("rnn_of_a_half_precision_cell", layers.RNN(layers.LSTMCell(4, dtype="mixed_float16"), return_state=True), (6, 3))
    yield layer("bidirectional_mixed_float16", layers.Bidirectional(layers.LSTM(4, dtype="mixed_float16"), dtype="mixed_float16"), (6, 3))
    yield layer("conv_lstm_mixed_float16", layers.ConvLSTM2D(2, 3, dtype="mixed_float16"), (3, 5, 5, 2))
    yield layer(
        "time_distributed_mixed_float16", layers.TimeDistributed(layers.Dense(4, dtype="mixed_float16"), dtype="mixed_float16"), (4, 3)
    )
    yield layer("time_distributed_other_policy_inside", layers.TimeDistributed(layers.Dense(4, dtype="float32"), dtype="mixed_float16"), (4, 3))
    for outer, inner in (("float32", "float64"), ("float64", "float32"), ("float32", "float16")):
        build = partial(time_distributed_policies, outer, inner)
        yield layer(f"time_distributed_{outer}_with_{inner}_inside", build, (4, 3), oracle="tensorflow")


def time_distributed_policies(outer, inner):
    return layers.TimeDistributed(layers.Dense(4, dtype=inner), dtype=outer)


def masked():
    options = {
        "last": {},
        "sequences_and_state": {"return_sequences": True, "return_state": True},
        "backwards": {"go_backwards": True, "return_sequences": True, "return_state": True},
        "zero_output": {"zero_output_for_mask": True, "return_sequences": True},
        "zero_output_last": {"zero_output_for_mask": True},
        "zero_output_backwards": {"zero_output_for_mask": True, "return_sequences": True, "go_backwards": True},
        "unrolled": {"unroll": True, "return_sequences": True, "return_state": True},
    }
    zero_unrolled = {  # JAX leaves out the zeros here
        "unrolled_zero_output": {"return_sequences": True},
        "unrolled_zero_output_last": {},
        "unrolled_zero_output_backwards": {"return_sequences": True, "go_backwards": True},
    }
    for kind, make in KINDS.items():
        for name, arguments in options.items():
            yield case(f"masked_{kind}_{name}", functional_mask(make(4, **arguments)), SERIES)
        for name, arguments in zero_unrolled.items():
            build = partial(unrolled_zero_output, kind, arguments)
            yield case(f"masked_{kind}_{name}", build, SERIES, oracle="tensorflow")
        # In a Sequential model masks are implicit.
        yield case(f"masked_{kind}_sequential", sequential_mask(make), TOKENS)
        yield case(f"masked_{kind}_initial_state", masked_initial_state(make, {}), [SERIES, *states(kind)])
        yield case(f"masked_{kind}_initial_state_given_mask", masked_initial_state(make, {"given": True}), [SERIES, *states(kind)])
        yield case(f"masked_{kind}_initial_state_unrolled", masked_initial_state(make, {"given": True, "unroll": True}), [SERIES, *states(kind)])
    yield case("masked_embedding", functional_embedding(), TOKENS)
    yield case("mask_as_an_input", mask_input(), [SERIES, KEPT])
    yield case("mask_of_integers", mask_input("int32"), [SERIES, KEPT.astype("int32")])
    yield case("masked_steps_reach_the_pooling", masked_pooling(), TOKENS)
    yield case("masked_stack", masked_stack(), TOKENS)


def functional_mask(instance):
    x = keras.Input((6, 3))
    return keras.Model(x, instance(layers.Masking()(x)))


def unrolled_zero_output(kind, arguments):
    return functional_mask(KINDS[kind](4, unroll=True, zero_output_for_mask=True, **arguments))


def unrolled_bidirectional(kind, mode):
    return functional_mask(layers.Bidirectional(KINDS[kind](4, return_sequences=True, unroll=True), merge_mode=mode))


def sequential_mask(make):
    return keras.Sequential(
        [
            keras.Input((6,), dtype="int32"),
            layers.Embedding(7, 3, mask_zero=True),
            make(4, return_sequences=True),
            layers.Dropout(0.1),
            layers.Dense(3),
            layers.LayerNormalization(),
            layers.TimeDistributed(layers.Dense(3, activation="relu")),
            make(4, return_sequences=True, go_backwards=True),
            make(2),
        ]
    )


def states(kind):
    random = np.random.default_rng(2)
    return [random.standard_normal((5, 4)).astype("float32") for _ in range(2 if kind == "lstm" else 1)]


def masked_initial_state(make, options):
    """Without a mask of its own, a layer that is given states heeds no mask in Keras 3, but passes it on."""
    x = keras.Input((6, 3))
    masking = layers.Masking()
    y = masking(x)
    count = 2 if make is layers.LSTM else 1
    given = [keras.Input((4,)) for _ in range(count)]
    instance = make(4, return_sequences=True, return_state=True, unroll=options.get("unroll", False))
    arguments = {"mask": masking.compute_mask(x)} if options.get("given") else {}
    outputs = instance(y, initial_state=given, **arguments)
    return keras.Model([x, *given], [*outputs, layers.GRU(3)(outputs[0])])


def functional_embedding():
    x = keras.Input((None,), dtype="int32")
    y = layers.Embedding(7, 3, mask_zero=True)(x)
    y = layers.Bidirectional(layers.LSTM(4, return_sequences=True))(y)
    return keras.Model(x, [y, layers.LSTM(2)(y)])


def mask_input(dtype="bool"):
    x, mask = keras.Input((6, 3)), keras.Input((6,), dtype=dtype)
    return keras.Model([x, mask], layers.GRU(4, return_sequences=True)(x, mask=mask))


def masked_pooling():
    return keras.Sequential(
        [
            keras.Input((6,), dtype="int32"),
            layers.Embedding(7, 3, mask_zero=True),
            layers.Bidirectional(layers.GRU(4, return_sequences=True)),
            layers.GlobalAveragePooling1D(),
        ]
    )


def masked_stack():
    return keras.Sequential(
        [
            keras.Input((6,), dtype="int32"),
            layers.Embedding(7, 3, mask_zero=True),
            layers.RNN([layers.LSTMCell(4), layers.GRUCell(3), layers.LSTMCell(2)], return_sequences=True),
            layers.RNN([layers.SimpleRNNCell(4), layers.SimpleRNNCell(3)], go_backwards=True),
        ]
    )


def initial_states():
    for kind, make in KINDS.items():
        yield case(f"{kind}_initial_state", given_states(make(4, return_sequences=True, return_state=True), 2 if kind == "lstm" else 1))
        yield case(f"{kind}_initial_state_backwards", given_states(make(4, go_backwards=True), 2 if kind == "lstm" else 1))
    yield case("gru_initial_state_alone", one_state())
    yield case("states_from_an_encoder", encoder_decoder())


def given_states(instance, count):
    x, given = keras.Input((6, 3)), [keras.Input((4,)) for _ in range(count)]
    return keras.Model([x, *given], instance(x, initial_state=given))


def one_state():
    x, state = keras.Input((6, 3)), keras.Input((4,))
    return keras.Model([x, state], layers.GRU(4)(x, initial_state=state))


def encoder_decoder():
    source, target = keras.Input((None, 3), name="source"), keras.Input((None, 2), name="target")
    _, h, c = layers.LSTM(4, return_state=True)(source)
    y = layers.LSTM(4, return_sequences=True)(target, initial_state=[h, c])
    return keras.Model([source, target], layers.TimeDistributed(layers.Dense(2))(y))


def cells():
    for kind, make in CELLS.items():
        yield layer(f"rnn_of_{kind}_cell", layers.RNN(make(4), return_sequences=True, return_state=True), (6, 3))
        yield case(f"{kind}_cell_alone", cell_alone(make(4), 2 if kind == "lstm" else 1))
    yield layer("rnn_of_a_cell_with_options", layers.RNN(layers.GRUCell(4, reset_after=False, use_bias=False, activation="relu")), (6, 3))
    three = [layers.LSTMCell(4), layers.GRUCell(3), layers.LSTMCell(2)]
    yield layer("stack", layers.RNN(three), (6, 3))
    yield layer("stack_with_states", layers.RNN(layers.StackedRNNCells([layers.LSTMCell(4), layers.GRUCell(3)]), return_state=True), (6, 3))
    yield layer(
        "stack_backwards", layers.RNN([layers.GRUCell(4), layers.SimpleRNNCell(3)], return_sequences=True, go_backwards=True), (6, 3)
    )
    yield case("stack_initial_state", stack_initial_state())
    yield case("stack_alone", stack_alone())
    yield case("stacks_and_layers", stacks_and_layers())


def cell_alone(cell, count):
    x, given = keras.Input((3,)), [keras.Input((4,)) for _ in range(count)]
    output, states = cell(x, given)
    return keras.Model([x, *given], [output, *states])


def stack_initial_state():
    x = keras.Input((6, 3))
    sizes = (4, 4, 3)
    h, c, g = (keras.Input((size,)) for size in sizes)
    y = layers.RNN([layers.LSTMCell(4), layers.GRUCell(3)], return_state=True)(x, initial_state=[[h, c], [g]])
    return keras.Model([x, h, c, g], keras.tree.flatten(y))


def stack_alone():
    x, h, c, g = (keras.Input((size,)) for size in (3, 4, 4, 2))
    output, states = layers.StackedRNNCells([layers.LSTMCell(4), layers.GRUCell(2)])(x, [[h, c], [g]])
    return keras.Model([x, h, c, g], [output, *keras.tree.flatten(states)])


def stacks_and_layers():
    x = keras.Input((None, 3))
    y = layers.RNN([layers.LSTMCell(4), layers.LSTMCell(5)], return_sequences=True)(x)
    y = layers.LSTM(3, return_sequences=True)(y)
    return keras.Model(x, layers.RNN(layers.LSTMCell(2))(y))


def bidirectional():
    for mode in ("concat", "sum", "mul", "ave", None):
        yield layer(f"bidirectional_{str(mode).lower()}", layers.Bidirectional(layers.LSTM(4, return_sequences=True), merge_mode=mode), (6, 3))
        yield layer(f"bidirectional_{str(mode).lower()}_last", layers.Bidirectional(layers.GRU(4), merge_mode=mode), (6, 3))
    for kind, make in KINDS.items():
        yield layer(f"bidirectional_{kind}_state", layers.Bidirectional(make(4, return_state=True, return_sequences=True)), (6, 3))
        yield case(f"masked_bidirectional_{kind}", functional_mask(layers.Bidirectional(make(4, return_sequences=True))), SERIES)
        yield case(f"masked_bidirectional_{kind}_last", functional_mask(layers.Bidirectional(make(4))), SERIES)
        for mode in ("concat", "sum"):
            build = partial(unrolled_bidirectional, kind, mode)
            yield case(f"masked_bidirectional_{kind}_unrolled_{mode}", build, SERIES, oracle="tensorflow")
    yield layer("bidirectional_unmerged_state", layers.Bidirectional(layers.LSTM(4, return_state=True), merge_mode=None), (6, 3))
    yield layer(
        "bidirectional_backward_layer",
        layers.Bidirectional(
            layers.LSTM(4, return_sequences=True), backward_layer=layers.GRU(5, activation="relu", go_backwards=True, return_sequences=True)
        ),
        (6, 3),
    )
    yield layer("bidirectional_rnn", layers.Bidirectional(layers.RNN(layers.GRUCell(4), return_sequences=True), merge_mode="sum"), (6, 3))
    yield layer("bidirectional_stack", layers.Bidirectional(layers.RNN([layers.LSTMCell(4), layers.GRUCell(3)])), (6, 3))
    yield layer("bidirectional_conv_lstm", layers.Bidirectional(layers.ConvLSTM1D(2, 3, return_sequences=True)), (4, 6, 3))
    yield layer("bidirectional_unknown_time", layers.Bidirectional(layers.LSTM(4, return_sequences=True)), (None, 3))
    yield case("bidirectional_stateful", bidirectional_stateful(), single=False)
    yield case("bidirectional_initial_state", bidirectional_initial_state())
    yield case("bidirectional_masked_without_merge", functional_mask(layers.Bidirectional(layers.GRU(3, return_sequences=True), merge_mode=None)), SERIES)
    yield case(
        "bidirectional_deep",
        keras.Sequential(
            [
                keras.Input((None, 3)),
                layers.Bidirectional(layers.LSTM(4, return_sequences=True)),
                layers.Bidirectional(layers.GRU(4, return_sequences=True), merge_mode="ave"),
                layers.Bidirectional(layers.SimpleRNN(3)),
                layers.Dense(2),
            ]
        ),
    )


def bidirectional_stateful():
    x = keras.Input(batch_shape=(2, 6, 3))
    return keras.Model(x, layers.Bidirectional(layers.GRU(4, stateful=True))(x))


def bidirectional_initial_state():
    x, given = keras.Input((6, 3)), [keras.Input((4,)) for _ in range(4)]
    return keras.Model([x, *given], layers.Bidirectional(layers.LSTM(4, return_state=True))(x, initial_state=given))


def conv_lstm():
    shapes = {1: (3, 7, 2), 2: (3, 6, 5, 2), 3: (2, 4, 5, 3, 2)}
    kinds = {1: layers.ConvLSTM1D, 2: layers.ConvLSTM2D, 3: layers.ConvLSTM3D}
    for rank, make in kinds.items():
        shape = shapes[rank]
        first = (shape[0], shape[-1], *shape[1:-1])
        yield layer(f"conv_lstm{rank}d", make(3, 2), shape)
        yield layer(f"conv_lstm{rank}d_same", make(3, 3, padding="same", return_sequences=True, return_state=True), shape)
        yield layer(f"conv_lstm{rank}d_channels_first", make(3, 2, data_format="channels_first", return_sequences=True), first)
        yield layer(f"conv_lstm{rank}d_strides", make(2, 2, strides=2, return_sequences=True, go_backwards=True), shape)
    options = {
        "channels_first_state": {"data_format": "channels_first", "return_state": True},
        "dilation": {"dilation_rate": (2, 1), "padding": "same"},
        "strides_same": {"strides": (2, 3), "padding": "same"},
        "activations": {"activation": "relu", "recurrent_activation": "hard_sigmoid", "use_bias": False},
        "dropout": {"dropout": 0.2, "recurrent_dropout": 0.1, "unit_forget_bias": False},
        "unrolled": {"unroll": True, "return_sequences": True},
    }
    for name, arguments in options.items():
        yield layer(f"conv_lstm2d_{name}", layers.ConvLSTM2D(3, (3, 2), **arguments), (3, 2, 6, 5) if "channels" in name else (3, 6, 5, 2))
    along_columns = dict(data_format="channels_first", activation="softmax", recurrent_activation="sparsemax", return_state=True)
    yield layer("conv_lstm2d_softmax_of_channels_first", layers.ConvLSTM2D(3, 2, **along_columns), (3, 2, 6, 5))
    yield case("conv_lstm2d_initial_state", conv_lstm_initial_state())
    yield layer("conv_lstm2d_unknown_time", layers.ConvLSTM2D(2, 3), (None, 5, 5, 2), length=4)
    yield case(
        "conv_lstm2d_masked_in_tensorflow", lambda: conv_lstm_masked(), [np.ones((5, 6, 4, 4, 1), "float32"), KEPT], oracle="tensorflow"
    )


def conv_lstm_initial_state():
    x, h, c = keras.Input((3, 2, 5, 5)), keras.Input((4, 3, 3)), keras.Input((4, 3, 3))
    y = layers.ConvLSTM2D(4, 3, data_format="channels_first", return_state=True)(x, initial_state=[h, c])
    return keras.Model([x, h, c], y)


def conv_lstm_masked():
    x, mask = keras.Input((6, 4, 4, 1)), keras.Input((6,), dtype="bool")
    return keras.Model([x, mask], layers.ConvLSTM2D(2, 3, return_sequences=True)(x, mask=mask))


def time_distributed():
    inside = {
        "dense": (lambda: layers.Dense(4, activation="relu"), (5, 3)),
        "dense_on_more_axes": (lambda: layers.Dense(4), (5, 2, 3)),
        "convolution": (lambda: layers.Conv2D(3, 3), (4, 6, 5, 2)),
        "pooling": (lambda: layers.GlobalAveragePooling2D(), (4, 6, 5, 2)),
        "flatten": (lambda: layers.Flatten(), (4, 3, 2)),
        "flatten_of_whole_numbers": (lambda: layers.Flatten(dtype="int32"), (4, 3, 2)),
        "batch_normalization": (lambda: layers.BatchNormalization(), (4, 3)),
        "lstm": (lambda: layers.LSTM(4, return_sequences=True), (3, 5, 2)),
        "bidirectional": (lambda: layers.Bidirectional(layers.GRU(4)), (3, 5, 2)),
        "time_distributed": (lambda: layers.TimeDistributed(layers.Dense(4)), (3, 5, 2)),
        "dropout": (lambda: layers.Dropout(0.5), (4, 3)),
    }
    for name, (make, shape) in inside.items():
        yield layer(f"time_distributed_{name}", layers.TimeDistributed(make()), shape)
    yield layer("time_distributed_unknown_time", layers.TimeDistributed(layers.Dense(4)), (None, 3))
    yield layer("time_distributed_sequential", layers.TimeDistributed(small_network()), (4, 6, 5, 2))
    yield layer("time_distributed_functional", layers.TimeDistributed(small_functional()), (4, 6))
    yield case("time_distributed_masked_inside", masked_inside(), np.stack([TOKENS, TOKENS[::-1]], 1))
    yield case("time_distributed_keeps_the_mask", keeps_the_mask(), TOKENS)
    yield case("time_distributed_shared", shared_network(), formats=("h5",))  # Keras cannot read its own .keras of it


def small_network():
    return keras.Sequential([layers.Conv2D(3, 3, activation="relu"), layers.MaxPooling2D(), layers.Flatten(), layers.Dense(3)])


def small_functional():
    x = keras.Input((6,))
    return keras.Model(x, layers.Add()([layers.Dense(4)(x), layers.Dense(4, activation="tanh")(x)]))


def masked_inside():
    """Documents of sentences of words: the word mask counts inside."""
    sentence = keras.Sequential([keras.Input((6,), dtype="int32"), layers.Embedding(7, 3, mask_zero=True), layers.LSTM(4)])
    return keras.Sequential([keras.Input((2, 6), dtype="int32"), layers.TimeDistributed(sentence), layers.GRU(3)])


def keeps_the_mask():
    return keras.Sequential(
        [
            keras.Input((6,), dtype="int32"),
            layers.Embedding(7, 3, mask_zero=True),
            layers.TimeDistributed(layers.Dense(4)),
            layers.LSTM(3, return_sequences=True),
        ]
    )


def shared_network():
    network = small_functional()
    x, y = keras.Input((4, 6)), keras.Input((6,))
    sequence = layers.TimeDistributed(network)(x)
    return keras.Model([x, y], layers.Concatenate()([layers.LSTM(3)(sequence), network(y)]))
