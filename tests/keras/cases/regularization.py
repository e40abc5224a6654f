"""Layers that do nothing at inference. A call that says training=True is overridden by Keras 3's predict, and not by Keras 2's."""

import keras
from harness import case, layer, padded
from keras import layers


def cases():
    yield layer("dropout", layers.Dropout(0.5), (5,))
    yield layer("dropout_options", layers.Dropout(0.5, noise_shape=(None, 1, 4), seed=3), (3, 4))
    yield layer("spatial_dropout1d", layers.SpatialDropout1D(0.3), (5, 3))
    yield layer("spatial_dropout2d", layers.SpatialDropout2D(0.3, data_format="channels_first"), (3, 4, 2))
    yield layer("spatial_dropout3d", layers.SpatialDropout3D(0.3), (2, 3, 4, 2))
    yield layer("gaussian_dropout", layers.GaussianDropout(0.3), (5,))
    yield layer("gaussian_noise", layers.GaussianNoise(0.3), (5,))
    yield layer("alpha_dropout", layers.AlphaDropout(0.3, noise_shape=(3, 1)), (5,))
    yield layer("activity_regularization", layers.ActivityRegularization(l1=0.1, l2=0.2), (5,))
    yield layer("dropout_float16", layers.Dropout(0.5, dtype="mixed_float16"), (5,))
    yield case("between_weights", between_weights())
    yield case("mask_goes_through", mask_goes_through(), padded(3, 6, 3))
    yield case("training_false", training(False))
    yield case("training_true", training(True))
    yield case("nested_training_false", nested_training(False))
    yield case("nested_training_true", nested_training(True))
    yield case("legacy", legacy, padded(3, 6, 3), oracle="tf_keras")
    for kind in ("false", "true", "rate_zero", "nested_true", "nested_false", "lstm", "lstm_no_dropout"):
        refused = {"refused": "training=True"} if kind in ("true", "nested_true", "lstm") else {}
        yield case(f"legacy_training_{kind}", legacy_training(kind), oracle="tf_keras", **refused)


def between_weights():
    every = [layers.Dropout(0.2), layers.GaussianNoise(0.2), layers.AlphaDropout(0.2), layers.GaussianDropout(0.2)]
    stack = [keras.Input((5,))]
    for regularizer in every:
        stack += [layers.Dense(4, kernel_regularizer="l2", activity_regularizer="l1"), regularizer]
    return keras.Sequential([*stack, layers.Dense(3)])


def mask_goes_through():
    every = [layers.Dropout(0.2), layers.SpatialDropout1D(0.2), layers.GaussianNoise(0.2), layers.ActivityRegularization(0.1)]
    return keras.Sequential([keras.Input((6, 3)), layers.Masking(0.0), *every, layers.LSTM(3)])


def training(value):
    x = keras.Input((5,))
    return keras.Model(x, layers.Dropout(0.5)(layers.Dense(4)(x), training=value))


def nested_training(value):
    inner = keras.Sequential([keras.Input((5,)), layers.Dense(4), layers.Dropout(0.5)])
    x = keras.Input((5,))
    return keras.Model(x, inner(x, training=value))


def legacy():
    from tf_keras import Sequential
    from tf_keras import layers as old

    every = [old.Dropout(0.2), old.SpatialDropout1D(0.2), old.GaussianNoise(0.2), old.AlphaDropout(0.2), old.ActivityRegularization(0.1)]
    return Sequential([old.Input((6, 3)), old.Masking(0.0), *every, old.GaussianDropout(0.1), old.LSTM(3)])


def legacy_training(kind):
    def model():
        from tf_keras import Input, Model, Sequential
        from tf_keras import layers as old

        if kind.startswith("lstm"):
            x = Input((5, 3))
            return Model(x, old.LSTM(3, dropout=0.0 if kind == "lstm_no_dropout" else 0.3)(x, training=True))
        x, dropout = Input((5,)), old.Dropout(0.0 if kind == "rate_zero" else 0.5)
        if kind.startswith("nested"):
            return Model(x, Sequential([old.Input((5,)), old.Dense(4), dropout])(x, training=kind == "nested_true"))
        return Model(x, dropout(old.Dense(4)(x), training=kind != "false"))

    return model
