"""Makes the members of this example: train.py FOLDER. Eight small networks, each trained on its own sample of the windows before 1960; needs Keras.

A member reads 24 months, scaled by the mean and deviation of the history, and predicts the next one: a linear part, and a hidden layer for what is not linear.
"""

import csv
import os
import pathlib
import sys

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras  # noqa: E402
import numpy as np  # noqa: E402

LAGS, MEMBERS, HELD_OUT, EPOCHS, BATCH = 24, 8, 12, 200, 16


def main():
    here, out = pathlib.Path(__file__).parent, pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    with open(here / "passengers.csv") as file:
        values = np.array([float(row["passengers"]) for row in csv.DictReader(file)])[:-HELD_OUT]
    scaled = (values - values.mean()) / values.std()
    windows = np.stack([scaled[i : i + LAGS] for i in range(len(scaled) - LAGS)]).astype("float32")
    targets = scaled[LAGS:].astype("float32")[:, None]
    for member in range(MEMBERS):
        keras.utils.set_random_seed(member)
        chosen = np.random.default_rng(member).integers(0, len(windows), len(windows))
        model = build(member)
        steps = EPOCHS * -(-len(windows) // BATCH)
        model.compile(keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(0.01, steps)), "mse")
        model.fit(windows[chosen], targets[chosen], epochs=EPOCHS, batch_size=BATCH, verbose=0)
        model.compile()
        model.save(out / f"member_{member}.keras")
        print(f"member_{member}: rms {np.sqrt(np.mean((model.predict(windows, verbose=0) - targets) ** 2)):.3f}")


def build(member):
    L, small = keras.layers, keras.regularizers.L2
    months = keras.Input((LAGS,), name="months")
    linear = L.Dense(1, kernel_initializer="zeros", kernel_regularizer=small(1e-3), name="linear")(months)
    bent = L.Dense(8, activation="tanh", kernel_regularizer=small(1e-2), name="bent")(months)
    rest = L.Dense(1, kernel_initializer="zeros", kernel_regularizer=small(1e-2), name="rest")(bent)
    return keras.Model(months, L.Add(name="next")([linear, rest]), name=f"member_{member}")


if __name__ == "__main__":
    main()
