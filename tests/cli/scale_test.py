"""Several devices: tutti fit --devices and under mpirun, and tutti scale, which names what is lost."""

import io
import json
import os
import shutil
import signal
import subprocess
import time
import unittest
import zipfile

import h5py
import numpy as np

from program import main
from scale_jobs import ScaleTest

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl_vader_single_copy_mechanism", "none", "-np"]


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


class Devices(DevicesTest):
    def test_the_plan_is_printed_and_two_devices_train_what_one_does(self):
        self.write()
        self.train("jobs.toml", "--out", "one")
        run = self.train("jobs.toml", "--out", "two", "--devices", "2", "--threads", "1")
        self.assertIn("a: global batch 16 = 2 devices x 8 samples, 1 thread each\n", run.out)
        self.train("jobs.toml", "--out", "four", "--devices", "cpu:0,cpu:1", "--accumulate", "2")
        self.expect_same("one", "two", 1e-5)
        self.expect_same("one", "four", 1e-5)

    def test_a_larger_batch_and_its_learning_rate(self):
        self.write()
        run = self.train("jobs.toml", "--out", "o", "--devices", "2", "--per-device-batch", "16", "--lr-scale", "linear", "--warmup-steps", "3")
        self.assertIn("global batch 32 = 2 devices x 16 samples", run.out)
        self.assertIn("learning rate x 2 after 3 steps of warm-up", run.out)
        report = self.train("jobs.toml", "--out", "j", "--devices", "2", "--json").json
        self.assertEqual(report["parallel"][0]["devices"], 2)
        self.assertEqual(len(report["parallel"][0]["seconds_by_replica"]), 2)

    def test_resumed_runs_equal_uninterrupted_ones(self):
        self.write(epochs=12)
        self.train("jobs.toml", "--out", "whole", "--devices", "3", "--log-steps")
        self.write(samples=90, epochs=12)
        child = subprocess.Popen([self.program, "fit", "jobs.toml", "--out", "cut", "--devices", "3", "--log-steps", "--checkpoint-every", "2"], cwd=self.folder, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        for _ in range(3000):
            if (self.folder / "cut" / "a" / "checkpoint").exists() or child.poll() is not None:
                break
            time.sleep(0.001)
        child.kill()
        child.wait()
        self.train("jobs.toml", "--out", "cut", "--devices", "3", "--log-steps", "--resume")
        self.expect_same("whole", "cut", 0)

    def test_traces_have_every_replica(self):
        self.write()
        self.train("jobs.toml", "--out", "o", "--devices", "2", "--trace", "run.json")
        events = json.loads((self.folder / "run.json").read_text())["traceEvents"]
        spans = [e for e in events if e["ph"] == "X"]
        names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
        self.assertEqual(set(names.values()), {"replica 0", "replica 1", "replica 0: kernels", "replica 1: kernels"})
        self.assertEqual({e["tid"] for e in spans}, set(names))
        self.assertLessEqual({"input", "compute", "update", "wait"}, {e["name"] for e in spans if e["tid"] < 2})
        kernels = {e["name"] for e in spans if "kernels" in names[e["tid"]]}
        self.assertTrue(any("dot_general" in name for name in kernels), kernels)
        for replica in (0, 1):
            own = sorted((e["ts"], e["ts"] + e["dur"]) for e in spans if e["tid"] == replica)
            self.assertTrue(all(a[1] <= b[0] + 1 for a, b in zip(own, own[1:])), "spans of a thread overlap")

    def test_a_second_device_that_cannot_help_is_warned_of(self):
        self.write(batch=2)
        run = self.train("jobs.toml", "--out", "o", "--devices", "2", environment={"TUTTI_SCALE_CAUSE": "link 1"})
        self.assertRegex(run.err, r"2 devices are not faster than one: .* ms a step computing, .* ms between; hint: --devices 1, or batches of \d+")

    def test_it_is_warned_of_in_the_first_steps(self):
        self.write(batch=2, epochs=1_000_000)
        child = subprocess.Popen(
            [self.program, "fit", "jobs.toml", "--out", "o", "--devices", "2"],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"TUTTI_SCALE_CAUSE": "link 1"},
        )
        self.assertIn("2 devices are not faster than one", child.stderr.readline())
        self.assertIsNone(child.poll(), "said in the end only")
        child.terminate()
        _, rest = child.communicate()
        self.assertEqual(child.returncode, 143)
        self.assertNotIn("not faster", rest, "said twice")

    def test_wrong_use_is_refused(self):
        self.write()
        for arguments, words in (
            (["--devices", "0"], "between 1 and"),
            (["--devices", "cpu:0,cpu:0"], "twice"),
            (["--devices", "2", "--global-batch", "10", "--per-device-batch", "3"], "is not --per-device-batch"),
            (["--devices", "2", "--lr-scale", "cubic"], "lr-scale"),
        ):
            run = self.run_program("fit", "jobs.toml", "--out", "o", *arguments)
            self.assertNotEqual(run.code, 0, arguments)
            self.assertIn(words, run.err)


