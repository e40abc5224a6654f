"""predict against what Keras predicted (make_models.py): formats in and out, shapes and dtypes, batches, latency, memory."""

import gzip
import re
import zipfile

import numpy as np
import program

DATA = program.DATA


def inputs_of(name):
    return dict(np.load(DATA / f"{name}_in.npz"))


class Predictions(program.ProgramTest):
    def compare(self, found, name, atol=1e-5, rtol=1e-4):
        wanted = dict(np.load(DATA / f"{name}_out.npz"))
        self.assertEqual(list(found), list(wanted))
        for key in wanted:
            self.assertEqual(found[key].dtype, np.float32)
            self.assertEqual(found[key].shape, wanted[key].shape)
            np.testing.assert_allclose(found[key], wanted[key], rtol, atol)

    def predict(self, name, suffix=".keras", source=None, target="y.npz", *options):
        self.succeed("predict", DATA / (name + suffix), source or DATA / f"{name}_in.npz", "-o", target, *options)
        return self.folder / target

    def test_npz_in_and_out_agrees_with_keras(self):
        for name, suffix in {"dense": ".keras", "legacy": ".h5", "two_by_two": ".keras", "nested": ".keras", "open_time": ".keras", "ids": ".keras", "image": ".keras", "centred": ".keras"}.items():
            with self.subTest(name):
                self.compare(dict(np.load(self.predict(name, suffix))), name)

    def test_every_way_to_cut_batches_gives_the_same(self):
        whole = np.load(self.predict("dense", target="y.npy"))
        for batch in (1, 7, 32, 70, 1000):
            cut = np.load(self.predict("dense", ".keras", None, "z.npy", "--batch", batch))
            np.testing.assert_allclose(cut, whole, 1e-6, 1e-6)

    def test_npy_and_csv_in_and_out(self):
        (x,) = inputs_of("dense").values()
        np.save(self.folder / "x.npy", x)
        np.savetxt(self.folder / "x.csv", x, delimiter=",", fmt="%.9g")
        np.savetxt(self.folder / "named.csv", x, delimiter=",", fmt="%.9g", header="a,b,c,d", comments="")
        for source in ("x.npy", "x.csv", "named.csv"):
            self.compare({"scores": np.load(self.predict("dense", source=source, target="y.npy"))}, "dense")
        out = self.predict("dense", source="x.npy", target="y.csv")
        self.assertEqual(out.read_text().splitlines()[0], "scores_0,scores_1,scores_2")
        written = np.loadtxt(out, delimiter=",", skiprows=1, dtype="float32")
        np.testing.assert_array_equal(written, np.load(self.folder / "y.npy"))

    def test_outputs_side_by_side_in_csv(self):
        out = self.predict("two_by_two", target="y.csv")
        self.assertEqual(out.read_text().splitlines()[0], "total_0,total_1,shared_0,shared_1")
        table = np.loadtxt(out, delimiter=",", skiprows=1, dtype="float32")
        self.compare({"total": table[:, :2], "shared": table[:, 2:]}, "two_by_two")

    def test_columns_become_axes(self):
        x = inputs_of("image")["image"]
        np.savetxt(self.folder / "x.csv", x.reshape(4, 6), delimiter=",", fmt="%.9g")
        self.compare(dict(np.load(self.predict("image", source="x.csv"))), "image")
        x = inputs_of("open_time")["series"]
        np.savetxt(self.folder / "t.csv", x.reshape(5, 14), delimiter=",", fmt="%.9g")
        self.compare(dict(np.load(self.predict("open_time", source="t.csv"))), "open_time")

    def test_dtypes_and_orders_are_converted_as_keras_does(self):
        x = inputs_of("dense")["features"]
        for array in (x.astype("float64"), x.astype(">f4"), np.asfortranarray(x)):
            np.save(self.folder / "x.npy", array)
            self.compare(dict(np.load(self.predict("dense", source="x.npy"))), "dense")
        for dtype in ("uint8", "int64", "bool"):
            ints = (np.arange(8).reshape(2, 4) % 2).astype(dtype)
            np.save(self.folder / "i.npy", ints)
            np.save(self.folder / "f.npy", ints.astype("float32"))
            as_ints, as_floats = (np.load(self.predict("dense", source=s, target="y.npy")) for s in ("i.npy", "f.npy"))
            np.testing.assert_array_equal(as_ints, as_floats)
        for dtype in ("int64", "uint8", "float32"):
            np.save(self.folder / "ids.npy", inputs_of("ids")["ids"].astype(dtype))
            self.compare(dict(np.load(self.predict("ids", source="ids.npy"))), "ids")

    def test_arrays_by_order(self):
        np.savez(self.folder / "x.npz", *inputs_of("two_by_two").values())
        self.compare(dict(np.load(self.predict("two_by_two", source="x.npz"))), "two_by_two")
        np.savez_compressed(self.folder / "z.npz", **inputs_of("two_by_two"), labels=np.zeros(9))
        self.compare(dict(np.load(self.predict("two_by_two", source="z.npz"))), "two_by_two")

    def test_a_missing_last_axis_of_one_is_added(self):
        x = inputs_of("image")["image"]
        np.save(self.folder / "x.npy", x[..., 0])
        self.compare(dict(np.load(self.predict("image", source="x.npy"))), "image")

    def test_no_samples_give_an_empty_result(self):
        np.save(self.folder / "x.npy", np.zeros((0, 4), "float32"))
        (self.folder / "x.csv").write_text("a,b,c,d\n")
        for source in ("x.npy", "x.csv"):
            self.assertEqual(np.load(self.predict("dense", source=source, target="y.npy")).shape, (0, 3))
        np.savez(self.folder / "x.npz", a=np.zeros((0, 3)), b=np.zeros((0, 2)))
        self.assertEqual(np.load(self.predict("two_by_two", source="x.npz"))["total"].shape, (0, 2))
        np.save(self.folder / "t.npy", np.zeros((0, 9, 2)))
        self.assertEqual(np.load(self.predict("open_time", source="t.npy", target="y.npy")).shape, (0, 9, 3))
        self.assertIn("no samples", self.succeed("predict", DATA / "dense.keras", "x.npy").out)

    def test_bfloat16_results_open_in_numpy(self):
        self.compare(dict(np.load(self.predict("bfloat16"))), "bfloat16", 1e-2, 1e-2)
        self.assertEqual(np.load(self.predict("bfloat16", target="y.npy")).dtype, np.float32)


