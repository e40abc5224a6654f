"""Images as TensorFlow writes, reads and resizes them: make_images.py OUT. For each image NAME.jpg or NAME.png, NAME.npy is what it decodes to by the accurate DCT, NAME.CHANNELS.npy by tf.io.decode_image; resized.npz has the
picture in other sizes, METHOD_HEIGHT_WIDTH; preprocess.npz what each keras.applications module makes of it."""

import importlib
import os
import pathlib
import struct
import sys
import zlib

os.environ |= {"KERAS_BACKEND": "jax", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

OUT = pathlib.Path(sys.argv[1])
MODULES = "convnext densenet efficientnet efficientnet_v2 inception_resnet_v2 inception_v3 mobilenet mobilenet_v2 mobilenet_v3 nasnet resnet resnet50 resnet_v2 vgg16 vgg19 xception"


def picture(height, width):
    y, x = np.mgrid[0:height, 0:width]
    pixels = np.stack([x * 255 / width, y * 255 / height, (x * y) % 256], -1) + np.random.default_rng(1).normal(0, 8, (height, width, 3))
    pixels[height // 3 : height // 2, width // 4 : width // 2] = (250, 10, 60)
    return pixels.clip(0, 255).astype("uint8")


def save(name, data):
    (OUT / name).write_bytes(data)
    decoded = tf.io.decode_png(data, channels=3) if name.endswith("png") else tf.io.decode_jpeg(data, channels=3, dct_method="INTEGER_ACCURATE")
    np.save(OUT / f"{name}.npy", decoded.numpy())
    save_decoded(name, data)


def save_decoded(name, data, several=(1, 3)):
    for channels in several:
        np.save(OUT / f"{name}.{channels}.npy", tf.io.decode_image(data, channels=channels).numpy())


def png(width, height, depth, kind, rows, *chunks):
    """A PNG of these bytes; TensorFlow writes no palettes, no bits and no interlacing."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    lines = b"".join(b"\0" + row for row in rows)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(chunk(*one) for one in chunks) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def exif(orientation, order):
    mark = ">" if order == "MM" else "<"
    return order.encode() + struct.pack(mark + "HIHHHIHHI", 42, 8, 1, 0x0112, 3, 1, orientation, 0, 0)


def turned(pixels, orientation):
    """What the eight orientations mean: mirrored, turned, both."""
    steps = {1: (0, 0), 2: (0, 1), 3: (2, 0), 4: (2, 1), 5: (3, 1), 6: (3, 0), 7: (1, 1), 8: (1, 0)}
    quarters, mirrored = steps[orientation]
    pixels = np.rot90(pixels, quarters)
    return pixels[:, ::-1] if mirrored else pixels


def make_images():
    pixels = picture(37, 53)
    jpeg = tf.io.encode_jpeg(pixels, quality=85, chroma_downsampling=False).numpy()
    save("full.jpg", jpeg)
    save("halved.jpg", tf.io.encode_jpeg(pixels, quality=85).numpy())
    save("gray.jpg", tf.io.encode_jpeg(pixels[..., :1]).numpy())
    save("progressive.jpg", tf.io.encode_jpeg(pixels, progressive=True).numpy())
    save("rgb.png", tf.io.encode_png(pixels).numpy())
    save("gray.png", tf.io.encode_png(pixels[..., :1]).numpy())
    save("gray_alpha.png", tf.io.encode_png(pixels[..., :2]).numpy())
    save("rgba.png", tf.io.encode_png(np.concatenate([pixels, pixels[..., :1]], -1)).numpy())
    save("rgb16.png", tf.io.encode_png(pixels.astype("uint16") * 250 + 7).numpy())
    save("palette.png", png(5, 2, 8, 3, [bytes([0, 1, 2, 1, 0]), bytes([2, 2, 1, 0, 1])], (b"PLTE", bytes(range(20, 29))), (b"tRNS", b"\x80")))
    save("bits.png", png(10, 2, 1, 0, [b"\xa5\x40", b"\x0f\xc0"]))
    for name in ("cmyk.jpg", "black.jpg"):
        cmyk = (pathlib.Path(__file__).parent / "images" / name).read_bytes()
        (OUT / name).write_bytes(cmyk)
        save_decoded(name, cmyk, [3])  # it makes no gray of four colours
    for orientation in range(1, 9):
        block = b"Exif\0\0" + exif(orientation, "MM" if orientation % 2 else "II")
        name = f"turned_{orientation}"
        (OUT / f"{name}.jpg").write_bytes(jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(block) + 2) + block + jpeg[2:])
        (OUT / f"{name}.png").write_bytes(png(53, 37, 8, 2, [row.tobytes() for row in pixels], (b"eXIf", exif(orientation, "MM"))))
        np.save(OUT / f"{name}.jpg.npy", turned(np.load(OUT / "full.jpg.npy"), orientation))
        np.save(OUT / f"{name}.png.npy", turned(pixels, orientation))


def make_resized():
    pixels = picture(37, 53)
    sizes = [(20, 20), (37, 53), (5, 90), (80, 7), (1, 1), (74, 106)]
    cases = {f"{method}_{h}_{w}": tf.image.resize(pixels, (h, w), method=method).numpy().astype("float32") for method in ("bilinear", "nearest", "bicubic") for h, w in sizes}
    np.savez(OUT / "resized.npz", **cases)


def make_preprocessed():
    pixels = picture(6, 4)
    (OUT / "small.png").write_bytes(tf.io.encode_png(pixels).numpy())
    modules = {name: importlib.import_module(f"keras.applications.{name}") for name in MODULES.split()}
    np.savez(OUT / "preprocess.npz", **{name: module.preprocess_input(pixels.astype("float32")) for name, module in modules.items()})


make_images()
make_resized()
make_preprocessed()
