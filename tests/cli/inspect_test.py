"""inspect: the table, the JSON, and models that cannot run."""

import program

DATA = program.DATA


class Inspect(program.ProgramTest):
    def inspect(self, name):
        return self.succeed("inspect", DATA / name, "--json").json

    def test_the_table_reads_as_a_summary(self):
        lines = self.succeed("inspect", DATA / "dense.keras").out.splitlines()
        self.assertIn("'small', Keras 3.", lines[0])
        table = [line.split() for line in lines[2:6]]
        self.assertEqual(table[0], ["LAYER", "CLASS", "OUTPUT", "PARAMETERS", "TRAINABLE", "FLOPS"])
        self.assertEqual(table[1][:5], ["features", "InputLayer", "(None,", "4)", "0"])
        self.assertEqual(table[2][1:6], ["Dense", "(None,", "8)", "40", "yes"])
        self.assertEqual(table[3][:6], ["scores", "Dense", "(None,", "3)", "27", "yes"])
        rest = "\n".join(lines[6:])
        for text in (
            "input       features: float32 (None, 4)",
            "output      scores: float32 (None, 3)",
            "parameters  67 (67 trainable), 268 B",
            "optimizer Adam (learning rate 0.01",
            "loss mse, metrics mae",
        ):
            self.assertIn(text, rest)

    def test_json(self):
        model = self.inspect("dense.keras")
        self.assertEqual(model["inputs"], [{"name": "features", "dtype": "float32", "shape": [None, 4]}])
        self.assertEqual(model["outputs"], [{"name": "scores", "dtype": "float32", "shape": [None, 3]}])
        self.assertEqual((model["name"], model["parameters"], model["parameter_bytes"], model["unsupported"]), ("small", 67, 268, []))
        self.assertEqual([layer["name"] for layer in model["layers"]], ["features", model["layers"][1]["name"], "scores"])
        self.assertEqual(model["layers"][2]["shape"], [None, 3])
        # 2 multiply-adds a weight, an addition a bias, and relu.
        self.assertGreaterEqual(model["flops"], 2 * (4 * 8 + 8 * 3) + 8 + 3)
        self.assertLessEqual(model["flops"], 2 * (4 * 8 + 8 * 3) + 8 + 3 + 3 * 8)
        self.assertGreaterEqual(model["bytes"], 268)
        self.assertEqual(model["compile"]["optimizer"], "Adam")
        self.assertAlmostEqual(model["compile"]["learning_rate"], 0.01)
        self.assertIsNone(model["open_extent"])

    def test_legacy_files(self):
        self.assertEqual(self.inspect("legacy.h5")["parameters"], 67)

    def test_nested_models_are_indented_and_frozen_layers_said(self):
        layers = {layer["name"]: layer for layer in self.inspect("nested.keras")["layers"]}
        self.assertEqual([layers[n]["depth"] for n in ("inner", "inner_dense", "head")], [0, 1, 0])
        self.assertEqual((layers["inner"]["parameters"], layers["inner"]["trainable_parameters"]), (35, 0))
        self.assertEqual((layers["inner_dense"]["parameters"], layers["inner_dense"]["trainable_parameters"]), (35, 0))
        self.assertEqual(self.inspect("nested.keras")["trainable_parameters"], 12)
        text = self.succeed("inspect", DATA / "nested.keras").out
        self.assertRegex(text, r"(?m)^inner  +Sequential  +\(None, 5\)  +35  no")
        self.assertRegex(text, r"(?m)^  inner_dense  +Dense  +\(None, 5\)  +35  no")

    def test_open_extents_are_none(self):
        model = self.inspect("open_time.keras")
        self.assertEqual(model["outputs"][0]["shape"], [None, None, 3])
        self.assertEqual(model["layers"][-1]["shape"], [None, None, 3])
        self.assertGreater(model["open_extent"], 0)

    def test_a_shared_layer_stands_once(self):
        model = self.inspect("two_by_two.keras")
        shared = [layer for layer in model["layers"] if layer["name"] == "shared"]
        self.assertEqual([layer["calls"] for layer in shared], [2])
        self.assertEqual(model["parameters"], 3 * 2 + 2 + 2 * 2 + 2)
        self.assertEqual([output["name"] for output in model["outputs"]], ["total", "shared"])

    def test_a_weight_that_two_layers_hold_counts_once(self):
        model = self.inspect("spectral.keras")
        self.assertEqual((model["parameters"], model["trainable_parameters"]), (4 * 3 + 3 + 3, 4 * 3 + 3))

    def test_what_is_not_supported_is_listed_all_at_once_and_the_table_is_there(self):
        run = self.refuse(1, "has 2 problems", "inspect", DATA / "refused.keras")
        self.assertRegex(run.out, r"(?m)^between  +Dense ")
        self.assertRegex(run.out, r"(?m)^double  +Lambda  +\? ")
        self.assertIn("not supported (2):", run.out)
        run = self.refuse(1, "has 2 problems", "inspect", DATA / "refused.keras", "--json")
        self.assertEqual(len(run.json["unsupported"]), 2)
        for name, problem in zip(("double", "increment"), run.json["unsupported"], strict=True):
            self.assertIn(f"'{name}'", problem)
        self.assertEqual([layer["name"] for layer in run.json["layers"]], ["x", "double", "between", "increment"])

    def test_broken_files(self):
        (self.folder / "text.keras").write_text("this is not a model")
        whole = (DATA / "dense.keras").read_bytes()
        (self.folder / "cut.keras").write_bytes(whole[: len(whole) // 2])
        (self.folder / "empty.h5").write_bytes(b"")
        for name in ("text.keras", "cut.keras", "empty.h5"):
            self.refuse(1, "tutti: error: [", "inspect", name)


if __name__ == "__main__":
    program.main()
