"""explain and devices --measure: what the program says of a model, its steps and the machine; and how it refuses."""

import program

DATA = program.DATA


class Explanations(program.ProgramTest):
    def explain(self, name, *options):
        return self.succeed("explain", DATA / (name + ".keras"), "--json", *options).json

    def test_every_key_is_there_and_adds_up(self):
        found = self.explain("dense", "--batch", "3", "--threads", "1")
        self.assertEqual((found["device"], found["batch"], found["threads"]), ("cpu", 3, 1))
        self.assertEqual(found["inputs"], [{"dtype": "float32", "shape": [3, 4]}])
        steps = found["steps"]
        self.assertEqual([step["kernel"] for step in steps], ["matmul+bias+relu", "matmul+bias"])
        self.assertEqual(steps[0]["ops"], ["dot_general", "add", "maximum"])
        self.assertEqual([step["layers"] for step in steps], [["dense"], ["scores"]])
        self.assertEqual([step["shape"] for step in steps], [[3, 8], [3, 3]])
        self.assertEqual(found["kernels"], 2)
        self.assertEqual(steps[1]["flops"], 3 * 3 * (2 * 8 + 1))
        self.assertEqual(steps[1]["bytes"], 4 * (3 * 8 + 8 * 3 + 3 + 3 * 3))
        self.assertEqual(found["flops"], sum(step["flops"] for step in steps))
        self.assertEqual(found["bytes"], sum(step["bytes"] for step in steps))
        self.assertEqual(found["memory"]["weight_bytes"], 4 * (4 * 8 + 8 + 8 * 3 + 3))
        self.assertGreaterEqual(found["memory"]["packed_bytes"], 4 * (4 * 8 + 8 * 3))
        self.assertEqual(found["peak_memory_bytes"], found["memory"]["arena_bytes"])
        self.assertLessEqual(found["memory"]["arena_bytes"], found["memory"]["without_reuse_bytes"])
        self.assertEqual((found["plan"], found["fallbacks"]), ({}, []))

    def test_times_are_measured_and_held_against_the_machine(self):
        found = self.explain("wide", "--batch", "8", "--threads", "1")
        self.assertGreater(found["runs"], 0)
        self.assertGreater(found["whole_us"], 0)
        self.assertAlmostEqual(found["sum_us"], sum(step["us"] for step in found["steps"]), delta=1e-6 * found["sum_us"] + 1e-9)
        self.assertTrue(0.3 < found["sum_us"] / found["whole_us"] < 3, found)
        (machine,) = found["machine"]
        self.assertEqual(machine["threads"], 1)
        self.assertGreater(machine["flops_per_second"], 1e8)
        for step in found["steps"]:
            self.assertIn(step["bound"], ("memory", "arithmetic"))
            self.assertAlmostEqual(step["of_peak"], step["predicted_us"] / step["us"], delta=1e-6 * step["of_peak"])
            self.assertGreaterEqual(step["predicted_us"], step["flops"] / machine["flops_per_second"] * 1e6 * (1 - 1e-9))

    def test_threads_are_those_that_the_steps_use(self):
        large, small = self.explain("wide", "--batch", "8", "--threads", "2"), self.explain("dense", "--threads", "2")
        self.assertEqual((large["threads"], large["steps"][0]["threads"]), (2, 2))
        self.assertEqual([row["threads"] for row in large["machine"]], [1, 2])
        self.assertEqual((small["threads"], len(small["machine"])), (1, 1))

    def test_passes_say_how_long_they_took_and_what_they_did(self):
        passes = self.explain("recurrent")["passes"]
        self.assertEqual(passes[0]["name"], "remove_dead")
        for one, following in zip(passes, passes[1:]):
            self.assertEqual(one["nodes_after"], following["nodes_before"])
        self.assertTrue(all(one["ms"] >= 0 for one in passes))
        self.assertLess(passes[-1]["nodes_after"], passes[0]["nodes_before"])

    def test_a_loop_counts_the_kernels_of_its_body(self):
        found = self.explain("recurrent")
        (loop,) = [i for i, step in enumerate(found["steps"]) if step["kernel"] == "scan"]
        body = [step for step in found["steps"][loop + 1 :] if step["depth"] == 1]
        self.assertTrue(body)
        self.assertTrue(all(step["runs"] == 6 for step in body))
        outside = sum(step["depth"] == 0 for step in found["steps"]) - 1
        self.assertEqual(found["kernels"], outside + 6 * len(body))
        self.assertGreaterEqual(found["steps"][loop]["us"] * 1.5, sum(step["us"] for step in body))

    def test_fallbacks_say_who_refused_and_why(self):
        found = self.explain("bfloat16")
        (dense,) = [row for row in found["fallbacks"] if row["op"] == "dot_general"]
        self.assertEqual(found["steps"][dense["step"]]["kernel"], "reference")
        self.assertIn({"kernel": "matmul", "op": "dot_general", "reason": "not of f32"}, dense["refused"])
        text = self.succeed("explain", DATA / "bfloat16.keras").out
        self.assertRegex(text, r"in reference kernels \(\d+ steps?, .*%")
        self.assertIn("matmul: not of f32; batched matmul: not of f32", text)

    def test_verbose_says_who_refused_before_the_kernel_that_was_chosen(self):
        chosen = "\nchosen after others refused:\n  batched matmul f32[1, 4, 4]: matmul: the right side is not known before the run\n"
        self.assertIn(chosen, self.run_program("explain", DATA / "gram.keras", "--verbose").out)
        self.assertNotIn("refused", self.succeed("explain", DATA / "gram.keras").out)

    def test_open_extents_are_bound(self):
        self.assertEqual(self.explain("open_time")["inputs"][0]["shape"], [1, 32, 2])
        self.assertEqual(self.explain("open_time", "--extent", "9", "--batch", "2")["inputs"][0]["shape"], [2, 9, 2])
        self.assertIn("f32[1, 32, 2] (32 for open extents, --extent)", self.succeed("explain", DATA / "open_time.keras").out)

    def test_integer_inputs_are_zeros_that_fit_an_embedding(self):
        self.assertGreater(self.explain("ids")["whole_us"], 0)

    def test_other_devices(self):
        reference, null = (self.explain("recurrent", "--device", device) for device in ("reference", "null"))
        self.assertEqual(reference["kernels"], null["kernels"])
        self.assertEqual(reference["passes"], [])
        self.assertTrue(all(step["us"] is not None for step in reference["steps"]))
        self.assertIsNone(null["whole_us"])
        self.assertTrue(all(step["us"] is None and step["of_peak"] is None for step in null["steps"]))
        self.assertEqual(reference["peak_memory_bytes"] > 0, null["peak_memory_bytes"] > 0)
        self.assertIn("null does not compute", self.succeed("explain", DATA / "dense.keras", "--device", "null").out)
        # Nothing is allocated: 2^24 samples of 50,000 floats are 3.4 TB.
        huge = self.explain("wide", "--device", "null", "--batch", 1 << 24)
        self.assertEqual(huge["steps"][0]["flops"], 2 * 50000 << 24)

    def test_the_table_folds_and_verbose_does_not(self):
        short = self.succeed("explain", DATA / "repeated.keras").out
        self.assertRegex(short, r"(?m)^\w+ \.\.\. \w+ +matmul\+bias\+relu x3 ")
        self.assertRegex(short, r"(?m)^simplify x\d ")
        self.assertRegex(short, r"(?m)^times     steps [\d.]+ us, a whole run [\d.]+ us: \d+ %; medians of \d+ runs$")
        run = self.run_program("explain", DATA / "repeated.keras", "--verbose")
        self.assertEqual(run.out.count("  matmul+bias+relu "), 3)
        self.assertRegex(run.out, r"(?m)^simplify +\d+ -> \d+ ")


