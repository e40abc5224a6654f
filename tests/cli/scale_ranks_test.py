"""Several devices of several processes: tutti fit under mpirun, by shared memory, by messages and by a plugin of several hosts."""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import numpy as np

from program import main
from scale_jobs import MPIRUN, DevicesTest

EXCHANGES = ("memory", "messages")
DEEP = "dense 256 tanh; dense 256 tanh; dense 256 tanh; dense 1"


class Ranks(DevicesTest):
    def finish(self, child, timeout=120):
        out, err = child.communicate(timeout=timeout)
        return child.returncode, out, err

    def succeed_by(self, ranks, *arguments, environment=None):
        code, out, err = self.finish(self.mpirun(ranks, "fit", "jobs.toml", "--threads", "1", *arguments, environment=environment))
        self.assertEqual(code, 0, err)
        return out

    def test_ranks_train_what_one_device_does(self):
        self.ranks()
        self.write()
        self.train("jobs.toml", "--out", "one")
        self.train("jobs.toml", "--out", "threads", "--devices", "3")
        self.assertEqual(self.succeed_by(2, "--out", "two").count("global batch 16 = 2 devices"), 1)
        self.expect_same("one", "two", 1e-5)
        self.succeed_by(3, "--out", "memory")
        self.expect_same("threads", "memory", 0)
        self.succeed_by(3, "--out", "messages", "--exchange", "messages")
        self.expect_same("one", "messages", 1e-5)
        self.assertEqual([name for name in os.listdir("/dev/shm") if name.startswith("tutti-")], [], "shared memory is left behind")

    def test_kernels_of_ranks_are_traced(self):
        self.ranks()
        self.write()
        for how in EXCHANGES:
            self.succeed_by(2, "--out", how, "--exchange", how, "--trace", f"{how}.json")
            for file in (f"{how}.json", f"{how}.rank1.json"):
                events = json.loads((self.folder / file).read_text())["traceEvents"]
                (lane,) = [e["tid"] for e in events if e["name"] == "thread_name" and e["args"]["name"].endswith(": kernels")]
                self.assertTrue(any("dot_general" in e["name"] for e in events if e["ph"] == "X" and e["tid"] == lane), file)

    def test_hosts_with_devices_of_one_plugin_train_what_one_device_does(self):
        """The plugin is XLA's for the processor, whose devices are divided between the ranks; what they tell each other goes through MPI."""
        self.ranks()
        build = pathlib.Path(self.program).parent
        plugin, real = build / "cuda_hosts" / "libcuda_hosts.so", sorted(build.glob("plugins/lib/python*/site-packages/xla_plugins/xla_cpu_pjrt/*.so"))
        if not plugin.exists() or not real:
            self.skipTest("there is no plugin for xla:cpu")
        environment = {"TUTTI_REAL_PLUGIN": str(real[0])}
        self.write(epochs=2)  # with a last batch of 10 samples
        self.train("jobs.toml", "--out", "one")
        out = self.succeed_by(2, "--out", "two", "--device", plugin, "--devices", "2", environment=environment)
        self.assertIn("global batch 16 = 4 devices x 4 samples", out)
        self.expect_same("one", "two", 1e-5)
        self.succeed_by(2, "--out", "small", "--device", plugin, "--accumulate", "2", environment=environment)
        self.expect_same("one", "small", 1e-5)

    def test_ranks_with_a_plugin_of_one_host_are_refused(self):
        self.ranks()
        self.write()
        code, _, err = self.finish(self.mpirun(2, "fit", "jobs.toml", "--out", "o", "--device", "xla:cpu"))
        self.assertNotEqual(code, 0)
        self.assertRegex(err, "ranks with 'xla:cpu' are not done|no plugin")

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
        for how in EXCHANGES:
            err = self.cut_off(signal.SIGSTOP, how)
            self.assertIn("rank 1 on", err)
            self.assertIn("has not answered", err)

    def test_a_killed_rank_ends_the_job_and_resuming_equals_the_whole(self):
        for how in EXCHANGES:
            self.assertRegex(self.cut_off(signal.SIGKILL, how), r"rank 1 .*on (node )?\S+")

    def test_gradients_are_exchanged_in_measured_buckets_while_others_are_computed(self):
        self.ranks()
        self.write(columns=64, epochs=2, layers=DEEP)
        out = self.succeed_by(2, "--out", "o", "--exchange", "messages", "--json", "--trace", "run.json")
        exchange = json.loads(out)["parallel"][0]["exchange"]
        self.assertGreaterEqual(exchange["bucket_bytes"], 1 << 17)
        self.assertGreater(exchange["bytes_per_second"], 0)
        self.assertTrue(0 <= exchange["hidden"] <= 1)
        for file in ("run.json", "run.rank1.json"):
            events = json.loads((self.folder / file).read_text())["traceEvents"]
            (lane,) = [e["tid"] for e in events if e["name"] == "thread_name" and e["args"]["name"].endswith(": exchange")]
            self.assertGreater(len([e for e in events if e["ph"] == "X" and e["tid"] == lane]), exchange["buckets"])

    def cut_off(self, how, exchange):
        """What a job says of whose rank 1 becomes of that at some moment; then it is resumed."""
        self.ranks()
        self.write(epochs=60)
        whole, cut = f"whole_{exchange}", f"cut_{exchange}"
        self.succeed_by(2, "--out", whole, "--exchange", exchange)
        # Long enough that it is not over before: 20 ms a step.
        slowly = {"TUTTI_SCALE_CAUSE": "sleep 1 20000"}
        child = self.mpirun(
            2, "fit", "jobs.toml", "--out", cut, "--threads", "1", "--exchange", exchange, "--checkpoint-every", "5", "--deadline", "2", environment=slowly
        )
        for _ in range(6000):
            if (self.folder / cut / "a" / "checkpoint").exists() or child.poll() is not None:
                break
            time.sleep(0.005)
        time.sleep(random.random() * 0.5)
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
        self.succeed_by(2, "--out", cut, "--exchange", exchange, "--resume")
        self.expect_same(whole, cut, 0)
        return err


if __name__ == "__main__":
    main()
