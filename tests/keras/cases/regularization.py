"""Layers that do nothing at inference, and what happens when a call says training=True."""

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
    yield case("training_true", training(True), refused="training=True")
    yield case("training_true_rate_zero", training(True, rate=0.0))
    yield case("nested_training_false", nested_training(False))
    yield case("nested_training_true", nested_training(True), refused="training=True")
    yield case("lstm_training_true", lstm_training(0.3), refused="training=True")
    yield case("lstm_training_true_no_dropout", lstm_training(0.0))
    yield case("legacy", legacy, padded(3, 6, 3), oracle="tf_keras")
    yield case("legacy_training_true", legacy_training, oracle="tf_keras", refused="training=True")


def between_weights():
    every = [layers.Dropout(0.2), layers.GaussianNoise(0.2), layers.AlphaDropout(0.2), layers.GaussianDropout(0.2)]
    stack = [keras.Input((5,))]
    for regularizer in every:
        stack += [layers.Dense(4, kernel_regularizer="l2", activity_regularizer="l1"), regularizer]
    return keras.Sequential([*stack, layers.Dense(3)])


def mask_goes_through():
    every = [layers.Dropout(0.2), layers.SpatialDropout1D(0.2), layers.GaussianNoise(0.2), layers.ActivityRegularization(0.1)]
    return keras.Sequential([keras.Input((6, 3)), layers.Masking(0.0), *every, layers.LSTM(3)])


def training(value, rate=0.5):
    x = keras.Input((5,))
    return keras.Model(x, layers.Dropout(rate)(layers.Dense(4)(x), training=value))


def nested_training(value):
    inner = keras.Sequential([keras.Input((5,)), layers.Dense(4), layers.Dropout(0.5)])
    x = keras.Input((5,))
    return keras.Model(x, inner(x, training=value))


def lstm_training(rate):
    x = keras.Input((5, 3))
    return keras.Model(x, layers.LSTM(3, dropout=rate)(x, training=True))


def legacy():
    from tf_keras import Sequential
    from tf_keras import layers as old

    every = [old.Dropout(0.2), old.SpatialDropout1D(0.2), old.GaussianNoise(0.2), old.AlphaDropout(0.2), old.ActivityRegularization(0.1)]
    return Sequential([old.Input((6, 3)), old.Masking(0.0), *every, old.GaussianDropout(0.1), old.LSTM(3)])


def legacy_training():
    from tf_keras import Input, Model
    from tf_keras import layers as old

    x = Input((5,))
    return Model(x, old.Dropout(0.5)(old.Dense(4)(x), training=True))
