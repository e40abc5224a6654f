"""The xla devices from the command line: what is found, what is said when something is not, programs for GPUs that are not here."""

import concurrent.futures
import os
import pathlib

import numpy as np
import program

DATA = program.DATA


class Found(program.ProgramTest):
    def listed(self, **options):
        return {device["name"]: device for device in self.succeed("devices", "--json", **options).json["devices"]}

    def usable(self, name):
        device = self.listed()[name]
        if not device["usable"]:
            self.skipTest(f"{name}: {device['found']}")

    def test_every_platform_is_listed_and_an_absent_one_says_why(self):
        devices = self.listed()
        for name in ("cuda", "rocm", "tpu", "xla:cpu"):
            self.assertTrue(devices[name]["found"])
        for name in ("rocm", "tpu"):
            if not devices[name]["usable"]:
                self.refuse(1, f"[{name}] {devices[name]['found']}", "predict", DATA / "dense.keras", "x.npy", "--device", name)

    def test_a_plugin_without_a_gpu_and_a_driver_that_is_too_old(self):
        found = self.listed()["cuda"]["found"]
        if not found.startswith("plugin found, no GPU visible (there is no NVIDIA driver)"):
            self.skipTest(f"cuda: {found}")
        self.refuse(1, "[cuda] plugin found, no GPU visible", "explain", DATA / "dense.keras", "--device", "cuda")
        old = pathlib.Path(self.program).parent / "old_driver"
        found = self.listed(environment={"LD_LIBRARY_PATH": str(old)})["cuda"]["found"]
        self.assertEqual(
            found, "plugin found, the NVIDIA driver is too old: it is for CUDA 12.4, the plugin for CUDA 13; hint: a newer driver, or pip install jax-cuda12-pjrt"
        )

    def test_auto_says_what_it_is(self):
        run = self.run_program("predict", DATA / "dense.keras", DATA / "dense_in.npz", "-o", "y.npz", "--device", "auto", "--json")
        self.assertEqual(run.code, 0)
        self.assertRegex(run.err, r"^tutti: --device auto is \S+: ")
        self.assertIn(f"auto is {run.json['device']}: ", run.err)

    def test_predictions_agree_and_programs_are_kept(self):
        self.usable("xla:cpu")
        for name in ("dense", "recurrent", "two_by_two", "open_time", "bfloat16"):
            for _ in range(2):
                self.succeed("predict", DATA / f"{name}.keras", DATA / f"{name}_in.npz", "-o", "y.npz", "--device", "xla:cpu", "--batch", "3", "--cache", "kept")
                y, wanted = np.load(self.folder / "y.npz"), np.load(DATA / f"{name}_out.npz")
                self.assertEqual(sorted(y), sorted(wanted))
                for key in wanted:
                    np.testing.assert_allclose(y[key].astype("float32"), wanted[key].astype("float32"), rtol=1e-2 if name == "bfloat16" else 1e-4, atol=1e-5)
        kept = os.listdir(self.folder / "kept")
        self.assertGreaterEqual(len(kept), 5)
        self.assertTrue(all(file.endswith(".program") for file in kept), kept)
        self.succeed("predict", DATA / "dense.keras", DATA / "dense_in.npz", "-o", "y.npz", "--device", "xla:cpu", environment={"TUTTI_CACHE": "off", "HOME": str(self.folder)})
        self.assertFalse((self.folder / ".cache").exists())

    def test_processes_share_what_is_kept(self):
        self.usable("xla:cpu")

        (self.folder / "out").mkdir()

        def predict(name, cache="kept"):
            self.succeed("predict", DATA / "dense.keras", DATA / "dense_in.npz", "-o", f"out/{name}.npz", "--device", "xla:cpu", "--batch", "3", "--cache", cache)

        predict("alone", "alone")
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(predict, range(8)))
        alone, kept = ([path.name for path in sorted((self.folder / folder).iterdir())] for folder in ("alone", "kept"))
        self.assertEqual(kept, alone)
        self.assertEqual(len({path.read_bytes() for path in (self.folder / "out").iterdir()}), 1)

    def test_what_a_plugin_says_besides_its_message_is_shown_to_who_asks(self):
        self.usable("xla:cpu")
        plugin, real = pathlib.Path(self.program).parent / "tests" / "libfailing_plugin.so", sorted(program.ROOT.glob("build/plugins/lib/python*/site-packages/xla_plugins/*/*.so"))
        if not real:
            self.skipTest("the plugin is not in build/plugins")
        np.save(self.folder / "x.npy", np.zeros((8, 3), "float32"))
        (self.folder / "jobs.toml").write_text('[[job]]\nname = "a"\nbuild = "dense 1"\ninput = [3]\nx = "x.npy"\ny = "x.npy"\nloss = "mse"\noptimizer = "sgd"\nepochs = 1\n')
        environment = {"TUTTI_REAL_PLUGIN": str(real[0]), "TUTTI_FAIL_CODE": "13"}
        message, trace = "[xla] running the program: the device fell off the bus\n", "tutti: === Source Location Trace: ===\ntutti: failing_plugin.cc:1\n"
        for words in (["predict", DATA / "dense.keras", DATA / "dense_in.npz", "-o", "y.npz"], ["fit", "jobs.toml", "--out", "out"]):
            self.refuse(1, message, *words, "--device", plugin, environment=environment)
            run = self.refuse(1, message, *words, "--device", plugin, "--verbose", environment=environment)
            self.assertIn(trace, run.err)

    def test_explain(self):
        self.usable("xla:cpu")
        found = self.succeed("explain", DATA / "recurrent.keras", "--device", "xla:cpu", "--json").json
        self.assertGreater(found["kernels"], 1)
        self.assertGreater(found["whole_us"], 0)
        self.assertIsNone(found["sum_us"])
        self.assertGreater(found["peak_memory_bytes"], 0)
        self.assertRegex(self.succeed("explain", DATA / "dense.keras", "--device", "xla:cpu").out, r"(?m)^times     a whole run .* xla:cpu tells none of its steps$")

    def test_what_does_not_fit_names_a_batch_that_might(self):
        self.usable("xla:cpu")
        self.refuse(1, "bytes are available; hint: a batch of ", "explain", DATA / "wide.keras", "--device", "xla:cpu", "--batch", 1 << 24)

    def test_fit_in_loops_on_the_device(self):
        self.usable("xla:cpu")
        random = np.random.default_rng(1)
        np.save(self.folder / "x.npy", random.standard_normal((70, 5)).astype("float32"))
        np.save(self.folder / "y.npy", random.standard_normal((70, 1)).astype("float32"))
        jobs = '[[sweep]]\nname = "s"\nbuild = "dense 4 relu; dropout 0.2; dense 1"\ninput = [5]\nx = "x.npy"\ny = "y.npy"\nloss = "mse"\nbatch_size = 16\nepochs = 3\n'
        (self.folder / "jobs.toml").write_text(jobs + 'optimizer = "adam"\nvary = { seed = [1, 2, 3] }\n')
        losses = []
        for options in (["--device", "cpu"], ["--device", "xla:cpu", "--steps-per-launch", "1"], ["--device", "xla:cpu", "--steps-per-launch", "2"]):
            self.succeed("fit", "jobs.toml", "--out", "out", "--log-steps", *options)
            losses.append([np.loadtxt(self.folder / f"out/s_{i}/steps.csv", delimiter=",", skiprows=1) for i in range(3)])
            self.assertEqual(losses[-1][0].shape, (15, 2))
        np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)
        np.testing.assert_allclose(losses[2], losses[0], rtol=1e-4)

    def test_a_rate_that_has_decayed_has_a_root(self):
        self.usable("xla:cpu")
        np.save(self.folder / "x.npy", np.linspace(0, 1, 24, dtype="float32").reshape(8, 3))
        np.save(self.folder / "y.npy", np.linspace(1, 2, 8, dtype="float32"))
        decay = 'schedule = { name = "polynomial_decay", initial_learning_rate = 0.1, decay_steps = 6, power = 1.5 }\n'
        (self.folder / "jobs.toml").write_text(
            '[[job]]\nname = "a"\nbuild = "dense 1"\ninput = [3]\nx = "x.npy"\ny = "y.npy"\nloss = "mse"\noptimizer = "sgd"\nepochs = 9\n' + decay
        )
        losses = [self.succeed("fit", "jobs.toml", "--out", "out", "--device", device, "--json").json["jobs"][0]["loss"] for device in ("xla:cpu", "cpu")]
        self.assertAlmostEqual(losses[0], losses[1], places=4)

    def test_precision(self):
        self.usable("xla:cpu")
        self.succeed("predict", DATA / "dense.keras", DATA / "dense_in.npz", "-o", "y.npz", "--device", "xla:cpu", "--precision", "bfloat16")
        self.refuse(1, "[cpu] products are computed in float32 here", "predict", DATA / "dense.keras", DATA / "dense_in.npz", "--precision", "tf32")
        self.refuse(2, "--precision", "predict", DATA / "dense.keras", DATA / "dense_in.npz", "--precision", "int8")


