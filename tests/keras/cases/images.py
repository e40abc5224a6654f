"""Images: Resizing with every interpolation, crop and padding, CenterCrop, the augmentation layers at inference, histogram equalization."""

import itertools

import keras
import numpy as np
from harness import case, layer
from keras import layers

PIXELS = (np.arange(3 * 9 * 12 * 3).reshape(3, 9, 12, 3) * 37 % 256).astype("uint8")


def cases():
    yield from resizing()
    yield from center_crop()
    yield from augmentation()
    yield from contrast()


def resizing():
    for interpolation, antialias in itertools.product(("bilinear", "nearest", "bicubic", "lanczos3", "lanczos5", "area"), (False, True)):
        name = interpolation + ("_antialias" if antialias else "")
        options = {"interpolation": interpolation, "antialias": antialias}

        def resize(variant, height, width, shape=(9, 12, 3), name=name, options=options, dtype="float32", inputs=None, **more):
            # Keras's JAX backend has no "area".
            oracle = "tensorflow" if options["interpolation"] == "area" else "jax"
            make = lambda: layers.Resizing(height, width, **options, **more)  # noqa: E731
            # Sums that end in a half are rounded either way.
            atol = 1 if dtype == "uint8" and options["interpolation"] != "nearest" else None
            return layer(f"resizing_{name}_{variant}", make, shape, dtype=dtype, inputs=inputs, oracle=oracle, eager=oracle != "jax", atol=atol)

        yield resize("smaller", 5, 7)
        yield resize("larger", 13, 25)
        yield resize("taller", 20, 5)
        yield resize("one_side", 9, 5)
        yield resize("channels_first", 5, 17, (3, 9, 12), data_format="channels_first")
        yield resize("uint8", 6, 16, dtype="uint8", inputs=PIXELS)
    yield layer("resizing_to_one", layers.Resizing(1, 1), (9, 12, 3))
    yield layer("resizing_from_one", layers.Resizing(4, 5, interpolation="bicubic"), (1, 1, 3))
    yield layer("resizing_unknown_extents", layers.Resizing(6, 6), (None, None, 3), length=9)
    yield case("resizing_nearest_at_every_size", every_size("nearest"))
    yield case("resizing_bilinear_at_every_size", every_size("bilinear"))
    for data_format in ("channels_last", "channels_first"):
        for size in ((6, 6), (4, 10), (10, 4), (20, 30), (7, 5)):
            x = (9, 12, 3) if data_format == "channels_last" else (3, 9, 12)
            tail = f"{size[0]}_{size[1]}_{data_format}"
            options = {"data_format": data_format}
            yield layer(f"resizing_crop_to_aspect_ratio_{tail}", layers.Resizing(*size, crop_to_aspect_ratio=True, **options), x)
            yield layer(f"resizing_pad_to_aspect_ratio_{tail}", layers.Resizing(*size, pad_to_aspect_ratio=True, fill_value=0.5, **options), x)
    padding = layers.Resizing(6, 6, pad_to_aspect_ratio=True, fill_value=7.4)
    yield layer("resizing_pad_uint8", padding, (9, 12, 3), dtype="uint8", inputs=PIXELS)
    padding = layers.Resizing(6, 6, pad_to_aspect_ratio=True, fill_value=3, interpolation="nearest")
    yield layer("resizing_pad_uint8_nearest", padding, (9, 12, 3), dtype="uint8", inputs=PIXELS)
    yield layer("resizing_crop_uint8", layers.Resizing(6, 6, crop_to_aspect_ratio=True), (9, 12, 3), dtype="uint8", inputs=PIXELS)
    yield layer("resizing_int32", layers.Resizing(6, 6, interpolation="bicubic"), (9, 12, 3), dtype="int32", inputs=PIXELS.astype("int32") * 1000)
    yield layer("resizing_float16", layers.Resizing(6, 6, dtype="float16"), (9, 12, 3))
    yield layer("resizing_bfloat16", layers.Resizing(16, 16, dtype="mixed_bfloat16"), (9, 12, 3))


def every_size(interpolation):
    """One output a size."""
    x = keras.Input((7, 12, 1))
    return keras.Model(x, [layers.Resizing(size, size + 3, interpolation=interpolation)(x) for size in range(1, 30)])


def center_crop():
    for data_format in ("channels_last", "channels_first"):
        x = (9, 12, 3) if data_format == "channels_last" else (3, 9, 12)
        for height, width in ((4, 6), (5, 7), (9, 12), (12, 6), (4, 20), (20, 20), (1, 1)):
            yield layer(f"center_crop_{height}_{width}_{data_format}", layers.CenterCrop(height, width, data_format=data_format), x)
    yield layer("center_crop_uint8", layers.CenterCrop(4, 6), (9, 12, 3), dtype="uint8", inputs=PIXELS)
    yield layer("center_crop_unknown_extents", layers.CenterCrop(4, 6), (None, None, 3), length=9)


