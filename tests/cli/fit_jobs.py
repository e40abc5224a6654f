"""What the tests of tutti fit share: data, models, jobs, and Keras beside them."""

import csv
import os

os.environ.update(KERAS_BACKEND="jax", JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3")

import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import layers  # noqa: E402

from program import ProgramTest  # noqa: E402


def columns(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return {key: [float(row[key]) for row in rows] for key in rows[0]}


def classifier(units=8):
    return keras.Sequential([keras.Input((6,)), layers.Dense(units, "tanh"), layers.Dense(3, "softmax")])


def job_in_order(name, epochs, keys=""):
    """NAME.keras trained by batches of 16 as they come, with the loss that it was compiled with or that `keys` name; Keras's is history_in_order."""
    return f'[[job]]\nname = "{name}"\nmodel = "{name}.keras"\nx = "x.npy"\ny = "y.npy"\nepochs = {epochs}\nbatch_size = 16\nshuffle = false\n{keys}\n'


class FitTest(ProgramTest):
    """self.x, self.y: 50 samples of 6 numbers in 3 classes, as x.npy and y.npy."""

    def setUp(self):
        super().setUp()
        random = np.random.default_rng(3)
        self.x = random.standard_normal((50, 6)).astype("float32")
        self.y = np.argmax(self.x[:, :3] + 0.3 * random.standard_normal((50, 3)), -1).astype("int64")
        self.save_arrays(x=self.x, y=self.y)
        keras.utils.set_random_seed(1)

    def save_arrays(self, **arrays):
        for name, array in arrays.items():
            np.save(self.folder / f"{name}.npy", array)

    def save(self, net, name="a.keras"):
        net.save(self.folder / name)
        return net

    def run_jobs(self, text, *options):
        (self.folder / "jobs.toml").write_text(text)
        return self.succeed("fit", "jobs.toml", "--out", "out", *options)

    def refuse_jobs(self, text, words):
        (self.folder / "jobs.toml").write_text(text)
        self.refuse(1, words, "fit", "jobs.toml", "--out", "out")

    def history_in_order(self, net, epochs, **options):
        return net.fit(self.x, self.y, epochs=epochs, batch_size=16, shuffle=False, verbose=0, **options).history

    def history(self, name="a"):
        return columns(self.folder / f"out/{name}/history.csv")

    def expect_close(self, got, expected, relative=2e-4):
        np.testing.assert_allclose(got, expected, rtol=relative, atol=relative)

    def expect_history(self, expected, name="a", relative=5e-4):
        """Every column of Keras's history."""
        ours = self.history(name)
        for key, values in expected.items():
            self.assertIn(key, ours)
            np.testing.assert_allclose(ours[key], np.ravel(values), rtol=relative, atol=relative, err_msg=key)
