"""Several devices of one process: tutti fit --devices, and tutti scale, which names what is lost."""

import json
import os
import subprocess
import time

from program import main
from scale_jobs import DevicesTest, ScaleTest


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
        self.refuse(2, "'report.pdf': the report is written as .html or .json", "scale", "jobs.toml", "-o", "report.pdf")

    def test_reports_as_json_are_whole_whatever_is_printed(self):
        self.write(samples=64)
        self.succeed("scale", "jobs.toml", "--turn", "5", "--rounds", "1", "--only", "strong", "-o", "report.json")
        (job,) = json.loads((self.folder / "report.json").read_text())["jobs"]
        self.assertEqual([result["devices"] for result in job["results"]], [1, 2])


if __name__ == "__main__":
    main()