def augmentation():
    random = {
        "aug_mix": lambda: layers.AugMix(),
        "cut_mix": lambda: layers.CutMix(),
        "max_num_bounding_boxes": lambda: layers.MaxNumBoundingBoxes(5),
        "mix_up": lambda: layers.MixUp(),
        "rand_augment": lambda: layers.RandAugment(),
        "random_brightness": lambda: layers.RandomBrightness(0.2),
        "random_color_degeneration": lambda: layers.RandomColorDegeneration(0.3),
        "random_color_jitter": lambda: layers.RandomColorJitter((0, 255), 0.1, 0.2, 0.3, 0.1),
        "random_contrast": lambda: layers.RandomContrast(0.2),
        "random_crop": lambda: layers.RandomCrop(5, 6),
        "random_elastic_transform": lambda: layers.RandomElasticTransform(0.5),
        "random_erasing": lambda: layers.RandomErasing(0.5),
        "random_flip": lambda: layers.RandomFlip(),
        "random_gaussian_blur": lambda: layers.RandomGaussianBlur(),
        "random_grayscale": lambda: layers.RandomGrayscale(0.5),
        "random_hue": lambda: layers.RandomHue(0.2),
        "random_invert": lambda: layers.RandomInvert(0.5),
        "random_perspective": lambda: layers.RandomPerspective(0.5),
        "random_posterization": lambda: layers.RandomPosterization(3),
        "random_rotation": lambda: layers.RandomRotation(0.2),
        "random_saturation": lambda: layers.RandomSaturation(0.3),
        "random_sharpness": lambda: layers.RandomSharpness(0.3),
        "random_shear": lambda: layers.RandomShear(0.2, 0.1),
        "random_translation": lambda: layers.RandomTranslation(0.2, 0.1),
        "random_zoom": lambda: layers.RandomZoom(0.2, 0.1),
        "solarization": lambda: layers.Solarization(0.1, 0.2),
    }
    for name, make in random.items():
        yield layer(name, make, (9, 12, 3), inputs=PIXELS.astype("float32"), formats=("keras",))
        yield layer(f"{name}_uint8", make, (9, 12, 3), dtype="uint8", inputs=PIXELS, formats=("keras",))
    yield layer("random_crop_of_fractions", lambda: layers.RandomCrop(5, 6, dtype="uint8"), (9, 12, 3), inputs=PIXELS / np.float32(7), formats=("keras",))
    yield layer("random_crop_float16", lambda: layers.RandomCrop(5, 6, dtype="mixed_float16"), (9, 12, 3), inputs=PIXELS / np.float32(7), formats=("keras",))
    yield case("augmentation_of_a_classifier", classifier())
    yield case("random_flip_in_training", flipped_in_training(), formats=("keras",))  # the mode of the model wins
    yield case("random_flip_of_a_dictionary", dictionary(), refused="dictionaries", formats=("keras",))


def dictionary():
    images, labels = keras.Input((9, 12, 3)), keras.Input((4,))
    return keras.Model([images, labels], layers.RandomFlip()({"images": images, "labels": labels})["images"])


def classifier():
    augment = keras.Sequential([layers.RandomFlip("horizontal"), layers.RandomRotation(0.1), layers.RandomZoom(0.1), layers.RandomContrast(0.1)])
    return keras.Sequential(
        [keras.Input((9, 12, 3)), augment, layers.Rescaling(1 / 255), layers.Conv2D(4, 3, activation="relu"), layers.GlobalAveragePooling2D(), layers.Dense(2)]
    )


def flipped_in_training():
    x = keras.Input((9, 12, 3))
    return keras.Model(x, layers.RandomFlip()(x, training=True))


def contrast():
    for data_format in ("channels_last", "channels_first"):
        x = (9, 12, 3) if data_format == "channels_last" else (3, 9, 12)
        images = PIXELS if data_format == "channels_last" else PIXELS.transpose(0, 3, 1, 2)
        yield layer(f"auto_contrast_{data_format}", layers.AutoContrast(data_format=data_format), x, inputs=images * np.float32(0.3) + 20)
    flat = np.full((3, 9, 12, 3), 0.25, "float32")
    flat[0, 3, 4] = 0.75
    yield layer("auto_contrast_of_one_colour", layers.AutoContrast(value_range=(0, 1)), (9, 12, 3), inputs=flat)
    yield layer("auto_contrast_uint8", layers.AutoContrast(), (9, 12, 3), dtype="uint8", inputs=PIXELS // 2)
    equalize = layers.ContrastLimitedAdaptiveHistogramEqualization
    smooth = (np.linspace(0, 200, 3 * 16 * 20 * 3).reshape(3, 16, 20, 3) ** 1.02 % 256).astype("float32")
    for name, options in {
        "defaults": {},
        "uneven_tiles": {"tile_grid_size": (3, 7)},
        "one_tile": {"tile_grid_size": (1, 1), "clip_limit": 2.0},
        "without_limit": {"tile_grid_size": (2, 2), "clip_limit": 0.0},
    }.items():
        yield layer(f"clahe_{name}", equalize(**options), (16, 20, 3), inputs=smooth)
    yield layer("clahe_of_the_unit_range", equalize(value_range=(0, 1), tile_grid_size=(2, 2)), (16, 20, 3), inputs=smooth / 255)
    yield layer("clahe_channels_first", equalize(tile_grid_size=(2, 3), data_format="channels_first"), (3, 16, 20), inputs=smooth.transpose(0, 3, 1, 2))
    # Whole numbers that are sums of fractions are cut to either side.
    yield layer("clahe_uint8", equalize(tile_grid_size=(2, 2)), (9, 12, 3), dtype="uint8", inputs=PIXELS, atol=1)