class MixedSamples(program.ProgramTest):
    """Models whose outputs are not one row a sample; Keras lets the batches' rows follow each other."""

    def setUp(self):
        super().setUp()
        self.x = np.arange(40, dtype="float32").reshape(10, 4)
        np.save(self.folder / "x.npy", self.x)

    def test_rows_of_batches_follow_each_other(self):
        self.succeed("predict", DATA / "batch_mean.keras", "x.npy", "-o", "y.npz", "--batch", "5")
        mean, plus = np.load(self.folder / "y.npz").values()
        np.testing.assert_allclose(mean, [self.x[:5].mean(0), self.x[5:].mean(0)])
        np.testing.assert_allclose(plus, self.x + 1)

    def test_they_do_not_stand_side_by_side(self):
        self.refuse(1, "rows and '", "predict", DATA / "batch_mean.keras", "x.npy", "-o", "y.csv")
        self.refuse(1, "cannot stand side by side", "predict", DATA / "batch_mean.keras", "x.npy")

    def test_a_shape_that_changes_with_the_batch_needs_equal_batches(self):
        self.refuse(1, "hint: a --batch that divides the samples", "predict", DATA / "batch_transposed.keras", "x.npy", "-o", "y.npz", "--batch", "8")
        self.succeed("predict", DATA / "batch_transposed.keras", "x.npy", "-o", "y.npz", "--batch", "10")
        np.testing.assert_array_equal(next(iter(np.load(self.folder / "y.npz").values())), self.x.T)

    def test_a_single_number_is_refused(self):
        self.refuse(1, "is a single number for all samples, not rows", "predict", DATA / "number.keras", "x.npy", "-o", "y.npz")


