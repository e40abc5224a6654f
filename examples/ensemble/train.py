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

LAGS, MEMBERS, HELD_OUT = 24, 8, 12


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
        model.compile(keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(0.01, 3000)), "mse")
        model.fit(windows[chosen], targets[chosen], epochs=400, batch_size=16, verbose=0)
        model.compile()
        model.save(out / f"member_{member}.keras")
        print(f"member_{member}: rms {np.sqrt(np.mean((model.predict(windows, verbose=0) - targets) ** 2)):.3f}")


def build(member):
    months = keras.Input((LAGS,), name="months")
    linear = keras.layers.Dense(1, name="linear", kernel_regularizer="l2")(months)
    bent = keras.layers.Dense(16, activation="tanh", name="bent")(months)
    return keras.Model(months, keras.layers.Add(name="next")([linear, keras.layers.Dense(1, name="rest")(bent)]), name=f"member_{member}")


if __name__ == "__main__":
    main()