class Refusals(program.ProgramTest):
    def test_wrong_usage_is_exit_code_2(self):
        dense = DATA / "dense.keras"
        self.refuse(2, "MODEL is required", "explain")
        self.refuse(2, "--batch", "explain", dense, "--batch", "0")
        self.refuse(2, "--threads", "explain", dense, "--threads", "0")
        self.refuse(2, "unknown device 'gpu' (did you mean 'cpu' or 'tpu'?); known: cpu, reference, null, cuda, rocm, tpu, xla:cpu, auto, and paths of PJRT plugins", "explain", dense, "--device", "gpu")
        self.refuse(2, "--extent is for models that leave extents open", "explain", dense, "--extent", "4")

    def test_what_cannot_be_explained_is_exit_code_1(self):
        self.refuse(1, "cannot open 'nowhere.keras'", "explain", "nowhere.keras")
        (self.folder / "x.keras").write_bytes(b"PK\x03\x04 and nothing else")
        self.refuse(1, "x.keras", "explain", "x.keras")
        run = self.refuse(1, "'double'", "explain", DATA / "refused.keras")
        self.assertIn("'increment'", run.err)
        self.refuse(1, "[memory]", "explain", DATA / "wide.keras", "--batch", 1 << 24)


class Machine(program.ProgramTest):
    def test_devices_measure(self):
        self.assertNotIn("measured", self.succeed("devices", "--json").json)
        measured = self.succeed("devices", "--measure", "--json", environment={"TUTTI_THREADS": "2"}).json["measured"]
        self.assertEqual([row["threads"] for row in measured], [1, 2])
        for row in measured:
            self.assertGreater(row["flops_per_second"], 1e8)
            self.assertEqual(row["bytes_per_second"], row["bandwidth"][-1]["bytes_per_second"])
            sizes = [level["bytes"] for level in row["bandwidth"]]
            self.assertEqual(sizes, sorted(set(sizes)))
            self.assertTrue(all(level["bytes_per_second"] > 1e8 for level in row["bandwidth"]))
        text = self.succeed("devices", "--measure", environment={"TUTTI_THREADS": "1"}).out
        self.assertRegex(text, r"(?m)^THREADS +FLOP/S .*MiB$")
        self.assertEqual(len([line for line in text.splitlines() if line.startswith("      1 ")]), 1)


if __name__ == "__main__":
    program.main()
