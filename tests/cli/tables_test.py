"""predict in bulk, of tables: arrays and columns go through the same pipeline as images; rows, faults, resuming."""

import json
import os
import shutil
import signal
import subprocess
import time

import numpy as np
import program

DENSE = program.DATA / "dense.keras"


class Tables(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.x = np.random.default_rng(1).normal(size=(300_000, 4)).astype("float32")
        np.save(self.folder / "x.npy", self.x)

    def answers(self, *words):
        run = self.succeed("predict", DENSE, *words, "-o", "y.npy", "--json").json
        return np.load(self.folder / "y.npy"), run

    def test_rows_are_the_same_whatever_the_workers_and_batches(self):
        whole, run = self.answers("x.npy")
        self.assertEqual((len(whole), run["samples"], run["failed"]), (300_000, 300_000, 0))
        self.assertGreaterEqual(run["batch"], 32, "which is measured: how much larger is the machine's to say")
        found, run = self.answers("x.npy", "--batch", "128")
        np.testing.assert_array_equal(found, whole)
        self.assertEqual([stage["name"] for stage in run["stages"]], ["source", "device", "writer"])  # whose threads read the rows
        self.assertEqual(run["stages"][0]["items"], 300_000)
        for words in (["--batch", "32"], ["--batch", "7", "--workers", "8"], ["--workers", "1", "--queue", "1"], ["--batch", "100000"]):
            np.testing.assert_array_equal(self.answers("x.npy", *words)[0], whole, str(words))
        np.testing.assert_array_equal(self.answers("x.npy", "--batch", "64", "--threads", "1")[0], whole)

    def test_columns_are_streamed_through_it(self):
        np.savetxt(self.folder / "x.csv", self.x[:50_000], delimiter=",", fmt="%.9g")
        whole, _ = self.answers("x.npy")
        found, run = self.answers("x.csv")
        self.assertEqual(run["samples"], 50_000)
        np.testing.assert_array_equal(found, whole[:50_000])

    def test_a_broken_row_leaves_nothing_behind(self):
        text = "1,2,3,4\n" * 100_000 + "1,2,oops,4\n"
        (self.folder / "x.csv").write_text(text)
        self.refuse(1, "line 100001", "predict", DENSE, "x.csv", "-o", "y.csv")
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["x.csv", "x.npy"])

    def begun(self, given, output, after=1000, *words, model=DENSE):
        """A run that has written so many bytes, more than what stands before the first row, and is stopped."""
        child = subprocess.Popen([self.program, "predict", str(model), given, "--batch", "1", "-o", output, *words], cwd=self.folder)
        rows = self.folder / f"{output}.resume.rows"
        while child.poll() is None and not (rows.exists() and rows.stat().st_size >= after):
            time.sleep(0.0005)
        child.send_signal(signal.SIGSTOP)
        self.assertIsNone(child.poll(), "the run ended before it was stopped")
        return child, rows

    def long_table(self):
        """Long enough to be stopped in its midst; sanitized programs are slow."""
        rows = np.tile(self.x, (2 if self.sanitized else 10, 1))
        np.save(self.folder / "x.npy", rows)
        return len(rows)

    def test_a_killed_run_goes_on_and_ends_the_same(self):
        self.long_table()
        np.savetxt(self.folder / "x.csv", self.x, delimiter=",", fmt="%.9g")
        for given, suffix in (("x.npy", "npy"), ("x.npy", "csv"), ("x.csv", "npz")):
            self.succeed("predict", DENSE, given, "-o", f"whole.{suffix}")
            after = 1000
            for _ in range(3):
                child, rows = self.begun(given, f"y.{suffix}", after, "--resume")
                child.kill()
                child.wait(60)
                after = rows.stat().st_size + 1000
            with open(rows, "ab") as journal:
                journal.truncate(rows.stat().st_size - 5)  # as of a kill within a write
            self.assertGreater(self.succeed("predict", DENSE, given, "-o", f"y.{suffix}", "--resume", "--json").json["resumed"], 0)
            self.assertEqual((self.folder / f"y.{suffix}").read_bytes(), (self.folder / f"whole.{suffix}").read_bytes())
            self.assertFalse(rows.exists() or (self.folder / f"y.{suffix}.resume").exists())

    def test_two_runs_do_not_write_one_output(self):
        rows = self.long_table()
        child, _ = self.begun("x.npy", "y.npy")
        self.refuse(1, "another run is writing 'y.npy.resume'", "predict", DENSE, "x.npy", "-o", "y.npy")
        child.send_signal(signal.SIGCONT)
        self.assertEqual(child.wait(300), 0)
        self.assertEqual(len(np.load(self.folder / "y.npy")), rows)

    def test_another_table_is_refused(self):
        self.long_table()
        child, _ = self.begun("x.npy", "y.npy")
        child.kill()
        child.wait(60)
        np.save(self.folder / "x.npy", self.x[:1000])
        self.refuse(1, "had input's bytes", "predict", DENSE, "x.npy", "-o", "y.npy", "--resume")
        self.assertEqual(len(self.answers("x.npy")[0]), 1000)

    def test_another_member_of_an_ensemble_is_refused(self):
        self.long_table()
        for name in ("a", "b"):
            shutil.copy(DENSE, self.folder / f"{name}.keras")
        self.succeed("ensemble", "a.keras", "b.keras", "-o", "inner.toml")
        self.succeed("ensemble", "inner.toml", DENSE, "-o", "both.toml")
        child, _ = self.begun("x.npy", "y.npy", model="both.toml")
        child.kill()
        child.wait(60)
        os.utime(self.folder / "b.keras", (1, 1))
        self.refuse(1, "had member 'b.keras''s time", "predict", "both.toml", "x.npy", "-o", "y.npy", "--resume")

    def test_what_an_interrupted_run_printed_is_json(self):
        self.long_table()
        child = subprocess.Popen([self.program, "predict", DENSE, "x.npy", "--batch", "1", "--json"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
        begin = child.stdout.read(100)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 130, err)
        self.assertGreater(len(json.loads(begin + out)["predictions"]), 0)

    def test_what_is_resumed_is_a_file(self):
        self.refuse(2, "--resume goes on with a file", "predict", DENSE, "x.npy", "--resume")

    def test_the_most_likely_of_each_row(self):
        np.save(self.folder / "x.npy", self.x[:5])
        whole, _ = self.answers("x.npy")
        count = whole.shape[1]
        (self.folder / "names.txt").write_text("".join(f"class {i}\n" for i in range(count)))
        self.succeed("predict", DENSE, "x.npy", "--labels", "names.txt", "--top", "1", "-o", "y.csv")
        lines = (self.folder / "y.csv").read_text().splitlines()
        self.assertEqual(lines[0], "label_1,score_1")
        self.assertEqual([line.split(",")[0] for line in lines[1:]], [f"class {i}" for i in whole.argmax(axis=1)])


if __name__ == "__main__":
    program.main()
