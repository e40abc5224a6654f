"""tutti scale names the cause that slows a run down. It measures: ctest runs it with nothing beside it."""

import json

from program import main
from scale_jobs import DevicesTest, ScaleTest


class Causes(ScaleTest):
    def measure(self, cause, *options, **job):
        self.write(samples=2048, columns=32, **({"batch": 256, "epochs": 1, "layers": "dense 128 tanh; dense 128 tanh; dense 1"} | job))
        environment = {"TUTTI_SCALE_CAUSE": cause} if cause else {}
        run = self.run_program("scale", "jobs.toml", "--devices", "1,2", "--only", "strong", "--turn", "150", "--json", *options, environment=environment)
        self.assertEqual(run.code, 0, run.err)
        result = run.json["jobs"][0]["results"][-1]
        self.assertEqual(result["devices"], 2)
        self.assertAlmostEqual(sum(loss["percent"] for loss in result["lost_to"].values()), 100, delta=0.01)
        return result

    def expect_share(self, result, name, injected_us):
        """That much of what is lost, within ten points."""
        share = 100 * min(1, injected_us / result["lost_us"])
        self.assertEqual(result["main_loss"], name, result["lost_to"])
        self.assertAlmostEqual(result["lost_to"][name]["percent"], share, delta=10, msg=result["lost_to"])

    def test_a_slow_reader(self):
        # 256 samples of 200 us each, with one device and with two: half of it is lost to the second.
        self.expect_share(self.measure("reader 200"), "input wait", 256 * 200 / 2)

    def test_a_replica_that_sleeps(self):
        result = self.measure("sleep 1 30000")
        self.expect_share(result, "skew between replicas", 30000)
        self.assertEqual(result["slowest_replica"], 1)

    def test_batches_that_are_too_small(self):
        # 20 ms however few samples a part has: a batch would have to be larger for that not to be felt.
        self.expect_share(self.measure("start 20000"), "smaller batch a device", 20000 / 2)

    def test_a_thin_link(self):
        result = self.measure("link 3")
        self.expect_share(result, "exposed communication", 1e6 * (32 * 128 + 128 + 128 * 128 + 128 + 129) * 4 / 3e6)


class Hidden(DevicesTest):
    def test_the_exchange_is_hidden_behind_the_backward_pass(self):
        """Layers of one size, so that one bucket of several is left when the backward pass ends."""
        self.ranks()
        self.write(samples=2048, columns=384, batch=1024, epochs=12, layers="dense 384 tanh; " * 7 + "dense 1")
        best = 0
        for _ in range(3):
            job = ["fit", "jobs.toml", "--out", "o", "--threads", "1", "--exchange", "messages", "--json"]
            child = self.mpirun(2, *job)
            out, err = child.communicate(timeout=120)
            self.assertEqual(child.returncode, 0, err)
            exchange = json.loads(out)["parallel"][0]["exchange"]
            self.assertGreaterEqual(exchange["buckets"], 4)
            self.assertGreater(exchange["seconds"], 0)
            best = max(best, exchange["hidden"])
            if best >= 0.7:
                break
        self.assertGreaterEqual(best, 0.7)


if __name__ == "__main__":
    main()
