"""Makes the models of a benchmark on batches: jit_models.py FOLDER NAME. FOLDER/NAME/ gets model.keras, x.npy and y.npy (Keras's own answer)."""

import os
import pathlib
import sys

os.environ |= {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}

# The model, of models.py or below, and the samples of its batch.
BATCHES = {
    "Dense 32-64-10, batch 1": ("Dense 32-64-10", 1),
    "Dense 32-64-10, batch 64": ("Dense 32-64-10", 64),
    "Dense 784-512-512-10, batch 1024": ("Dense 784-512-512-10", 1024),
    "CNN 28x28, batch 256": ("CNN 28x28", 256),
    "LSTM(64) 24x8, batch 256": ("LSTM(64) 24x8", 256),
    "GRU(64) 24x8, batch 256": ("GRU(64) 24x8", 256),
    "LSTM(64) 50x256, batch 64": ("LSTM(64) 50x256", 64),
}
NAMES = tuple(BATCHES)


def recurrent(layer, units, shape):
    return lambda layers: [shape, getattr(layers, layer)(units), layers.Dense(1)]


OWN = {"GRU(64) 24x8": recurrent("GRU", 64, (24, 8)), "LSTM(64) 50x256": recurrent("LSTM", 64, (50, 256))}


def make(folder):
    import keras
    import models
    import numpy as np

    name, batch = BATCHES[folder.name]
    shape, *layers = (models.SMALL | OWN)[name](keras.layers)
    model = keras.Sequential([keras.Input(shape), *layers])
    x = np.random.default_rng(0).standard_normal((batch, *shape)).astype("float32")
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "model.keras")
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", np.asarray(model(x, training=False)))


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1]) / sys.argv[2])
