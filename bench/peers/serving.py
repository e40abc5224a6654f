"""Makes the models that are served, and their answers: serving.py FOLDER."""

import os
import pathlib
import sys

os.environ["KERAS_BACKEND"] = "jax"
import keras
import numpy as np

folder = pathlib.Path(sys.argv[1])
random = np.random.default_rng(0)
story = keras.Sequential([keras.Input((5,)), keras.layers.Dense(10, activation="relu"), keras.layers.Dense(2, activation="softmax")])
models = {"story": (story, random.random((1, 5), "f")), "mobilenet": (keras.applications.MobileNetV2(weights=None), random.random((1, 224, 224, 3), "f"))}
for name, (model, x) in models.items():
    model.save(folder / f"{name}.keras")
    np.savez(folder / f"{name}.npz", x=x, y=model.predict(x, verbose=0))
