"""Files of Keras 2, written by tf-keras: the legacy .h5 layout and its own .keras. Models and how they are nested, frozen and called."""

import json

import numpy as np
from harness import case


def cases():
    for build in (
        sequential,
        functional,
        nested,
        nested_twice,
        siamese,
        shared_at_depths,
        dictionaries,
        dictionary_into_a_model,
        several_outputs_inside,
        frozen_layer,
        frozen_model,
        frozen_normalization,
        frozen_model_with_a_free_layer,
        frozen_models_with_free_layers_of_one_name,
        frozen_wrapper_of_a_model,
        frozen_depthwise_convolution,
        composite_layers,
        truncated,
        sequential_in_sequential,
        input_shape_in_the_first_layer,
        slashes_in_names,
        one_class_many_times,
        long_weight_names,
        mixed_precision,
        compiled,
        masks_by_argument,
        attention_arguments,
        layer_of_an_application,
        random_layers,
    ):
        yield case(build.__name__, build, oracle="tf_keras")
    yield case("locally_connected", locally_connected, oracle="tf_keras")
    yield case("locally_connected_densely", lambda: locally_connected(implementation=2), oracle="tf_keras", refused="implementation=1")
    yield case("embedding_first", embedding_first, TOKENS, oracle="tf_keras")
    yield case("wide_and_deep", wide_and_deep, [np.ones((3, 2), "float32"), TOKENS], oracle="tf_keras")
    yield case("old_class_names", old_class_names, oracle="tf_keras", formats=("h5",))
    yield case("sequential_as_a_list", sequential_as_a_list, oracle="tf_keras", formats=("h5",))
    yield case("archive_of_windows", lambda: renamed_archive("\\"), oracle="tf_keras", formats=("keras",))
    yield case("archive_that_counts_twice", lambda: renamed_archive("/"), oracle="tf_keras", formats=("keras",))
    yield case("subclassed", subclassed, oracle="tf_keras", formats=("keras",), refused="custom object")
    yield case("lambda_layer", lambda_layer, oracle="tf_keras", refused="Lambda")
    yield case("dropout_in_training", dropout_in_training, oracle="tf_keras", refused="training=True")
    yield case("ragged_input", ragged_input, oracle="tf_keras", refused="ragged")
    yield case("weights_only", weights_only, oracle="tf_keras", formats=("h5",), refused="weights but no model")


TOKENS = (np.arange(12).reshape(3, 4) % 5).astype("int32")


def keras():
    import tf_keras

    return tf_keras, tf_keras.layers


def sequential():
    from tf_keras import Sequential, layers

    return Sequential([layers.Input((5,)), layers.Dense(4, activation="hard_sigmoid"), layers.Dense(2)])


def functional():
    from tf_keras import Input, Model, layers

    left, right = Input((3,), name="left"), Input((4,), name="right")
    both = layers.Concatenate()([left, right])
    return Model([left, right], [layers.Dense(2, name="small")(both), layers.Dense(5, name="large")(both)])


def block(units=3, inputs=4):
    k, L = keras()
    x = k.Input((inputs,))
    y = L.BatchNormalization()(L.Dense(units)(x))
    return k.Model(x, L.BatchNormalization()(L.PReLU()(L.Dense(units)(y))))


def nested():
    k, L = keras()
    x = k.Input((5,))
    return k.Model(x, L.Dense(2)(k.Sequential([block(), L.Dense(4)])(L.Dense(4)(x))))


def nested_twice():
    k, L = keras()
    model = block(4)
    for _ in range(3):
        x = k.Input((4,))
        model = k.Model(x, k.Sequential([model, L.Dense(4)])(x))
    return model


def siamese():
    k, L = keras()
    tower, left, right = block(), k.Input((4,)), k.Input((4,))
    a, b = tower(left), tower(right)
    return k.Model([left, right], [L.Subtract()([a, b]), b, a])


def shared_at_depths():
    k, L = keras()
    tower, dense, x = block(4), L.Dense(4), k.Input((4,))
    y = dense(tower(dense(tower(x))))
    return k.Model(x, L.Add()([y, dense(y), tower(x)]))


def dictionaries():
    k, L = keras()
    given = {"b": k.Input((3,), name="b"), "a": k.Input((4,), name="a")}
    y = L.Concatenate()([given["b"], given["a"]])
    return k.Model(given, {"z": L.Dense(2, name="z")(y), "c": L.Dense(3, name="c")(y)})


def dictionary_into_a_model():
    k, _ = keras()
    inner, a, b = dictionaries(), k.Input((4,)), k.Input((3,))
    out = inner({"a": a, "b": b})
    return k.Model([a, b], [out["c"], out["z"]])


def several_outputs_inside():
    k, L = keras()
    x = k.Input((4,))
    inner = k.Model(x, [L.Dense(2)(x), L.Dense(3)(x)])
    outer = k.Input((4,))
    first, second = inner(outer)
    return k.Model(outer, [second, L.Dense(2)(first)])


def with_frozen(change):
    k, L = keras()
    inner, x = block(), k.Input((4,))
    change(inner)
    return k.Model(x, L.Dense(2)(k.Sequential([L.Dense(4), inner, L.BatchNormalization()])(x)))


