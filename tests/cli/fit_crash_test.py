"""tutti fit killed at random moments goes on to the same bits. TUTTI_KILLS says how many moments; 8 if it is not set."""

import os
import random
import subprocess
import time

import numpy as np

from fit_jobs import FitTest, keras
from program import main

JOBS = """
[defaults]
x = "x.npy"
y = "y.npy"
loss = "sparse_categorical_crossentropy"
batch_size = 8
epochs = 400
validation_split = 0.2
optimizer = { name = "adam", learning_rate = 0.003 }
[[sweep]]
name = "s"
build = "dense 12 relu; dropout 0.3; batch_normalization; dense 3 softmax"
input = [6]
vary = { seed = [1, 2, 3] }
[[job]]
name = "other"
build = "dense 5 tanh; dense 3 softmax"
input = [6]
early_stopping = { monitor = "val_loss", patience = 300, restore_best_weights = true }
reduce_on_plateau = { monitor = "val_loss", patience = 20 }
"""


class FitCrash(FitTest):
    def weights(self, out):
        found = {}
        for job in ("s_0", "s_1", "s_2", "other"):
            net = keras.models.load_model(self.folder / out / job / "model.keras")
            found[job] = [*net.get_weights(), *map(np.array, net.optimizer.variables)]
            found[job].append(np.loadtxt(self.folder / out / job / "history.csv", delimiter=",", skiprows=1))
        return found

    def test_killed_at_random_moments_the_end_is_the_same(self):
        (self.folder / "jobs.toml").write_text(JOBS)
        plan = ("--fit-plan", "stacked", "--threads", "1")
        begin = time.monotonic()
        self.succeed("fit", "jobs.toml", "--out", "whole", *plan)
        whole, kills, wanted = time.monotonic() - begin, 0, int(os.environ.get("TUTTI_KILLS", "8"))
        draw, rounds = random.Random(7), 0
        while kills < wanted:
            rounds += 1
            out = f"parts{rounds}"
            words = ["fit", "jobs.toml", "--out", out, *plan, "--checkpoint-every", "37", "--resume"]
            for _ in range(6):  # then it is let go on
                child = subprocess.Popen([self.program, *words], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                try:
                    child.wait(timeout=draw.uniform(0.02, max(0.3, whole * 0.7)))
                    break
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()
                    kills += 1
            self.succeed(*words)
            self.expect_same("whole", out)
            self.assertLess(rounds, 20 + wanted)
        self.assertEqual(sorted(p.name for p in (self.folder / out / "s_0").iterdir() if "checkpoint" in p.name), [])

    def expect_same(self, a, b):
        ours, theirs = self.weights(a), self.weights(b)
        for job in ours:
            self.assertEqual(len(ours[job]), len(theirs[job]))
            for one, other in zip(ours[job], theirs[job]):
                np.testing.assert_array_equal(one, other, err_msg=job)

    def interrupted(self, out):
        """A run that was stopped with two checkpoints of each of two jobs on disk."""
        words = ["fit", "jobs.toml", "--out", out, "--fit-plan", "stacked", "--threads", "1", "--checkpoint-every", "11"]
        files = [self.folder / out / job / name for job in ("s_0", "s_1") for name in ("checkpoint", "checkpoint.before")]
        while not all(file.exists() for file in files):  # the moment may have been between them
            child = subprocess.Popen([self.program, *words], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while not all(file.exists() for file in files):
                self.assertIsNone(child.poll())
                time.sleep(0.005)
            child.kill()
            child.wait()
        return [*words, "--resume"]

    def test_a_torn_checkpoint_loses_no_earlier_one(self):
        (self.folder / "jobs.toml").write_text(JOBS)
        self.succeed("fit", "jobs.toml", "--out", "whole", "--fit-plan", "stacked", "--threads", "1")
        words = self.interrupted("torn")
        newest = self.folder / "torn/s_0/checkpoint"
        content = newest.read_bytes()
        newest.write_bytes(content[: len(content) // 2])
        changed = bytearray((self.folder / "torn/s_1/checkpoint").read_bytes())  # of the right length, but not what was written
        changed[-5] ^= 1
        (self.folder / "torn/s_1/checkpoint").write_bytes(bytes(changed))
        self.succeed(*words)
        self.expect_same("whole", "torn")

    def test_a_full_disk_stops_jobs_and_keeps_their_checkpoints(self):
        """A limit on the size of files stands for the disk: the checkpoint cannot be written, and the one before is there."""
        (self.folder / "jobs.toml").write_text(JOBS)
        words = self.interrupted("full")
        before = (self.folder / "full/s_0/checkpoint").read_bytes()
        limited = ["bash", "-c", 'ulimit -f 1; trap "" XFSZ; exec "$@"', "bash", self.program, *words]
        run = subprocess.run(limited, cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("File too large", run.stderr)
        self.assertEqual((self.folder / "full/s_0/checkpoint").read_bytes(), before)
        self.succeed("fit", "jobs.toml", "--out", "whole", "--fit-plan", "stacked", "--threads", "1")
        self.succeed(*words)
        self.expect_same("whole", "full")


if __name__ == "__main__":
    main()