class Targets(program.ProgramTest):
    def setUp(self):
        super().setUp()
        if self.sanitized:
            self.skipTest("the compiler for CUDA is not ours to check")
        run = self.run_program("explain", DATA / "dense.keras", "--device", "cuda", "--target", "h100")
        if run.code != 0:
            self.skipTest(run.err)

    def test_explain_for_a_gpu_that_is_not_here(self):
        found = self.succeed("explain", DATA / "recurrent.keras", "--device", "cuda", "--target", "h100", "--batch", "4", "--json").json
        for key in ("kernels", "fusions", "flops", "bytes", "peak_memory_bytes", "projected_us"):
            self.assertGreater(found[key], 0, key)
        self.assertEqual(found["library_calls"], 0)
        self.assertEqual((found["device"], found["whole_us"]), ("cuda@h100", None))
        self.assertIn("plan", found)
        self.assertTrue(found["passes"])
        loop = [step for step in found["steps"] if step["kernel"] == "while"]
        self.assertEqual([step["runs"] for step in loop], [1])
        self.assertTrue(any(step["depth"] == 1 and step["runs"] > 1 for step in found["steps"]))
        text = self.succeed("explain", DATA / "recurrent.keras", "--device", "cuda", "--target", "l4").out
        self.assertRegex(text, r"(?m)^projected [\d.]+ us: .* it is not here, nothing was measured$")

    def test_compile_keeps_the_executable(self):
        run = self.succeed("compile", DATA / "dense.keras", "--device", "cuda", "--target", "h100", "-o", "dense.bin", "--json")
        self.assertEqual(run.json["bytes"], (self.folder / "dense.bin").stat().st_size)
        self.assertRegex(self.succeed("compile", DATA / "dense.keras", "--device", "cuda", "--target", "b200", "-o", "b.bin").out, r"^b.bin: .* for cuda@b200, batch 1, 1 kernel a run\n$")

    def test_wrong_targets(self):
        dense = DATA / "dense.keras"
        self.refuse(2, "unknown target 'h10' (did you mean 'h100'?)", "explain", dense, "--device", "cuda", "--target", "h10")
        self.refuse(2, "--target h100 needs the platform", "explain", dense, "--target", "h100")
        self.refuse(2, "'h100' is a target for --device cuda; got xla:cpu", "explain", dense, "--device", "xla:cpu", "--target", "h100")
        self.refuse(2, "-o OUT is needed", "compile", dense, "--device", "cuda", "--target", "h100")
        self.refuse(1, "live in memory alone", "compile", dense, "-o", "x.bin")


if __name__ == "__main__":
    program.main()
