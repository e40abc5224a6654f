"""Makes the models of a benchmark in every engine's format: models.py FOLDER NAME.

FOLDER/NAME/ gets model.keras, x.npy, y.npy (Keras's own answer), model.onnx, model.tflite; all for one sample at a time.
"""

import os
import pathlib
import sys

import onnx_writer

os.environ |= {"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}

APPLICATIONS = (
    "MobileNetV2", "ResNet50", "ConvNeXtTiny", "DenseNet121", "EfficientNetB0", "EfficientNetV2B0", "InceptionV3", "MobileNetV3Small", "NASNetMobile",
    "ResNet50V2", "MobileNet", "Xception",
)  # fmt: skip


def dense_small(layers):
    return [(32,), layers.Dense(64, activation="relu"), layers.Dense(10, activation="softmax")]


def dense_large(layers):
    return [(784,), layers.Dense(512, activation="relu"), layers.Dense(512, activation="relu"), layers.Dense(10, activation="softmax")]


def cnn(layers):
    convolutions = [layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(), layers.Conv2D(64, 3, activation="relu"), layers.MaxPooling2D()]
    return [(28, 28, 1), *convolutions, layers.Flatten(), layers.Dense(10, activation="softmax")]


def lstm(layers):
    return [(24, 8), layers.LSTM(64), layers.Dense(1)]


SMALL = {"Dense 32-64-10": dense_small, "Dense 784-512-512-10": dense_large, "CNN 28x28": cnn, "LSTM(64) 24x8": lstm}
NAMES = (*SMALL, *APPLICATIONS)


def make(folder):
    import keras
    import numpy as np

    random = np.random.default_rng(0)
    name = folder.name
    if name in SMALL:
        shape, *layers = SMALL[name](keras.layers)
        model = keras.Sequential([keras.Input(shape), *layers])
        x = random.standard_normal((1, *shape)).astype("float32")
    else:
        architecture = getattr(keras.applications, name)
        model = architecture(weights=None)
        if None in model.input_shape[1:]:
            model = architecture(weights=None, input_shape=(224, 224, 3))
        x = random.uniform(-1, 1, (1, *model.input_shape[1:])).astype("float32")
        calibrate(model, random)
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "model.keras")
    np.save(folder / "x.npy", x)
    to_onnx(model, folder / "model.onnx")
    to_litert(model, folder / "model.tflite")
    np.save(folder / "y.npy", np.asarray(model(x, training=False)))


def calibrate(model, random):
    """Moving statistics of random images: without them the values of deep networks vanish or overflow, and there is nothing to compare."""
    import keras

    norms = [layer for layer in model._flatten_layers() if isinstance(layer, keras.layers.BatchNormalization)]
    for norm in norms:
        norm.momentum = 0.0
    if norms:
        model(random.uniform(-1, 1, (2, *model.input_shape[1:])).astype("float32"), training=True)
    for norm in norms:
        norm.momentum = 0.99


def traced(model):
    import tensorflow as tf

    signature = [tf.TensorSpec((1, *model.input_shape[1:]), tf.float32, name="x")]
    return tf.function(lambda x: model(x, training=False), input_signature=signature), signature


def to_litert(model, file):
    import tensorflow as tf

    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    frozen = convert_variables_to_constants_v2(traced(model)[0].get_concrete_function())
    file.write_bytes(tf.lite.TFLiteConverter.from_concrete_functions([frozen]).convert())


def to_onnx(model, file):
    import keras
    import tf2onnx

    if isinstance(model.layers[0], keras.layers.LSTM):
        return onnx_writer.OnnxWriter([model], (1, *model.input_shape[1:])).save(file)
    function, signature = traced(model)
    tf2onnx.convert.from_function(function, input_signature=signature, opset=18, output_path=str(file))


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1]) / sys.argv[2])
