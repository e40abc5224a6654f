"""Made the files of images/ once, with Pillow 13.0, which no other test needs: pillow.py OUT. NAME_METHOD_HEIGHT_WIDTH.png is NAME resized; cmyk.png and the like are what Pillow reads."""

import pathlib
import sys

import numpy as np
from PIL import Image

METHODS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC, "nearest": Image.Resampling.NEAREST}


def picture(height, width):
    """Smooth colours with edges and a little noise."""
    y, x = np.mgrid[0:height, 0:width]
    pixels = np.stack([x * 255 / width, y * 255 / height, (x * y) % 256], -1) + np.random.default_rng(1).normal(0, 8, (height, width, 3))
    pixels[height // 3 : height // 2, width // 4 : width // 2] = (250, 10, 60)
    return pixels.clip(0, 255).astype("uint8")


def main():
    out = pathlib.Path(sys.argv[1])
    sizes = {"picture": [(7, 5), (40, 50), (23, 9), (11, 31)], "tall": [(5, 12), (7, 28)]}  # of the tall one Pillow resizes rows first
    for name, image in {"tall": Image.fromarray(picture(40, 16)), "picture": Image.fromarray(picture(23, 31))}.items():
        image.save(out / f"{name}.png")
        for method, filter in METHODS.items():
            for height, width in sizes[name]:
                image.resize((width, height), filter).save(out / f"{name}_{method}_{height}_{width}.png")
    image.convert("L").save(out / "picture_gray.png")
    image.convert("CMYK").save(out / "cmyk.jpg", quality=90)
    Image.open(out / "cmyk.jpg").convert("RGB").save(out / "cmyk.png")
    black = Image.merge("CMYK", (*image.convert("CMYK").split()[:3], image.convert("L")))  # whose black is not the same everywhere
    black.save(out / "black.jpg", quality=80)
    Image.open(out / "black.jpg").convert("RGB").save(out / "black.png")
    image.save(out / "progressive.jpg", quality=80, progressive=True)
    Image.open(out / "progressive.jpg").save(out / "progressive.png")


if __name__ == "__main__":
    main()
