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
}
NAMES = list(SIZES)
SAMPLES = 512
CHECKED = 10  # steps of which losses are compared


def batch(kind):
    return 64 if kind == "64-256-256-10" else 32


def sample(kind):
    return {"lstm": (20, 20), "cnn": (28, 28, 1)}.get(kind) or (int(kind.split("-")[0]),)


def outputs(kind):
    return {"lstm": 20, "cnn": 10}.get(kind) or int(kind.split("-")[-1])


def loss(kind):
    return "mse" if outputs(kind) == 1 else "sparse_categorical_crossentropy"


def members(name):
    """The kind of each model of a benchmark, in order."""
    return [kind for kind, count in SIZES[name] for _ in range(count)]


def net(kind):
    import keras
    from keras import layers

    last = [layers.Dense(1)] if outputs(kind) == 1 else [layers.Dense(outputs(kind), "softmax")]
    if kind == "lstm":
        middle = [layers.LSTM(150)]
    elif kind == "cnn":
        middle = [layers.Conv2D(8, 3, activation="relu"), layers.MaxPooling2D(), layers.Conv2D(16, 3, activation="relu"), layers.MaxPooling2D(), layers.Flatten()]
    else:
        middle = [layers.Dense(int(width), "relu") for width in kind.split("-")[1:-1]]
    return keras.Sequential([keras.Input(sample(kind)), *middle, *last])


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
        x = random.standard_normal((SAMPLES, *sample(kind))).astype("float32")
        y = np.sum(x.reshape(SAMPLES, -1)[:, :3], -1, keepdims=True) if outputs(kind) == 1 else random.integers(0, outputs(kind), SAMPLES)
        np.save(own / f"x{i}.npy", x)
        np.save(own / f"y{i}.npy", y.astype("float32" if outputs(kind) == 1 else "int32"))
    (own / "y.npy").write_text(json.dumps(members(name)))  # what says that all of it is there


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
