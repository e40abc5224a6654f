"""The model of ./x demo and of the README: make_demo.py OUT. Says in which quarter of an image the bright spot is.

Writes spots.keras, spots.h5, images.npy and expected.npy (what Keras predicts for them); for docs/bulk.md the same images as photos/*.png, and a broken one; and for docs/forecast.md passengers.csv with
year_1.keras ... year_4.keras, which predict the next month.
"""

import os
import pathlib
import shutil
import struct
import sys
import zlib

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_PLATFORMS"] = "cpu"
import absl.logging  # noqa: E402
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


def weights():
    """By hand, so that every machine has the same: two spot filters, statistics that bring them to one scale, and votes for the quarter a cell is in."""
    blur = np.outer([1, 2, 1], [1, 2, 1]) / 16
    edges = np.array([[-1, -1, -1], [-1, 8, -1], [-1, -1, -1]]) / 8
    filters = np.stack([blur, edges], axis=-1)[:, :, None, :]  # [height, width, 1, filter]
    gamma, beta, mean, variance = [1.5, 1.0], [0.1, -0.1], [0.05, 0.01], [0.04, 0.09]
    votes = np.full((4, 4, 2, 4), -0.1)  # [row, column, filter, quarter]
    for row in range(4):
        for column in range(4):
            votes[row, column, :, 2 * (row // 2) + column // 2] = 0.3
    return [filters, gamma, beta, mean, variance, votes.reshape(32, 4), np.zeros(4)]


def seasonal(name, share):
    """Last year's month, plus a share of how much more the last month was than the same month of the year before."""
    model = keras.Sequential([keras.Input((13, 1), name="months"), layers.Flatten(), layers.Dense(1, use_bias=False, name="next")], name=name)
    kernel = np.zeros((13, 1), dtype="float32")
    kernel[[1, 12, 0], 0] = 1, share, -share
    model.set_weights([kernel])
    return model


def png(pixels):
    """A gray image, without any library."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    height, width = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def make_photos(folder, pixels):
    (folder / "night").mkdir(parents=True, exist_ok=True)
    for i, one in enumerate(pixels):
        data = png((one[..., 0] * 255).clip(0, 255).astype("uint8"))
        (folder / ("night" if i % 2 else "") / f"{i}.png").write_bytes(data)
    (folder / "torn.png").write_bytes(data[: len(data) // 2])


def main():
    absl.logging.set_verbosity(absl.logging.ERROR)  # Keras would rather not write .h5
    out = pathlib.Path(sys.argv[1])
    model = keras.Sequential(
        [
            keras.Input((SIZE, SIZE, 1), name="image"),
            layers.Conv2D(2, 3, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.MaxPooling2D(4),
            layers.Flatten(),
            layers.Dense(4, activation="softmax", name="quarter"),
        ],
        name="spots",
    )
    model.set_weights([np.asarray(values, dtype="float32") for values in weights()])
    model.compile("adam", "sparse_categorical_crossentropy")
    pixels, _ = images(5, np.random.default_rng(7))
    model.save(out / "spots.keras")
    model.save(out / "spots.h5")
    np.save(out / "images.npy", pixels)
    make_photos(out / "photos", pixels)
    np.save(out / "expected.npy", model.predict(pixels, verbose=0))
    for i, share in enumerate((0.6, 0.8, 1.0, 1.1), 1):
        seasonal(f"year_{i}", share).save(out / f"year_{i}.keras")
    shutil.copy(pathlib.Path(__file__).resolve().parents[2] / "examples" / "ensemble" / "passengers.csv", out)


if __name__ == "__main__":
    main()
