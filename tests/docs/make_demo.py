"""The model of ./x demo and of the README: make_demo.py OUT. Says in which quarter of an image the bright spot is.

Writes spots.keras, spots.h5, images.npy and expected.npy (what Keras predicts for them).
"""

import os
import pathlib
import sys

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_PLATFORMS"] = "cpu"
import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import layers  # noqa: E402

SIZE = 16


def images(count, random):
    """Noise with one spot each; the quarter it is in is the class."""
    spots = random.integers(2, SIZE - 2, (count, 2))
    rows, columns = np.arange(SIZE)[:, None], np.arange(SIZE)[None, :]
    distance = (rows - spots[:, 0, None, None]) ** 2 + (columns - spots[:, 1, None, None]) ** 2
    pixels = np.exp(-distance / 4) + 0.1 * random.standard_normal((count, SIZE, SIZE))
    quarter = 2 * (spots[:, 0] >= SIZE // 2) + (spots[:, 1] >= SIZE // 2)
    return pixels[..., None].astype("float32"), quarter


def main():
    out = pathlib.Path(sys.argv[1])
    random = np.random.default_rng(7)
    keras.utils.set_random_seed(7)
    model = keras.Sequential(
        [
            keras.Input((SIZE, SIZE, 1), name="image"),
            layers.Conv2D(8, 3, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.MaxPooling2D(4),
            layers.Flatten(),
            layers.Dense(4, activation="softmax", name="quarter"),
        ],
        name="spots",
    )
    model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy")
    model.fit(*images(2000, random), epochs=4, batch_size=32, verbose=0)
    pixels, _ = images(5, random)
    model.save(out / "spots.keras")
    model.save(out / "spots.h5")
    np.save(out / "images.npy", pixels)
    np.save(out / "expected.npy", model.predict(pixels, verbose=0))


if __name__ == "__main__":
    main()