def freeze(layer):
    layer.trainable = False


def frozen_layer():
    return with_frozen(lambda inner: freeze(inner.layers[1]))


def frozen_normalization():
    return with_frozen(lambda inner: freeze(inner.layers[2]))


def frozen_model():
    return with_frozen(freeze)


def frozen_model_with_a_free_layer():
    def change(inner):
        inner.trainable = False
        inner.layers[1].trainable = True

    return with_frozen(change)


def frozen_models_with_free_layers_of_one_name():
    """Weights whose names do not tell them apart are in an order that a frozen model has and no other layer."""
    k, L = keras()

    def chain(*layers):
        x = y = k.Input((4,))
        for layer in layers:
            y = layer(y)
        return k.Model(x, y)

    def tower(path):
        return chain(L.Dense(4, name=f"{path}in"), L.BatchNormalization(name=f"{path}norm"), L.Dense(4, name=f"{path}out"), L.BatchNormalization(name=f"{path}last"))

    inner = chain(tower(""), chain(tower("b/"), L.Dense(4)))
    model = chain(inner, L.Dense(2))
    inner.trainable = False
    first, second = inner.layers[1], inner.layers[2].layers[1]
    first.trainable = True
    first.layers[1].trainable = False
    second.layers[3].trainable = second.layers[4].trainable = True
    return model


def frozen_wrapper_of_a_model():
    k, L = keras()
    x = k.Input((5, 4))
    inner = k.Sequential([L.Input((4,)), L.Dense(4, name="a"), L.BatchNormalization(name="b"), L.Dense(4, name="b/a"), L.BatchNormalization(name="b/b")])
    wrapper = L.TimeDistributed(inner)
    model = k.Model(x, L.Dense(2)(wrapper(x)))
    wrapper.trainable = False
    inner.trainable = True
    return model


def frozen_depthwise_convolution():
    k, L = keras()
    x, y = k.Input((6, 6, 3)), k.Input((6, 6, 3))
    inner = k.Model(x, L.BatchNormalization()(L.DepthwiseConv2D(3)(L.BatchNormalization()(L.Conv2D(3, 1)(x)))))
    inner.trainable = False
    inner.layers[-1].trainable = True
    return k.Model(y, L.Dense(2)(inner(y)))


def composite_layers():
    k, L = keras()
    x = k.Input((5, 4))
    y = L.Bidirectional(L.LSTM(3, return_sequences=True))(x)
    y = L.MultiHeadAttention(2, 3)(y, y)
    y = L.RNN([L.LSTMCell(4), L.GRUCell(3), L.LSTMCell(2)], return_sequences=True)(y)
    y = L.TimeDistributed(L.BatchNormalization(), trainable=False)(y)
    inner = k.Model(x, L.SeparableConv1D(3, 2)(y))
    outer = k.Input((5, 4))
    return k.Model(outer, L.LSTM(2)(inner(L.Dense(4)(outer))))


def truncated():
    k, L = keras()
    base = block(4)
    return k.Model(base.inputs, L.Dense(2)(base.layers[2].output))


def sequential_in_sequential():
    k, L = keras()
    return k.Sequential([k.Sequential([L.Dense(3, input_shape=(4,)), L.Dense(2)]), k.Sequential([L.Dense(3)])])


def input_shape_in_the_first_layer():
    k, L = keras()
    return k.Sequential([L.Conv1D(3, 2, input_shape=(None, 2)), L.GlobalMaxPooling1D(), L.Dense(1)])


def slashes_in_names():
    k, L = keras()
    x = k.Input((4,))
    return k.Model(x, L.Dense(2, name="block_1/out")(L.Dense(3, name="block_1/in")(x)))


def one_class_many_times():
    k, L = keras()
    x = y = k.Input((3,))
    for i in range(12):
        y = L.Dense(3, name=f"{'zyx'[i % 3]}_{i}")(y)
    return k.Model(x, y)


def long_weight_names():
    k, L = keras()
    x = y = k.Input((2,))
    for i in range(180):
        y = L.Dense(2, name=f"a_layer_whose_name_is_as_long_as_it_takes_to_fill_an_attribute_{i}" + "x" * 120)(y)
    inner, outer = k.Model(x, y), k.Input((2,))
    return k.Model(outer, L.Dense(2)(inner(outer)))


def mixed_precision():
    k, L = keras()
    policy = k.mixed_precision.Policy("mixed_float16")
    x = k.Input((4,))
    y = L.BatchNormalization(dtype=policy)(L.Dense(4, activation="relu", dtype=policy)(x))
    return k.Model(x, L.Dense(2, dtype="float32")(y))


def compiled():
    model = nested()
    model.compile("rmsprop", "mse", metrics=["mae"])
    model.fit(np.ones((4, 5)), np.ones((4, 2)), verbose=0)
    return model


def masks_by_argument():
    k, L = keras()
    x, mask = k.Input((6, 3)), k.Input((6,), dtype="bool")
    return k.Model([x, mask], L.GRU(3)(x, mask=mask))


