"""Files of Keras 2, written by tf-keras: the legacy .h5 layout and its own .keras."""

from harness import case


def cases():
    yield case("sequential", sequential, oracle="tf_keras")
    yield case("functional", functional, oracle="tf_keras")


def sequential():
    from tf_keras import Sequential, layers

    return Sequential([layers.Input((5,)), layers.Dense(4, activation="hard_sigmoid"), layers.Dense(2)])


def functional():
    from tf_keras import Input, Model, layers

    left, right = Input((3,), name="left"), Input((4,), name="right")
    both = layers.Concatenate()([left, right])
    return Model([left, right], [layers.Dense(2, name="small")(both), layers.Dense(5, name="large")(both)])
