"""Models, data and job files of ./x bench fit: fit_models.py FOLDER NAME writes FOLDER/NAME."""

import json
import pathlib
import sys

# Models, their layers in Keras, one sample, classes, batch, and how many of each.
SIZES = {
    "three of the story": [("32-64-10", 1), ("64-128-5", 1), ("16-32-2", 1)],
    "32 x Dense 32-64-10": [("32-64-10", 32)],
    "100 x Dense 5-2-1": [("5-2-1", 100)],
    "32 x Dense 64-256-256-10": [("64-256-256-10", 32)],
    "10 x LSTM(150)": [("lstm", 10)],
    "8 x CNN": [("cnn", 8)],
    "ResNet 32x32": [("resnet", 1)],
    "U-Net 64x64": [("unet", 1)],
    "Transformer 64x64": [("transformer", 1)],
    "BiLSTM 50x16": [("bilstm", 1)],
    "Separable 48x48": [("separable", 1)],
    "Embedding 20000x64": [("embedding", 1)],
}
# Of those that are no dense layers: one sample, outputs, batch.
KINDS = {
    "lstm": ((20, 20), (20,), 32),
    "cnn": ((28, 28, 1), (10,), 32),
    "resnet": ((32, 32, 3), (10,), 64),
    "unet": ((64, 64, 3), (64, 64, 1), 8),
    "transformer": ((64, 64), (5,), 32),
    "bilstm": ((50, 16), (4,), 32),
    "separable": ((48, 48, 3), (10,), 32),
    "embedding": ((100,), (1,), 64),
}
NAMES = list(SIZES)
SAMPLES = 512
CHECKED = 10  # steps of which losses are compared


def batch(kind):
    return KINDS[kind][2] if kind in KINDS else 64 if kind == "64-256-256-10" else 32


def sample(kind):
    return KINDS[kind][0] if kind in KINDS else (int(kind.split("-")[0]),)


def outputs(kind):
    return KINDS[kind][1] if kind in KINDS else (int(kind.split("-")[-1]),)


def loss(kind):
    return "mse" if outputs(kind)[-1] == 1 else "sparse_categorical_crossentropy"


def members(name):
    """The kind of each model of a benchmark, in order."""
    return [kind for kind, count in SIZES[name] for _ in range(count)]


def net(kind):
    import keras
    from keras import layers

    x = inputs = keras.Input(sample(kind), dtype="int32" if kind == "embedding" else None)
    if kind in MIDDLES:
        x = MIDDLES[kind](layers, x)
    else:
        for width in kind.split("-")[1:-1]:
            x = layers.Dense(int(width), "relu")(x)
    if kind != "unet":
        x = layers.Dense(outputs(kind)[0], None if loss(kind) == "mse" else "softmax")(x)
    return keras.Model(inputs, x)


def cnn(layers, x):
    for filters in (8, 16):
        x = layers.MaxPooling2D()(layers.Conv2D(filters, 3, activation="relu")(x))
    return layers.Flatten()(x)


def normal(layers, x, activation=True):
    x = layers.BatchNormalization()(x)
    return layers.ReLU(6.0)(x) if activation else x


def resnet(layers, x):
    x = layers.Conv2D(16, 3, padding="same")(x)
    for filters, stride in ((16, 1), (32, 2), (64, 2)):
        y = normal(layers, layers.Conv2D(filters, 3, strides=stride, padding="same", use_bias=False)(x))
        y = normal(layers, layers.Conv2D(filters, 3, padding="same", use_bias=False)(y), False)
        x = layers.ReLU()(layers.add([x if stride == 1 else layers.Conv2D(filters, 1, strides=stride)(x), y]))
    return layers.GlobalAveragePooling2D()(x)


def unet(layers, x):
    seen = []
    for filters in (16, 32, 64):
        for _ in range(2):
            x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        seen.append(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(128, 3, padding="same", activation="relu")(x)
    for filters in (64, 32, 16):
        x = layers.concatenate([layers.Conv2DTranspose(filters, 2, strides=2)(x), seen.pop()])
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    return layers.Conv2D(1, 1, activation="sigmoid")(x)


def transformer(layers, x):
    for _ in range(2):
        x = layers.LayerNormalization()(layers.add([x, layers.MultiHeadAttention(4, 16)(x, x)]))
        x = layers.LayerNormalization()(layers.add([x, layers.Dense(64)(layers.Dense(128, "gelu")(x))]))
    return layers.GlobalAveragePooling1D()(x)


def separable(layers, x):
    x = normal(layers, layers.Conv2D(32, 3, strides=2, padding="same", use_bias=False)(x))
    for filters, stride in ((64, 1), (128, 2), (128, 1)):
        x = normal(layers, layers.DepthwiseConv2D(3, strides=stride, padding="same", use_bias=False)(x))
        x = normal(layers, layers.Conv2D(filters, 1, use_bias=False)(x))
    return layers.GlobalAveragePooling2D()(x)


MIDDLES = {
    "lstm": lambda layers, x: layers.LSTM(150)(x),
    "cnn": cnn,
    "resnet": resnet,
    "unet": unet,
    "transformer": transformer,
    "bilstm": lambda layers, x: layers.Bidirectional(layers.LSTM(32))(layers.Bidirectional(layers.LSTM(32, return_sequences=True))(x)),
    "separable": separable,
    "embedding": lambda layers, x: layers.Dense(64, "relu")(layers.GlobalAveragePooling1D()(layers.Embedding(20000, 64)(x))),
}


def job_file(name, epochs, first_only=False):
    text = f'[defaults]\nepochs = {epochs}\nshuffle = false\noptimizer = {{ name = "adam", learning_rate = 0.001 }}\n'
    for i, kind in enumerate(members(name)[: 1 if first_only else None]):
        text += f'[[job]]\nname = "m{i}"\nmodel = "m{i}.keras"\nx = "x{i}.npy"\ny = "y{i}.npy"\nloss = "{loss(kind)}"\nbatch_size = {batch(kind)}\n'
    return text


def main(folder, name):
    import os

    os.environ.update(KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")
    import keras
    import numpy as np

    own = pathlib.Path(folder) / name
    own.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(1)
    keras.utils.set_random_seed(1)
    for i, kind in enumerate(members(name)):
        net(kind).save(own / f"m{i}.keras")
        size = (SAMPLES, *sample(kind))
        x = random.integers(0, 20000, size).astype("int32") if kind == "embedding" else random.standard_normal(size).astype("float32")
        if len(outputs(kind)) > 1:
            y = random.random((SAMPLES, *outputs(kind))).astype("float32")
        elif loss(kind) == "mse":
            y = (np.sum(x.reshape(SAMPLES, -1)[:, :3], -1, keepdims=True) / (20000 if kind == "embedding" else 1)).astype("float32")
        else:
            y = random.integers(0, outputs(kind)[0], SAMPLES).astype("int32")
        np.save(own / f"x{i}.npy", x)
        np.save(own / f"y{i}.npy", y)
    (own / "y.npy").write_text(json.dumps(members(name)))  # what says that all of it is there


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