class Printing(program.ProgramTest):
    def test_a_short_table_without_an_output_file(self):
        run = self.succeed("predict", DATA / "dense.keras", DATA / "dense_in.npz")
        lines = run.out.splitlines()
        self.assertEqual(lines[0], "SAMPLE  scores [3]")
        self.assertEqual(len(lines), 12)
        first = np.array([float(x) for x in lines[1].split()])
        np.testing.assert_allclose(first[1:], np.load(DATA / "dense_out.npz")["scores"][0], 1e-4, 1e-5)
        self.assertEqual(lines[-1], "and 60 more samples; -o OUT writes them all")

    def test_what_is_not_a_number_has_no_sign(self):
        samples = np.zeros_like(inputs_of("dense")[next(iter(inputs_of("dense")))][:2])
        samples[0], samples[1] = np.inf, -np.inf
        np.save(self.folder / "x.npy", samples)
        table = self.succeed("predict", DATA / "dense.keras", "x.npy").out
        self.assertIn(" nan", table)
        self.assertNotIn("-nan", table)

    def test_json_has_every_prediction(self):
        run = self.succeed("predict", DATA / "two_by_two.keras", DATA / "two_by_two_in.npz", "--json").json
        for name, wanted in np.load(DATA / "two_by_two_out.npz").items():
            np.testing.assert_allclose([sample[name] for sample in run["predictions"]], wanted, 1e-4, 1e-5)
        self.assertEqual(run["samples"], 9)
        self.assertEqual(run["outputs"][0], {"name": "total", "dtype": "float32", "shape": [9, 2]})

    def test_json_with_an_output_file_says_what_was_written(self):
        run = self.succeed("predict", DATA / "dense.keras", DATA / "dense_in.npz", "-o", "y.npy", "--json", "--batch", "8").json
        self.assertEqual((run["output"], run["batch"], run["samples"], run["device"]), ("y.npy", 8, 70, "cpu"))
        self.assertNotIn("predictions", run)

    def test_latency(self):
        (x,) = inputs_of("dense").values()
        np.save(self.folder / "x.npy", x[:1])
        run = self.succeed("predict", DATA / "dense.keras", "x.npy", "--repeat", "20", "--latency", "--json").json
        self.assertTrue(0 < run["p50_us"] <= run["p90_us"] <= run["p99_us"] <= run["max_us"])
        self.assertAlmostEqual(run["per_second"], 1e6 / run["p50_us"], delta=run["per_second"] * 0.9)
        self.assertGreater(run["cold_start_ms"], 0)
        self.assertGreaterEqual(run["pauses_per_second"], 0)
        self.assertLess(run["pauses_per_second"] * run["pause_us"], 1e6 * 1.001)
        self.assertEqual((run["repeat"], run["samples"]), (20, 1))
        histogram = run["histogram"]
        self.assertEqual(sum(bucket["count"] for bucket in histogram), 20)
        self.assertLessEqual(len(histogram), 12)
        for bucket, following in zip(histogram, histogram[1:]):
            self.assertLess(bucket["from_us"], bucket["to_us"])
            self.assertEqual(bucket["to_us"], following["from_us"])
        self.assertLessEqual(histogram[0]["from_us"], run["p50_us"])
        self.assertGreaterEqual(histogram[-1]["to_us"], run["max_us"])
        text = self.succeed("predict", DATA / "dense.keras", "x.npy", "--repeat", "3", "--latency", "-o", "y.npy").out
        self.assertRegex(text, r"pauses of the machine itself: [\d.]+/s of [\d.]+ us, [\d.]+ % of the time")
        self.assertRegex(text, r"p50 [\d.]+ us   p90 [\d.]+ us   p99 [\d.]+ us   max [\d.]+ us")
        self.assertEqual(np.load(self.folder / "y.npy").shape, (1, 3))
        for locale, full in {"C": "#", "C.UTF-8": "█"}.items():
            text = self.succeed("predict", DATA / "dense.keras", "x.npy", "--repeat", "500", "--latency", environment={"LC_ALL": locale}).out
            bars = re.findall(r"^ *[\d.]+ - +[\d.]+ us +(\d+)(  .+)?$", text, re.M)
            self.assertEqual(sum(int(count) for count, _ in bars), 500)
            self.assertTrue(all(len(line) <= 80 for line in text.splitlines()))
            longest = max(bars, key=lambda bar: int(bar[0]))[1].strip()
            self.assertEqual(set(longest), {full})
            self.assertTrue(all((int(count) > 0) == bool(bar.strip()) for count, bar in bars), text)
        np.save(self.folder / "none.npy", x[:0])
        self.refuse(1, "--latency needs at least one sample", "predict", DATA / "dense.keras", "none.npy", "--latency")


