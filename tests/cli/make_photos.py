"""A folder of images and what Keras predicts for them: make_photos.py OUT. OUT/photos has JPEG and PNG files, OUT/conv.keras takes 24 x 20 of three channels, gray.keras one channel, any.keras any
size; expected.npz has the sorted names and, by the options it is for, what conv.keras predicts; gray: what gray.keras does."""

import os
import pathlib
import sys

os.environ |= {"KERAS_BACKEND": "jax", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from keras import layers  # noqa: E402

OUT = pathlib.Path(sys.argv[1])
SIZE = (24, 20)


def picture(height, width, random):
    y, x = np.mgrid[0:height, 0:width]
    waves = [np.sin(x / random.uniform(3, 20) + random.uniform(0, 6)) * np.cos(y / random.uniform(3, 20)) for _ in range(3)]
    return (np.stack(waves, -1) * 110 + 128 + random.normal(0, 10, (height, width, 3))).clip(0, 255).astype("uint8")


def model(name, shape, random):
    network = keras.Sequential([keras.Input(shape, name="image"), layers.Conv2D(6, 3, activation="relu"), layers.GlobalAveragePooling2D(), layers.Dense(3, name="scores")])
    network.set_weights([random.normal(0, 0.1, w.shape).astype("float32") for w in network.get_weights()])
    network.save(OUT / f"{name}.keras")
    return network


def photos(random):
    """Name → pixels as the file has them."""
    out = {}
    for i in range(45):
        pixels = picture(int(random.integers(10, 90)), int(random.integers(10, 90)), random)
        name = (f"{i:02}.jpg", f"day {i % 3}/{i:02}.JPEG", f"day {i % 3}/deep/{i:02}.png")[i % 3]
        path = OUT / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = tf.io.encode_png(pixels) if name.endswith("png") else tf.io.encode_jpeg(pixels, quality=90)
        path.write_bytes(data.numpy())
        out[name] = (tf.io.decode_png(data) if name.endswith("png") else tf.io.decode_jpeg(data, dct_method="INTEGER_ACCURATE")).numpy()
    return dict(sorted(out.items()))


def main():
    random = np.random.default_rng(5)
    pixels = photos(random)
    conv, gray = model("conv", (*SIZE, 3), random), model("gray", (*SIZE, 1), random)
    anything = model("any", (None, None, 3), random)
    anything.set_weights(conv.get_weights())
    anything.save(OUT / "any.keras")
    sized = {method: np.stack([tf.image.resize(one, SIZE, method=method).numpy().astype("float32") for one in pixels.values()]) for method in ("bilinear", "nearest", "bicubic")}
    x = sized["bilinear"]
    luma = [((p.astype("uint32") @ [19595, 38470, 7471] + 0x8000) >> 16)[..., None].astype("uint8") for p in pixels.values()]
    inputs = {
        "": x,
        "--resize nearest": sized["nearest"],
        "--resize bicubic": sized["bicubic"],
        "--scale 1/255": x * np.float32(1 / 255),
        "--scale 0.5 --mean 1,2,3 --std 2": (x * np.float32(0.5) - np.float32([1, 2, 3])) / np.float32(2),
        "--channels bgr --mean 100,0,0": x[..., ::-1] - np.float32([100, 0, 0]),
        "--preprocess resnet50": keras.applications.resnet50.preprocess_input(x.copy()),
        "--preprocess mobilenet_v2": keras.applications.mobilenet_v2.preprocess_input(x.copy()),
        "--preprocess torch": keras.applications.imagenet_utils.preprocess_input(x.copy(), mode="torch"),
    }
    expected = {options: conv.predict(one, verbose=0) for options, one in inputs.items()}
    expected["gray"] = gray.predict(np.stack([tf.image.resize(one, SIZE).numpy() for one in luma]), verbose=0)
    np.savez(OUT / "expected.npz", names=np.array(list(pixels)), **{f"y{key}": value for key, value in expected.items()})
    np.save(OUT / "x.npy", x)


main()
