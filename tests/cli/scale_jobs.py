"""A job that several devices train, for the tests of fit --devices and of scale."""

import io
import os
import shutil
import subprocess
import zipfile

import h5py
import numpy as np

from program import ProgramTest

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl_vader_single_copy_mechanism", "none", "-np"]

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


def weights(path):
    out = {}
    with zipfile.ZipFile(path) as file, h5py.File(io.BytesIO(file.read("model.weights.h5"))) as h5:
        h5.visititems(lambda name, item: out.update({name: np.array(item)}) if isinstance(item, h5py.Dataset) else None)
    return out


class DevicesTest(ScaleTest):
    def expect_same(self, a, b, relative):
        ours, theirs = (weights(self.folder / out / "a" / "model.keras") for out in (a, b))
        self.assertEqual(set(ours), set(theirs))
        for name, value in ours.items():
            if value.dtype.kind != "f":
                continue
            self.assertLessEqual(np.max(np.abs(value - theirs[name]), initial=0), relative * max(np.max(np.abs(value), initial=0), 1e-6), name)

    def train(self, *arguments, **options):
        """Small models gain nothing from a second device, and are told so."""
        run = self.run_program("fit", *arguments, **options)
        self.assertEqual(run.code, 0, run.err)
        self.assertTrue(all("devices are not faster than one" in line for line in run.err.splitlines()), run.err)
        return run

    def ranks(self):
        if self.sanitized or not shutil.which("mpirun") or not os.path.exists(os.path.join(os.path.dirname(self.program), "libtutti_mpi.so")):
            self.skipTest("there is no mpirun, or tutti was built without MPI")

    def mpirun(self, ranks, *arguments, environment=None):
        command = [*MPIRUN, str(ranks), self.program, *arguments]
        return subprocess.Popen(
            command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"TUTTI_CACHE": "off"} | (environment or {})
        )
