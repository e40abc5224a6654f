"""A job that several devices train, for the tests of fit --devices and of scale."""

import numpy as np

from program import ProgramTest

JOBS = """
[[job]]
name = "a"
build = "{layers}"
input = [{columns}]
x = "x.npy"
y = "y.npy"
loss = "mse"
batch_size = {batch}
epochs = {epochs}
seed = 3
optimizer = {{ name = "sgd", learning_rate = 0.05, momentum = 0.9 }}
"""


class ScaleTest(ProgramTest):
    def write(self, samples=90, columns=6, batch=16, epochs=4, layers="dense 24 tanh; dropout 0.2; dense 1"):
        random = np.random.default_rng(1)
        x = random.standard_normal((samples, columns)).astype("float32")
        np.save(self.folder / "x.npy", x)
        np.save(self.folder / "y.npy", np.tanh(x[:, :1] - x[:, 1:2]))
        (self.folder / "jobs.toml").write_text(JOBS.format(layers=layers, columns=columns, batch=batch, epochs=epochs))
