"""tutti fit with many jobs: stacked in one program or side by side on threads, they are the same jobs."""

import io
import json
import signal
import subprocess
import sys
import time
import zipfile

import h5py
import numpy as np

from program import ProgramTest, main

STORES = 6
JOBS = """
[defaults]
loss = "mse"
batch_size = 16
epochs = {epochs}
optimizer = "adam"
{keys}
[[sweep]]
name = "s"
{model}
vary = {{ x = "store_*_x.npy", y = "store_*_y.npy", "optimizer.learning_rate" = [0.01, 0.003], seed = [1, 2] }}
"""
DENSE = 'build = "dense 8 relu; dropout 0.2; dense 1"\ninput = [5]'


def weights(path):
    """Every array of a saved model by name, the optimizer's included."""
    out = {}
    with zipfile.ZipFile(path) as file, h5py.File(io.BytesIO(file.read("model.weights.h5"))) as h5:
        h5.visititems(lambda name, item: out.update({name: np.array(item)}) if isinstance(item, h5py.Dataset) else None)
    return out


class FitMany(ProgramTest):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(3)
        for store in range(STORES):
            count = 60 + 5 * (store // 2)  # two of each size, so their last batches differ
            x = random.standard_normal((count, 5)).astype("float32")
            np.save(self.folder / f"store_{store}_x.npy", x)
            np.save(self.folder / f"store_{store}_y.npy", np.tanh(x[:, :1] - x[:, 1:2]))

    def write_jobs(self, model=DENSE, keys="", epochs=6):
        (self.folder / "jobs.toml").write_text(JOBS.format(model=model, keys=keys, epochs=epochs))

    def fit(self, out, *options):
        return self.succeed("fit", "jobs.toml", "--out", out, "--log-steps", *options)

    def expect_equal(self, a, b, relative=0.0):
        folders = sorted(p.name for p in (self.folder / a).iterdir() if p.is_dir())
        self.assertEqual(len(folders), 4 * STORES)
        for job in folders:
            ours, theirs = (weights(self.folder / out / job / "model.keras") for out in (a, b))
            self.assertEqual(set(ours), set(theirs))
            for name in ours:
                np.testing.assert_allclose(ours[name], theirs[name], rtol=relative, atol=relative, err_msg=f"{job} {name}")
            steps = [np.loadtxt(self.folder / out / job / "steps.csv", delimiter=",", skiprows=1) for out in (a, b)]
            np.testing.assert_allclose(*steps, rtol=relative, atol=relative)

    def test_stacked_or_not_and_on_however_many_threads_jobs_are_the_same(self):
        for model, keys in ((DENSE, "validation_split = 0.2"), ('build = "dense 4 tanh; batch_normalization; dense 1"\ninput = [5]', "steps_per_epoch = 3")):
            self.write_jobs(model, keys)
            plan = self.fit("separate", "--fit-plan", "separate", "--threads", "1", "--json").json["plan"]
            self.assertEqual([(p["how"], p["together"], len(p["jobs"])) for p in plan], [("separate", 1, 4 * STORES)])
            for threads in (1, 2, 5):
                plan = self.fit(f"stacked{threads}", "--fit-plan", "stacked", "--threads", threads, "--json").json["plan"]
                self.assertEqual([(p["how"], p["together"]) for p in plan], [("stacked", -(-4 * STORES // threads))])
                self.expect_equal("separate", f"stacked{threads}", 1e-5)
                self.expect_equal("stacked1", f"stacked{threads}")
            self.fit("threads", "--fit-plan", "separate", "--threads", "3")
            self.expect_equal("separate", "threads")
            self.fit("launches", "--fit-plan", "stacked", "--steps-per-launch", "2")
            self.expect_equal("stacked1", "launches")

    def test_what_was_measured_is_told(self):
        self.write_jobs()
        (plan,) = self.fit("out", "--json").json["plan"]
        self.assertIn(plan["how"], ("stacked", "separate"))
        self.assertEqual(plan["us_per_step"][0]["together"], 1)
        self.assertGreater(len(plan["us_per_step"]), 1)
        best = min(plan["us_per_step"], key=lambda time: time["us"])
        self.assertEqual(plan["together"], best["together"])

    def test_explain_shows_the_step_and_the_plan(self):
        self.write_jobs()
        found = self.succeed("explain", "jobs.toml", "--json", "--threads", "1").json
        for key in ("kernels", "flops", "bytes", "peak_memory_bytes"):
            self.assertEqual(found[key], found["programs"][0][key], key)
            self.assertGreater(found[key], 0, key)
        self.assertEqual([len(plan["jobs"]) for plan in found["plan"]], [4 * STORES])
        self.assertTrue(found["passes"])
        for how, words in (("stacked", "24 stacked in a program; asked for"), ("separate", "separate; asked for")):
            text = self.succeed("explain", "jobs.toml", "--fit-plan", how, "--threads", "1").out
            self.assertRegex(text, rf"^jobs      24 of one structure \('s_0' \.\.\.\): {words}\n")
            self.assertIn("batched matmul" if how == "stacked" else "matmul", text)
        self.refuse(1, "No such file", "explain", "nothing.toml")

    def test_members_stop_alone(self):
        """Some early, one with a loss that is no number, and the others are what they are without them."""
        self.write_jobs(keys="early_stopping = { monitor = 'loss', patience = 1, min_delta = 0.02, restore_best_weights = true }", epochs=40)
        ends = {}
        for plan in ("separate", "stacked"):
            ends[plan] = [(job["name"], job["steps"], job["stopped_because"]) for job in self.fit(plan, "--fit-plan", plan, "--threads", "1", "--json").json["jobs"]]
        self.assertEqual(ends["separate"], ends["stacked"])
        self.assertGreater(len({steps for _, steps, _ in ends["stacked"]}), 3)
        self.expect_equal("separate", "stacked", 1e-5)
        broken = np.load(self.folder / "store_1_x.npy")
        broken[40] = np.nan
        np.save(self.folder / "store_1_x.npy", broken)
        words = [self.program, "fit", "jobs.toml", "--out", "nan", "--fit-plan", "stacked", "--threads", "1", "--json"]
        run = subprocess.run(words, cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("4 of 24 jobs failed", run.stderr)
        for before, after in zip(ends["stacked"], json.loads(run.stdout)["jobs"]):
            if after["stopped_because"] == "error":
                self.assertRegex(after["error"], r"the loss of step \d+ \(epoch 0\) is -?nan")
            else:
                self.assertEqual(before, (after["name"], after["steps"], after["stopped_because"]))

    def test_a_thousand_tiny_jobs_start_at_once_and_take_little_memory(self):
        random = np.random.default_rng(1)
        for job in range(1000):
            x = random.standard_normal((64, 5)).astype("float32")
            np.save(self.folder / f"tiny_{job:03}_x.npy", x)
            np.save(self.folder / f"tiny_{job:03}_y.npy", x[:, :1])
        (self.folder / "jobs.toml").write_text(
            '[[sweep]]\nname = "t"\nbuild = "dense 2 relu; dense 1"\ninput = [5]\nloss = "mse"\nepochs = 3\nvary = { x = "tiny_*_x.npy", y = "tiny_*_y.npy" }\n'
        )
        words = "import json, resource, subprocess, sys; done = json.loads(subprocess.run(sys.argv[1:], check=True, stdout=subprocess.PIPE).stdout)\n"
        words += "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        words += "print(json.dumps([done['start_seconds'], used.ru_utime + used.ru_stime, len(done['jobs']), used.ru_maxrss / 1024]))"
        run = subprocess.run([sys.executable, "-c", words, self.program, "fit", "jobs.toml", "--out", "out", "--json"], cwd=self.folder, capture_output=True, text=True, check=True)
        start, processor, jobs, megabytes = json.loads(run.stdout)
        self.assertEqual(jobs, 1000)
        if not self.sanitized:
            self.assertLess(min(start, processor), 2)  # where others need the cores, time passes; the processor's is of the whole run, and counts then
            self.assertLess(megabytes, 80)

    def test_a_killed_run_goes_on_bit_for_bit(self):
        self.write_jobs(keys="validation_split = 0.2", epochs=150)
        begin = time.monotonic()
        self.fit("whole", "--fit-plan", "stacked")
        whole = time.monotonic() - begin
        arguments = [self.program, "fit", "jobs.toml", "--out", "parts", "--log-steps", "--fit-plan", "stacked", "--steps-per-launch", "2", "--checkpoint-every", "50", "--resume"]
        kills = 0
        for delay in (0.3 * whole, 0.5 * whole, 0.7 * whole, 0.9 * whole):
            child = subprocess.Popen(arguments, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                child.wait(timeout=delay)
            except subprocess.TimeoutExpired:
                child.kill()
                kills += 1
            child.wait()
        self.assertGreater(kills, 0)
        self.succeed(*arguments[1:])
        self.expect_equal("whole", "parts")

    def test_ctrl_c_keeps_what_is_finished_and_where_the_rest_stands(self):
        self.write_jobs(epochs=1_000_000)
        child = subprocess.Popen([self.program, "fit", "jobs.toml", "--out", "out", "--checkpoint-every", "1000000000"], cwd=self.folder, stderr=subprocess.PIPE, text=True)
        while not (self.folder / "out/plan.json").exists():
            self.assertIsNone(child.poll())
            time.sleep(0.01)
        time.sleep(0.2)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
        self.assertEqual((child.returncode, err), (130, "tutti: error: [interrupted] checkpoints are written; hint: --resume goes on\n"))
        self.assertEqual(len(list((self.folder / "out").glob("*/checkpoint"))), 4 * STORES)


if __name__ == "__main__":
    main()
