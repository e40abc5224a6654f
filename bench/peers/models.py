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


def bidirectional(layers):
    return [(50, 16), layers.Bidirectional(layers.LSTM(64, return_sequences=True)), layers.Bidirectional(layers.LSTM(64)), layers.Dense(4, activation="softmax")]


def gru(layers):
    return [(100, 32), layers.GRU(128, return_sequences=True), layers.GRU(128), layers.Dense(10, activation="softmax")]


def signal(layers):
    """Classification of a sensor's signal."""
    blocks = [
        layer
        for filters in (64, 128, 256)
        for layer in (layers.Conv1D(filters, 5, padding="same"), layers.BatchNormalization(), layers.ReLU(), layers.MaxPooling1D(2))
    ]
    return [(256, 9), *blocks, layers.GlobalAveragePooling1D(), layers.Dense(6, activation="softmax")]


def unet(keras, x):
    layers = keras.layers

    def block(x, filters):
        for _ in range(2):
            x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)))
        return x

    skips = []
    for filters in (16, 32, 64):
        x = block(x, filters)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = block(x, 128)
    for filters in (64, 32, 16):
        x = layers.Concatenate()([layers.Conv2DTranspose(filters, 2, strides=2)(x), skips.pop()])
        x = block(x, filters)
    return layers.Conv2D(1, 1, activation="sigmoid")(x)


def transformer(keras, x):
    """An encoder in the manner of BERT."""
    layers = keras.layers
    for _ in range(4):
        attended = layers.MultiHeadAttention(4, 64)(x, x)
        x = layers.LayerNormalization(epsilon=1e-6)(layers.Add()([x, attended]))
        hidden = layers.Dense(256)(layers.Dense(1024, activation="gelu")(x))
        x = layers.LayerNormalization(epsilon=1e-6)(layers.Add()([x, hidden]))
    return layers.Dense(2, activation="softmax")(layers.GlobalAveragePooling1D()(x))


def vision_transformer(keras, x):
    layers = keras.layers
    x = layers.Reshape((-1, 192))(layers.Conv2D(192, 8, strides=8)(x))
    for _ in range(6):
        normal = layers.LayerNormalization(epsilon=1e-6)(x)
        x = layers.Add()([x, layers.MultiHeadAttention(3, 64)(normal, normal)])
        x = layers.Add()([x, layers.Dense(192)(layers.Dense(768, activation="gelu")(layers.LayerNormalization(epsilon=1e-6)(x)))])
    return layers.Dense(10)(layers.GlobalAveragePooling1D()(layers.LayerNormalization(epsilon=1e-6)(x)))


SEQUENTIAL = {
    "Dense 32-64-10": dense_small, "Dense 784-512-512-10": dense_large, "CNN 28x28": cnn, "LSTM(64) 24x8": lstm,
    "BiLSTM 50x16": bidirectional, "GRU 100x32": gru, "Conv1D 256x9": signal,
}  # fmt: skip
FUNCTIONAL = {"U-Net 128x128": (unet, (128, 128, 3)), "Transformer 128x256": (transformer, (128, 256)), "ViT 64x64": (vision_transformer, (64, 64, 3))}
NAMES = (*SEQUENTIAL, *FUNCTIONAL, *APPLICATIONS)


def make(folder):
    import keras
    import numpy as np

    random = np.random.default_rng(0)
    model = build(keras, folder.name)
    calibrate(model, random)
    x = random.uniform(-1, 1, (1, *model.input_shape[1:])).astype("float32")
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "model.keras")
    np.save(folder / "x.npy", x)
    to_onnx(model, folder / "model.onnx")
    to_litert(model, folder / "model.tflite")
    np.save(folder / "y.npy", np.asarray(model(x, training=False)))


def build(keras, name):
    if name in SEQUENTIAL:
        shape, *layers = SEQUENTIAL[name](keras.layers)
        return keras.Sequential([keras.Input(shape), *layers])
    if name in FUNCTIONAL:
        function, shape = FUNCTIONAL[name]
        x = keras.Input(shape)
        return keras.Model(x, function(keras, x))
    architecture = getattr(keras.applications, name)
    model = architecture(weights=None)
    return architecture(weights=None, input_shape=(224, 224, 3)) if None in model.input_shape[1:] else model


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

    if isinstance(model.layers[0], (keras.layers.RNN, keras.layers.Bidirectional)):
        return onnx_writer.OnnxWriter([model], (1, *model.input_shape[1:])).save(file)
    function, signature = traced(model)
    graph, _ = tf2onnx.convert.from_function(function, input_signature=signature, opset=18)
    onnx_writer.replace_erfc(graph.graph)
    file.write_bytes(graph.SerializeToString())


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1]) / sys.argv[2])