class Warnings(program.ProgramTest):
    def test_a_first_row_that_counts_may_be_a_header(self):
        (self.folder / "x.csv").write_text("0,1,2,3\n5,6,7,8\n")
        run = self.run_program("predict", DATA / "dense.keras", "x.csv", "-o", "y.npy")
        self.assertEqual(run.code, 0)
        self.assertRegex(run.err, r"^tutti: warning: \[csv\] 'x.csv': its first row is 0, 1, 2, .* hint: --header yes .*\n$")
        self.assertEqual(np.load(self.folder / "y.npy").shape, (2, 3))
        self.succeed("predict", DATA / "dense.keras", "x.csv", "-o", "y.npy", "--quiet")
        self.succeed("predict", DATA / "dense.keras", "x.csv", "-o", "y.npy", "--header", "no")
        self.succeed("predict", DATA / "dense.keras", "x.csv", "-o", "y.npy", "--header", "yes")
        self.assertEqual(np.load(self.folder / "y.npy").shape, (1, 3))


class Refusals(program.ProgramTest):
    def test_shapes_that_do_not_fit_name_the_input(self):
        np.save(self.folder / "x.npy", np.zeros((2, 5), "float64"))
        self.refuse(1, "[input] input 'features' expects float32 (samples, 4); 'x.npy' is float64 [2, 5]", "predict", DATA / "dense.keras", "x.npy")
        np.save(self.folder / "t.npy", np.zeros((2, 7, 3), "float32"))
        self.refuse(1, "input 'series' expects float32 (samples, any, 2); 't.npy' is float32 [2, 7, 3]", "predict", DATA / "open_time.keras", "t.npy")

    def test_several_inputs_need_names(self):
        np.save(self.folder / "x.npy", np.zeros((2, 5), "float64"))
        (self.folder / "x.csv").write_text("1,2,3,4,5\n")
        for source in ("x.npy", "x.csv"):
            self.refuse(1, "the model has 2 inputs ('a', 'b')", "predict", DATA / "two_by_two.keras", source)
        np.savez(self.folder / "x.npz", a=np.zeros((2, 3)), bb=np.zeros((2, 2)))
        self.refuse(1, "no array 'b' in 'x.npz'; it has 'a', 'bb' (did you mean 'a'", "predict", DATA / "two_by_two.keras", "x.npz")

    def test_two_outputs_do_not_fit_in_an_npy(self):
        self.refuse(1, "the model has 2 outputs and 'y.npy' holds one array", "predict", DATA / "two_by_two.keras", DATA / "two_by_two_in.npz", "-o", "y.npy")

    def test_nothing_is_written_over_the_input(self):
        np.save(self.folder / "x.npy", np.ones((2, 4), "float32"))
        (self.folder / "link.npy").symlink_to("x.npy")
        self.refuse(2, "'link.npy' is the input, and results would be written over it", "predict", "m.keras", "x.npy", "-o", "link.npy")

    def test_what_is_no_data(self):
        (self.folder / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n")
        (self.folder / "x.npy").write_text("1,2\n")
        (self.folder / "photos").mkdir()
        (self.folder / "x.csv.gz").write_bytes(gzip.compress(b"1,2,3,4\n"))
        with zipfile.ZipFile(self.folder / "photos.zip", "w") as archive:
            archive.writestr("a.png", b"")
        packed = {"x.csv.gz": "'x.csv.gz' is compressed; hint: unpack it first", "photos.zip": "without arrays; hint: an .npz has .npy files in it"}
        for name, message in (packed | {"photo.png": "is an image", "x.npy": "not an .npy file", "photos": "is a folder", DATA / "dense.keras": "is a model"}).items():
            self.refuse(1, message, "predict", DATA / "dense.keras", name)

    def test_a_folder_is_no_model(self):
        (self.folder / "saved").mkdir()
        self.refuse(1, "'saved': it is a directory; hint: TensorFlow's SavedModel is not read", "predict", "saved", DATA / "dense_in.npz")
        (self.folder / "saved" / "model.weights.h5").touch()
        self.refuse(1, "'saved': it is a directory; hint: its files in a zip are a .keras file: save_model(..., zipped=True)", "inspect", "saved")

    def test_an_archive_that_is_packed_otherwise_is_named(self):
        with zipfile.ZipFile(self.folder / "x.npz", "w", zipfile.ZIP_BZIP2) as archive, archive.open("features.npy", "w") as member:
            np.save(member, np.zeros((2, 4), "float32"))
        self.refuse(1, "x.npz: [zip] member 'features.npy' is packed with method 12", "predict", DATA / "dense.keras", "x.npz")

    def test_a_mistake_late_in_a_csv_leaves_no_output(self):
        (self.folder / "x.csv").write_text("1,2,3,4\n" * 500 + "1,2,x,4\n")
        self.refuse(1, "x.csv: line 501, column 3: is not a number", "predict", DATA / "dense.keras", "x.csv", "-o", "y.csv")
        self.assertFalse((self.folder / "y.csv").exists())

    def test_a_model_with_problems_lists_all_of_them(self):
        run = self.refuse(1, "'double'", "predict", DATA / "refused.keras", DATA / "dense_in.npz", "-o", "y.npy")
        self.assertIn("'increment'", run.err)

    def test_a_pickle_is_never_read(self):
        np.save(self.folder / "x.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
        self.refuse(1, "pickles are never read", "predict", DATA / "dense.keras", "x.npy")


class Size(program.ProgramTest):
    def test_a_file_larger_than_the_memory_used(self):
        rows = 800  # 160 MB of float32, a sparse file
        array = np.lib.format.open_memmap(self.folder / "x.npy", "w+", "float32", (rows, 50000))
        array[-1] = inputs_of("wide")["wide"][0]
        del array
        self.succeed("predict", DATA / "wide.keras", "x.npy", "-o", "y.npy", "--batch", "16", memory_mib=120)
        (wanted,) = np.load(DATA / "wide_out.npz").values()
        out = np.load(self.folder / "y.npy")
        self.assertEqual(out.shape, (rows, 1))
        np.testing.assert_allclose(out[-1], wanted[0], 1e-4, 1e-5)

    def test_hostile_sizes_cost_neither_time_nor_memory(self):
        def npy(dictionary):
            text = dictionary.encode() + b"\n"
            return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text

        (self.folder / "huge.npy").write_bytes(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 4), }"))
        (self.folder / "product.npy").write_bytes(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4294967296), }"))
        (self.folder / "header.npy").write_bytes(b"\x93NUMPY\x02\x00\xff\xff\xff\xff")
        (self.folder / "row.csv").write_bytes(b"1," * (20 << 20))
        np.savez_compressed(self.folder / "bomb.npz", features=np.zeros((10 << 20, 4), "float32"))
        messages = {
            "huge.npy": "needs 16000000000000 bytes of data; the file has 0",
            "product.npy": "which no file can hold",
            "header.npy": "a header has at most",
            "row.csv": "line 1 has more than 1048576 fields",
            "bomb.npz": "beyond what is allowed",
        }
        for name, message in messages.items():
            self.refuse(1, message, "predict", DATA / "dense.keras", name, memory_mib=256)


if __name__ == "__main__":
    program.main()
