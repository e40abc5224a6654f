"""Makes the ensembles of a benchmark in every engine's format: ensembles.py FOLDER NAME.

FOLDER/NAME/ gets members/*.keras, model.toml (ours), model.keras (Keras's Average of them), model.onnx (the same, written by hand with ONNX's own operators), x.npy
and y.npy, the mean of the members' answers.
"""

import os
import pathlib
import sys

import onnx_writer

os.environ |= {"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}


def dense_one(L):
    return [L.Dense(1)]


def mlp(L):
    return [L.Dense(64, activation="relu"), L.Dense(64, activation="relu"), L.Dense(1)]


def lstm(L):
    return [L.LSTM(150), L.Dense(20)]


def cnn(L):
    convolutions = [L.Conv2D(32, 3, activation="relu"), L.MaxPooling2D(), L.Conv2D(64, 3, activation="relu"), L.MaxPooling2D()]
    return [*convolutions, L.Flatten(), L.Dense(10, activation="softmax")]


def flat_mlp(*units):
    return lambda L: [L.Flatten(), *(L.Dense(n, activation="relu") for n in units), L.Dense(1)]


def flat_lstm(units):
    return lambda L: [L.LSTM(units), L.Dense(1)]


def flat_cnn(L):
    return [L.Conv1D(32, 3, activation="relu"), L.Conv1D(32, 3, activation="relu"), L.Flatten(), L.Dense(1)]


MIXED = [(4, flat_mlp(64)), (4, flat_mlp(128, 64)), (3, flat_mlp(256, 64, 32)), (3, flat_lstm(32)), (3, flat_lstm(64)), (3, flat_cnn)]
# name: batch, shape of a sample, members
ENSEMBLES = {
    "5 x Dense(1), 100x10x10": (100, (10, 10), [(5, dense_one)]),
    "32 x Dense 32-64-64-1, batch 1": (1, (32,), [(32, mlp)]),
    "32 x Dense 32-64-64-1, batch 256": (256, (32,), [(32, mlp)]),
    "10 x LSTM(150)+Dense(20), batch 32": (32, (20, 10), [(10, lstm)]),
    "8 x CNN 28x28, batch 16": (16, (28, 28, 1), [(8, cnn)]),
    "mixed: 3 MLPs, 2 LSTMs, 1 CNN; 20 members, batch 32": (32, (24, 8), MIXED),
}
NAMES = tuple(ENSEMBLES)


def batch(name):
    return ENSEMBLES[name][0]


def make(folder):
    import keras
    import numpy as np

    size, shape, kinds = ENSEMBLES[folder.name]
    random = np.random.default_rng(0)
    (folder / "members").mkdir(parents=True, exist_ok=True)
    members = []
    for count, layers in kinds:
        for _ in range(count):
            model = keras.Sequential([keras.Input(shape), *layers(keras.layers)], name=f"member_{len(members):02}")
            for weight in model.weights:
                weight.assign(weight + 0.05 * random.standard_normal(weight.shape))
            model.save(folder / "members" / f"{model.name}.keras")
            members.append(model)
    x = random.standard_normal((size, *shape)).astype("float32")
    np.save(folder / "x.npy", x)
    (folder / "model.toml").write_text('members = ["members"]\nreduce = "mean"\n')
    inputs = keras.Input(shape)
    keras.Model(inputs, keras.layers.Average()([member(inputs) for member in members])).save(folder / "model.keras")
    onnx_writer.OnnxWriter(members, (size, *shape)).save(folder / "model.onnx")
    np.save(folder / "y.npy", np.mean([np.asarray(member(x, training=False)) for member in members], axis=0))


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1]) / sys.argv[2])
