"""Models in models: shared, frozen, deep, with dictionaries; their weights must find their places in both formats."""

import keras
from harness import case
from keras import layers


def cases():
    yield case("nested_model_is_the_output", nested_output())
    yield case("shared_model_gives_two_outputs", shared_outputs())
    yield case("shared_sequential_gives_two_outputs", shared_sequential_outputs())
    yield case("shared_model_at_several_depths", several_depths())
    yield case("four_levels", four_levels())
    yield case("several_outputs_inside", several_outputs_inside())
    yield case("dictionaries", dictionaries())
    yield case("dictionary_into_a_nested_model", nested_dictionary())
    yield case("lists_of_lists", nested_lists())
    yield case("frozen_layer_inside", frozen(lambda inner: freeze(inner.layers[1])))
    yield case("frozen_normalization_inside", frozen(lambda inner: freeze(inner.layers[2])))
    yield case("frozen_model_inside", frozen(freeze))
    yield case("frozen_model_with_a_free_layer", frozen(lambda inner: free_one(inner)))
    yield case("frozen_half", frozen(lambda inner: [freeze(each) for each in inner.layers[:4]]))
    yield case("everything_frozen", whole_frozen())
    yield case("composite_layers_inside", composite_layers())
    yield case("composite_layers_frozen", composite_layers(frozen=True))
    yield case("layer_of_two_models", layer_of_two_models(), formats=("h5",))  # Keras cannot read its own .keras of it
    yield case("layer_of_two_models_is_kept_once", layer_of_two_models(), formats=("keras",), refused="hint: save the model as .h5")
    yield case("model_beside_another_that_has_it", beside_and_inside())
    yield case("model_beside_its_wrapper", beside_its_wrapper())
    yield case("cell_of_two_layers", cell_of_two_layers(), formats=("h5",))  # nor of this
    yield case("long_weight_names", long_weight_names())
    yield case("sequential_without_input", keras.Sequential([keras.Sequential([layers.Dense(3), layers.Dense(2)])]), inputs=[ones((2, 4))])
    yield case("sequential_that_ends_in_a_model", sequential_model())
    yield case("sequential_that_ends_in_several_outputs", sequential_of(block_of_two(), (4,)))
    yield case("sequential_that_ends_in_states", sequential_of(layers.LSTM(3, return_state=True), (5, 4)))
    yield case("same_class_many_times", same_class())
    yield case("unused_layers_of_a_bigger_model", truncated())
    yield case("called_by_name", called_by_name())


def ones(shape):
    import numpy as np

    return np.random.default_rng(8).standard_normal(shape).astype("float32")


def freeze(layer):
    layer.trainable = False


def free_one(model):
    model.trainable = False
    model.layers[1].trainable = True


def block(units=3, name=None, inputs=4):
    x = keras.Input((inputs,))
    y = layers.BatchNormalization()(layers.Dense(units)(x))
    y = layers.PReLU()(layers.Dense(units)(y))
    return keras.Model(x, layers.BatchNormalization()(y), name=name)


def block_of_two():
    x = keras.Input((4,))
    return keras.Model(x, [layers.Dense(3)(x), layers.Dense(2)(x)])


def sequential_of(last, shape):
    return keras.Sequential([keras.Input(shape), layers.Dense(4), last])


# What layers call their first argument differs.
def called_by_name():
    x = keras.Input((5, 6, 4))
    y = layers.Reshape((-1, 4))(inputs=layers.Resizing(3, 4)(layers.RMSNormalization()(x=x)))
    y = layers.GRU(4, return_sequences=True)(sequences=y)
    y = layers.MultiHeadAttention(2, 3)(query=y, value=layers.Dense(4)(y))
    return keras.Model(x, block()(inputs=layers.GlobalAveragePooling1D()(inputs=y)))


def nested_output():
    x = keras.Input((4,))
    return keras.Model(x, block(2, inputs=3)(layers.Dense(3)(x)))


def shared_outputs():
    tower, left, right = block(), keras.Input((4,)), keras.Input((4,))
    return keras.Model([left, right], [tower(left), tower(right)])


def shared_sequential_outputs():
    tower = keras.Sequential([layers.Dense(3), layers.BatchNormalization()])
    left, right = keras.Input((4,)), keras.Input((4,))
    return keras.Model([left, right], [tower(left), tower(right)])