def attention_arguments():
    k, L = keras()
    x, y = k.Input((5, 4)), k.Input((6, 4))
    return k.Model([x, y], L.MultiHeadAttention(2, 3)(x, y, key=y, use_causal_mask=True))


def embedding_first():
    k, L = keras()
    return k.Sequential([L.Embedding(5, 3, input_length=4), L.Flatten(), L.Dense(2)])


def wide_and_deep():
    k, L = keras()
    wide, tokens = k.Input((2,)), k.Input((4,), dtype="int32")
    deep = L.Flatten()(L.Embedding(5, 3)(tokens))
    return k.Model([wide, tokens], L.Dense(1, activation="sigmoid")(L.concatenate([wide, L.Dense(3, activation="relu")(deep)])))


def edited(model, change):
    """Saves the model's file with a changed config."""
    import h5py

    save = model.save

    def save_edited(path):
        save(path)
        with h5py.File(path, "a") as file:
            file.attrs["model_config"] = json.dumps(change(json.loads(file.attrs["model_config"])))

    model.save = save_edited
    return model


def locally_connected(**options):
    from tf_keras import Input, Model, layers

    x = Input((7, 6, 2))
    y = layers.LocallyConnected2D(3, (3, 2), strides=(2, 1), activation="tanh", **options)(x)
    y = layers.LocallyConnected1D(2, 3, strides=2)(layers.Reshape((15, 3))(y))
    return Model(x, layers.LocallyConnected1D(2, 2, use_bias=False)(y))


def old_class_names():
    def rename(config):
        text = json.dumps(config).replace('"BatchNormalization"', '"BatchNormalizationV1"').replace('"Functional"', '"Model"')
        return json.loads(text)

    return edited(nested(), rename)


def sequential_as_a_list():
    def flatten(config):
        return {"class_name": "Sequential", "config": config["config"]["layers"][1:]}

    return edited(input_shape_in_the_first_layer(), flatten)


def renamed_archive(separator):
    """As TensorFlow 2.12 and 2.13 named the groups of an archive's weights."""
    import io
    import zipfile

    import h5py

    k, L = keras()
    inner = k.Sequential([L.Dense(3), L.Dense(3)])
    model = k.Sequential([L.Dense(4, input_shape=(5, 3)), L.LSTM(3, return_sequences=True), L.Dense(3), inner, L.LSTM(2), L.Dense(2)])
    save = model.save

    def renamed(path):
        out = []
        for name in path.split("/"):
            out.append("_layer_checkpoint_dependencies" if name == "layers" else name)
        for i, name in enumerate(out):
            base, _, number = name.rpartition("_")
            if base in ("dense", "lstm") and number.isdigit() and out[i - 1].startswith("_layer"):
                out[i] = f"{base}_{2 * int(number)}"
        return separator.join(out)

    def save_renamed(path):
        save(path)
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        source, target = h5py.File(io.BytesIO(members["model.weights.h5"])), io.BytesIO()
        with h5py.File(target, "w") as file:

            def copy(name, item):
                if name.endswith("/vars") and not name.startswith(("optimizer", "metrics")):
                    source.copy(item, file.require_group(renamed(name[: -len("/vars")])), "vars")

            source.visititems(copy)
        members["model.weights.h5"] = target.getvalue()
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)

    model.save = save_renamed
    return model


def subclassed():
    k, L = keras()

    @k.utils.register_keras_serializable("legacy_cases")
    class Own(k.Model):
        def __init__(self):
            super().__init__()
            self.dense = L.Dense(2)

        def call(self, x):
            return self.dense(x)

        def get_config(self):
            return {}

    model = Own()
    model(np.ones((1, 3), "float32"))
    return model


def lambda_layer():
    k, L = keras()
    return k.Sequential([L.Dense(2, input_shape=(3,)), L.Lambda(lambda x: x * 2)])


def dropout_in_training():
    k, L = keras()
    x = k.Input((6, 3))
    return k.Model(x, L.LSTM(2, dropout=0.5)(x, training=True))


def ragged_input():
    k, L = keras()
    x = k.Input((None, 3), ragged=True)
    return k.Model(x, L.LSTM(2)(x))


def weights_only():
    model = sequential()
    model.save = model.save_weights
    return model


def layer_of_an_application():
    """tf-keras registers it as a script would its own: Custom>CustomScaleLayer."""
    from tf_keras import Input, Model, layers
    from tf_keras.src.applications.inception_resnet_v2 import CustomScaleLayer

    x = Input((4, 4, 2))
    return Model(x, CustomScaleLayer(scale=0.17)([x, layers.Conv2D(2, 1)(x)]))


def random_layers():
    """Some keep their kind of random generator in the config; RandomCrop resizes at inference."""
    from tf_keras import Input, Sequential, layers

    augmentation = [layers.RandomCrop(5, 6), layers.RandomFlip(), layers.RandomZoom(0.1), layers.RandomBrightness(0.2)]
    return Sequential([Input((8, 8, 3)), *augmentation, layers.Conv2D(2, 3), layers.SpatialDropout2D(0.2)])