class Plugins(DevicesTest):
    def setUp(self):
        super().setUp()
        devices = self.run_program("devices", "--json").json["devices"]
        if not any(d["name"] == "xla:cpu" and d["usable"] for d in devices):
            self.skipTest("there is no plugin for xla:cpu")

    def test_two_devices_of_a_plugin_train_what_one_cpu_does_and_resume(self):
        self.write(epochs=12)
        job = ["jobs.toml", "--device", "xla:cpu", "--devices", "2", "--log-steps"]
        self.train("jobs.toml", "--out", "one")
        run = self.train(*job, "--out", "whole", "--trace", "run.json")
        self.assertIn("a: global batch 16 = 2 devices x 8 samples\n", run.out)
        self.expect_same("one", "whole", 1e-5)
        spans = [e for e in json.loads((self.folder / "run.json").read_text())["traceEvents"] if e["ph"] == "X"]
        self.assertEqual({e["tid"] for e in spans}, {0, 1})
        child = subprocess.Popen([self.program, "fit", *job, "--out", "cut", "--checkpoint-every", "2"], cwd=self.folder, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        while not (self.folder / "cut" / "a" / "checkpoint").exists() and child.poll() is None:
            time.sleep(0.001)
        child.kill()
        child.wait()
        self.train(*job, "--out", "cut", "--resume")
        self.expect_same("whole", "cut", 0)

    def test_devices_that_are_not_there_are_named(self):
        self.write()
        run = self.run_program("fit", "jobs.toml", "--out", "o", "--device", "xla:cpu", "--devices", "5")
        self.assertEqual(run.code, 1)
        self.assertIn("there is no device 4: the plugin has 4, xla:cpu:0 to xla:cpu:3", run.err)
        self.assertFalse((self.folder / "o").exists())


class Reports(ScaleTest):
    def test_reports_are_written(self):
        self.write(samples=256)
        run = self.succeed("scale", "jobs.toml", "--devices", "1,2,3", "--turn", "20", "--rounds", "1", "-o", "report.html")
        for words in ("speed-up", "projected", "slowest: replica"):
            self.assertIn(words, run.out)
        page = (self.folder / "report.html").read_text()
        self.assertTrue(page.startswith("<!doctype html>"))
        self.assertIn("<svg", page)
        self.assertNotIn("http", page.replace("http-equiv", ""))
        self.assertEqual(self.run_program("scale", "jobs.toml", "--devices", "1,x").code, 2)

    def test_reports_as_json_are_whole_whatever_is_printed(self):
        self.write(samples=64)
        self.succeed("scale", "jobs.toml", "--turn", "5", "--rounds", "1", "--only", "strong", "-o", "report.json")
        (job,) = json.loads((self.folder / "report.json").read_text())["jobs"]
        self.assertEqual([result["devices"] for result in job["results"]], [1, 2])


class Ranks(DevicesTest):
    def finish(self, child, timeout=120):
        out, err = child.communicate(timeout=timeout)
        return child.returncode, out, err

    def test_ranks_train_what_one_device_does(self):
        self.ranks()
        self.write()
        self.train("jobs.toml", "--out", "one")
        code, out, err = self.finish(self.mpirun(2, "fit", "jobs.toml", "--out", "two", "--threads", "1"))
        self.assertEqual(code, 0, err)
        self.assertEqual(out.count("global batch 16 = 2 devices"), 1, out)
        self.expect_same("one", "two", 1e-5)

    def test_ranks_with_other_data_are_refused(self):
        self.ranks()
        self.write()
        other = self.folder / "other"
        other.mkdir()
        for name in ("y.npy", "jobs.toml"):
            shutil.copy(self.folder / name, other / name)
        np.save(other / "x.npy", np.load(self.folder / "x.npy") + 1)
        program = f'cd $( [ "$OMPI_COMM_WORLD_RANK" = 1 ] && echo other || echo . ) && exec {self.program} fit jobs.toml --out {self.folder}/o'
        child = subprocess.Popen([*MPIRUN, "2", "sh", "-c", program], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        code, _, err = self.finish(child)
        self.assertNotEqual(code, 0)
        self.assertIn("rank 1 on", err)
        self.assertIn("not the same for all ranks", err)

    def test_a_stopped_rank_ends_the_job_and_resuming_equals_the_whole(self):
        err = self.cut_off(signal.SIGSTOP)
        self.assertIn("rank 1 on", err)
        self.assertIn("has not answered", err)

    def test_a_killed_rank_ends_the_job_and_resuming_equals_the_whole(self):
        self.assertRegex(self.cut_off(signal.SIGKILL), r"rank 1 .*on (node )?\S+")

    def test_gradients_are_exchanged_in_measured_buckets_while_others_are_computed(self):
        self.ranks()
        self.write(columns=64, epochs=2, layers="dense 256 tanh; dense 256 tanh; dense 256 tanh; dense 1")
        code, out, err = self.finish(self.mpirun(2, "fit", "jobs.toml", "--out", "o", "--threads", "1", "--json", "--trace", "run.json"))
        self.assertEqual(code, 0, err)
        exchange = json.loads(out)["parallel"][0]["exchange"]
        self.assertGreaterEqual(exchange["bucket_bytes"], 1 << 17)
        self.assertGreater(exchange["bytes_per_second"], 0)
        self.assertTrue(0 <= exchange["hidden"] <= 1)
        for file in ("run.json", "run.rank1.json"):
            events = json.loads((self.folder / file).read_text())["traceEvents"]
            (lane,) = [e["tid"] for e in events if e["name"] == "thread_name" and e["args"]["name"].endswith(": exchange")]
            self.assertGreater(len([e for e in events if e["ph"] == "X" and e["tid"] == lane]), exchange["buckets"])

    def cut_off(self, how):
        """What a job says of whose rank 1 becomes of that; then it is resumed."""
        self.ranks()
        self.write(epochs=60)
        code, _, err = self.finish(self.mpirun(2, "fit", "jobs.toml", "--out", "whole", "--threads", "1"))
        self.assertEqual(code, 0, err)
        # Long enough that it is not over before: 20 ms a step.
        slowly = {"TUTTI_SCALE_CAUSE": "sleep 1 20000"}
        child = self.mpirun(2, "fit", "jobs.toml", "--out", "cut", "--threads", "1", "--checkpoint-every", "5", "--deadline", "2", environment=slowly)
        for _ in range(6000):
            if (self.folder / "cut" / "a" / "checkpoint").exists() or child.poll() is not None:
                break
            time.sleep(0.005)
        ranks = subprocess.run(["pgrep", "-P", str(child.pid)], stdout=subprocess.PIPE, text=True).stdout.split()
        victim = None
        for pid in ranks:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if b"OMPI_COMM_WORLD_RANK=1\0" in file.read():
                    victim = int(pid)
        self.assertIsNotNone(victim)
        os.kill(victim, how)
        begin = time.monotonic()
        try:
            code, _, err = self.finish(child, 60)
        finally:
            for pid in ranks:
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    pass
        self.assertLess(time.monotonic() - begin, 30)
        self.assertNotEqual(code, 0)
        resumed, _, problem = self.finish(self.mpirun(2, "fit", "jobs.toml", "--out", "cut", "--threads", "1", "--resume"))
        self.assertEqual(resumed, 0, problem)
        self.expect_same("whole", "cut", 0)
        return err


if __name__ == "__main__":
    main()