def several_depths():
    tower, x = block(4), keras.Input((4,))
    y = tower(layers.Dense(4)(tower(x)))
    return keras.Model(x, [layers.Add()([y, tower(y)]), y])


def four_levels():
    model = block(4)
    for _ in range(3):
        x = keras.Input((4,))
        model = keras.Model(x, layers.Dense(4)(keras.Sequential([model, layers.Dense(4, activation="relu")])(x)))
    return model


def several_outputs_inside():
    x = keras.Input((4,))
    inner = keras.Model(x, [layers.Dense(2)(x), layers.Dense(3)(x)])
    outer = keras.Input((4,))
    first, second = inner(outer)
    return keras.Model(outer, [second, layers.Dense(2)(first)])


def dictionaries():
    given = {"b": keras.Input((3,), name="b"), "a": keras.Input((4,), name="a")}
    y = layers.Concatenate()([given["b"], given["a"]])
    return keras.Model(given, {"z": layers.Dense(2)(y), "c": layers.Dense(3)(y)})


def nested_dictionary():
    inner = dictionaries()
    a, b = keras.Input((4,)), keras.Input((3,))
    out = inner({"a": a, "b": b})
    return keras.Model([a, b], [out["c"], out["z"]])


def nested_lists():
    a, b, c = (keras.Input((n,)) for n in (2, 3, 4))
    y = layers.Concatenate()([c, a, b])
    return keras.Model([a, [b, c]], [layers.Dense(1)(y), [layers.Dense(2)(y)]])


def frozen(change):
    inner = block()
    change(inner)
    x = keras.Input((4,))
    return keras.Model(x, layers.Dense(2)(keras.Sequential([layers.Dense(4), inner, layers.BatchNormalization()])(x)))


def whole_frozen():
    model = frozen(lambda inner: None)
    model.trainable = False
    return model


def composite_layers(frozen=False):
    x = keras.Input((5, 4))
    y = layers.Bidirectional(layers.LSTM(3, return_sequences=True), trainable=not frozen)(x)
    y = layers.MultiHeadAttention(2, 3, trainable=not frozen)(y, y)
    y = layers.RNN([layers.LSTMCell(4), layers.GRUCell(3), layers.LSTMCell(2)], return_sequences=True)(y)
    y = layers.TimeDistributed(layers.BatchNormalization(), trainable=not frozen)(y)
    y = layers.SeparableConv1D(3, 2)(y)
    inner = keras.Model(x, y)
    outer = keras.Input((5, 4))
    return keras.Model(outer, layers.LSTM(2)(inner(layers.Dense(4)(outer))))


def layer_of_two_models():
    shared, x = layers.Dense(3), keras.Input((4,))
    first = keras.Model(x, layers.Dense(2)(shared(x)))
    second = keras.Model(x, layers.Dense(3)(shared(x)))
    outer = keras.Input((4,))
    return keras.Model(outer, [first(outer), second(outer)])


def beside_and_inside():
    """A .keras file holds the weights of the shared one once, and says by a number that it is shared."""
    shared = block(4)
    return keras.Sequential([keras.Input((4,)), shared, keras.Sequential([keras.Input((4,)), shared, layers.Dense(3)])])


def beside_its_wrapper():
    shared, x = layers.Dense(4, "tanh"), keras.Input((5, 4))
    return keras.Model(x, layers.TimeDistributed(shared)(shared(x)))


def cell_of_two_layers():
    cell, x = layers.GRUCell(4), keras.Input((5, 4))
    return keras.Model(x, layers.RNN(cell)(layers.RNN(cell, return_sequences=True)(x)))


def long_weight_names():
    """Their list is longer than an HDF5 attribute can be."""
    x = y = keras.Input((2,))
    for i in range(180):
        y = layers.Dense(2, name=f"a_layer_whose_name_is_as_long_as_it_takes_to_fill_an_attribute_{i}" + "x" * 120)(y)
    inner = keras.Model(x, y, name="inner")
    outer = keras.Input((2,))
    return keras.Model(outer, layers.Dense(2)(inner(outer)))


def sequential_model():
    return keras.Sequential([keras.Input((4,)), layers.Dense(4), block()])


def same_class():
    x = y = keras.Input((3,))
    for i in range(12):
        y = layers.Dense(3, name=f"{'zyx'[i % 3]}_{i}")(y)
    return keras.Model(x, y)


def truncated():
    base = block(4)
    return keras.Model(base.inputs, layers.Dense(2)(base.layers[2].output))
