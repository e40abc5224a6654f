"""The architectures of keras.applications, with weights that keep activations near one through all their layers.

Each family's smaller members are here; TUTTI_ALL_APPLICATIONS=1 adds the larger ones, which are the same code with other numbers.
The oracle is TensorFlow, called eagerly: nothing is compiled for models that run once.
"""

import os
import zlib

import numpy as np
from harness import case

BOTH, KERAS = ("keras", "h5"), ("keras",)


def cases():
    yield application("MobileNet", 64, "conv_pw_7_relu")
    yield application("MobileNet", 48, "conv_pw_3_relu", "half_as_wide", alpha=0.5, depth_multiplier=2)
    yield application("MobileNetV2", 64, "block_9_add")
    yield application("MobileNetV2", 48, "block_6_expand", "without_top", alpha=0.35, include_top=False, pooling="avg")
    # Their keras.ops cannot be read back from .h5 by Keras itself.
    yield application("MobileNetV3Small", 64, "expanded_conv_5_add", formats=KERAS)
    yield application("MobileNetV3Small", 48, "expanded_conv_5_add", "minimalistic", minimalistic=True, formats=KERAS)
    yield application("MobileNetV3Large", 48, "expanded_conv_9_add", alpha=0.75, include_preprocessing=False, formats=KERAS)
    yield application("EfficientNetB0", 48, "block4b_add")
    yield application("EfficientNetB1", 32, "block4b_add", formats=KERAS)
    yield application("EfficientNetV2B0", 48, "block4b_add")
    yield application("EfficientNetV2B1", 32, "block4b_add", "without_preprocessing", include_preprocessing=False, formats=KERAS)
    yield application("DenseNet121", 64, "pool3_relu")
    yield application("NASNetMobile", 48, "activation_90")
    yield application("InceptionV3", 80, "mixed5", formats=KERAS)
    yield application("Xception", 72, "add_4", formats=KERAS)
    yield application("ResNet50", 64, "conv4_block3_out")
    yield application("ResNet50V2", 64, "conv4_block3_out", include_top=False, pooling="max", formats=KERAS)
    yield application("VGG16", 32, "block4_pool", formats=KERAS)
    yield application("ConvNeXtTiny", 64, "convnext_tiny_stage_2_block_3_gelu")
    if os.environ.get("TUTTI_ALL_APPLICATIONS"):
        yield from larger()


def larger():
    yield application("VGG19", 32, "block4_pool")
    for depth in (101, 152):
        yield application(f"ResNet{depth}", 32, "conv4_block3_out")
        yield application(f"ResNet{depth}V2", 32, "conv4_block3_out")
    for depth in (169, 201):
        yield application(f"DenseNet{depth}", 32, "pool3_relu")
    for size in range(2, 8):
        yield application(f"EfficientNetB{size}", 32, "block4b_add")
    for size in ("B2", "B3", "S", "M", "L"):
        yield application(f"EfficientNetV2{size}", 32, "block4b_add")
    for size in ("Small", "Base", "Large", "XLarge"):
        yield application(f"ConvNeXt{size}", 32, f"convnext_{size.lower()}_stage_2_block_3_gelu", formats=KERAS)
    yield application("InceptionResNetV2", 80, "block17_10_ac")
    yield application("NASNetLarge", 48, "activation_90", formats=KERAS)


def application(architecture, size, middle, variant="", formats=BOTH, **options):
    """Its outputs: the activation of the layer `middle`, and the result."""
    name = architecture.lower() + ("_" + variant if variant else "")

    def build():
        import keras

        options.setdefault("classes", 10)
        options.setdefault("classifier_activation", None)
        if options.get("include_top") is False:
            del options["classes"], options["classifier_activation"]
        whole = getattr(keras.applications, architecture)(weights=None, input_shape=(size, size, 3), **options)
        model = keras.Model(whole.input, [whole.get_layer(middle).output, whole.output], name=whole.name)
        random = np.random.default_rng(zlib.crc32(name.encode()))
        fill(model, random, images(architecture, random, 8, size))
        return model

    # Fifty layers and more: Keras's own backends, JAX and TensorFlow, differ by up to 3.6 times the usual tolerance on ResNet50.
    return case(name, build, formats=formats, oracle="tensorflow", batch=2, keep_weights=True, eager=True, atol=2e-5, scaled=True, inputs=images(architecture, np.random.default_rng(1), 2, size))


def images(architecture, random, count, size):
    """Pixels as the model wants them: some have their preprocessing inside."""
    shape = (count, size, size, 3)
    inside = architecture.startswith(("EfficientNet", "MobileNetV3", "ConvNeXt"))
    return (random.uniform(0, 255, shape) if inside else random.uniform(-1, 1, shape)).astype("float32")


def fill(model, random, examples):
    """Kernels by He's rule; then the moving statistics of the examples, so that normalization does normalize, each a little off."""
    import keras

    for variable in model.weights:
        shape, name = tuple(variable.shape), variable.name.split("/")[-1]
        if "kernel" in name:
            deep = "depthwise" in variable.path or shape[-1] == 1
            fan_in = np.prod(shape[:-2]) if deep else np.prod(shape[:-1])
            values = random.standard_normal(shape, dtype="float32") * np.float32(np.sqrt(2 / fan_in))
        elif "gamma" in name or "scale" in name:
            values = random.uniform(0.7, 1.3, shape)
        elif "beta" in name or "bias" in name:
            values = 0.2 * random.standard_normal(shape)
        elif "layer_scale" in variable.path:
            values = random.uniform(0.2, 0.6, shape)
        else:
            continue
        variable.assign(values)
    norms = [layer for layer in model._flatten_layers() if isinstance(layer, keras.layers.BatchNormalization)]
    for norm in norms:
        norm.momentum, norm.own_momentum = 0.0, norm.momentum
    if norms:
        model(examples, training=True)
    for norm in norms:
        norm.momentum = norm.own_momentum
        variance = np.asarray(norm.moving_variance)
        norm.moving_variance.assign((variance + 0.1 * variance.mean()) * random.uniform(0.8, 1.25, variance.shape))
        norm.moving_mean.assign(norm.moving_mean + 0.1 * random.standard_normal(variance.shape))
