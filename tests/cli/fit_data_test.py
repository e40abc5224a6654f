"""What jobs are trained by: columns of a .csv, .npz by name, images by class, windows of a series, and files that are not held in memory."""

import struct
import subprocess
import zlib

import numpy as np

from fit_jobs import FitTest, columns, keras, layers
from program import main


def write_png(path, pixels):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


class FitData(FitTest):
    def job(self, keys, name="a", loss="sparse_categorical_crossentropy"):
        return f'[[job]]\nname = "{name}"\nmodel = "a.keras"\nloss = "{loss}"\noptimizer = "sgd"\nshuffle = false\nepochs = 2\nbatch_size = 16\n{keys}\n'

    def trained(self, x, y, loss="sparse_categorical_crossentropy", **options):
        net = keras.models.load_model(self.folder / "a.keras")
        net.compile(loss=loss, optimizer="sgd")
        return net.fit(x, y, epochs=2, batch_size=16, shuffle=False, verbose=0, **options).history

    def write_csv(self, name, header, rows):
        (self.folder / name).write_text(",".join(header) + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))

    def test_columns_of_a_csv_by_name(self):
        self.save(keras.Sequential([keras.Input((3,)), layers.Dense(3, "softmax")]))
        names = np.array(["cat", "dog", "eel"])[self.y]
        self.write_csv("d.csv", ["kind", "a", "note", "b", "c"], [(n, *x[:1], "x", *x[1:3]) for n, x in zip(names, self.x)])
        expected = self.trained(self.x[:, :3], self.y)
        chosen = 'x = { file = "d.csv", columns = ["a", "b", "c"] }\n'
        self.run_jobs(
            self.job(chosen + 'y = { file = "d.csv", columns = "kind", classes = true }', "found")
            + self.job(chosen + 'y = { columns = ["kind"], classes = ["cat", "dog", "eel"] }', "given")
            + self.job('x = { file = "d.csv", columns = [1, 3, 4] }\ny = "y.npy"', "places")
        )
        for name in ("found", "given", "places"):
            self.expect_history(expected, name)
        self.assertEqual((self.folder / "out/found/labels.txt").read_text(), "cat\ndog\neel\n")
        # What is not the target is the input.
        self.write_csv("e.csv", ["a", "b", "kind", "c"], [(*x[:2], y, x[2]) for x, y in zip(self.x, self.y)])
        self.run_jobs(self.job('x = "e.csv"\ny = { columns = ["kind"] }', "rest"))
        self.expect_history(expected, "rest")
        for keys, words in {
            chosen.replace('"b"', '"bb"') + 'y = "y.npy"': "did you mean",
            chosen + 'y = { columns = ["kind"] }': "line 2, column 1 ('kind'): holds 'dog'" if names[0] == "dog" else "which is no number",
            chosen + 'y = { columns = ["kind"], classes = ["cat", "dog", "eels"] }': "did you mean 'eels'",
            chosen.replace('"b"', '"note"') + 'y = { columns = ["kind"], classes = true }': "holds 'x', which is no number; hint: columns = [...] chooses those of numbers",
            chosen.replace("columns", "colums") + 'y = "y.npy"': "did you mean 'columns'",
            chosen.replace("columns", "lags") + 'y = "y.npy"': "'lags' is no option",
        }.items():
            self.refuse_jobs(self.job(keys), words)
        self.write_csv("f.csv", ["a", "b", "b", "kind"], [(*x[:3], "" if i == 7 else "cat") for i, x in enumerate(self.x)])
        (self.folder / "g.csv").write_text("a|b|c|kind\n" + "1|2|3|4\n" * 5)
        for keys, words in {
            'x = { file = "f.csv", columns = ["a", "b"] }\ny = "y.npy"': "'f.csv' has 2 columns 'b'; hint: by place",
            'x = { file = "f.csv", columns = [0, 1, 2] }\ny = { columns = ["kind"], classes = true }': "line 9, column 4 ('kind'): is empty",
            'x = "g.csv"\ny = { columns = ["kind"] }': "hint: fields are separated by commas",
        }.items():
            self.refuse_jobs(self.job(keys), words)

    def test_several_inputs_and_outputs_from_columns_and_arrays(self):
        a, b = keras.Input((2,), name="a"), keras.Input((1,), name="b")
        both = layers.Concatenate()([layers.Dense(3)(a), b])
        self.save(keras.Model({"a": a, "b": b}, {"p": layers.Dense(1, name="p")(both), "q": layers.Dense(2, name="q")(both)}))
        x, targets = {"a": self.x[:, :2], "b": self.x[:, 2:3]}, {"p": self.x[:, 3:4], "q": self.x[:, 4:]}
        expected = self.trained(x, targets, "mse")
        self.write_csv("d.csv", list("uvwxyz"), self.x)
        np.savez(self.folder / "x.npz", **x)
        np.savez(self.folder / "y.npz", **targets)
        np.savez(self.folder / "all.npz", a1=x["a"], b1=x["b"], p1=targets["p"], q1=targets["q"])
        self.run_jobs(
            self.job('x = { file = "d.csv", columns = { a = ["u", "v"], b = ["w"] } }\ny = { columns = { p = ["x"], q = ["y", "z"] } }', "csv", "mse")
            + self.job('x = "x.npz"\ny = "y.npz"', "npz", "mse")
            + self.job('x = { file = "all.npz", arrays = { a = "a1", b = "b1" } }\ny = { arrays = { p = "p1", q = "q1" } }', "chosen", "mse")
        )
        for name in ("csv", "npz", "chosen"):
            self.assertEqual(self.history(name)["loss"], self.history("csv")["loss"])
            self.expect_close(self.history(name)["loss"], expected["loss"])
        self.refuse_jobs(self.job('x = { file = "d.csv", columns = { a = ["u", "v"], c = ["w"] } }\ny = "y.npz"', loss="mse"), "did you mean")

    def test_outputs_of_a_dictionary_go_by_its_keys(self):
        x = keras.Input((6,))
        net = keras.Model(x, {"size": layers.Dense(1, name="s")(x), "kind": layers.Dense(3, "softmax", name="k")(x)})
        compiled = dict(loss={"size": "mse", "kind": "sparse_categorical_crossentropy"}, loss_weights={"size": 0.3, "kind": 2.0}, metrics={"kind": ["accuracy"], "size": ["mae"]})
        net.compile(optimizer="sgd", **compiled)
        self.save(net)
        targets = {"size": self.x[:, :1], "kind": self.y}
        np.savez(self.folder / "y.npz", **targets)
        job = '[[job]]\nname = "{}"\nmodel = "a.keras"\nx = "x.npy"\ny = "y.npz"\nshuffle = false\nepochs = 2\nbatch_size = 16\n'
        words = 'loss = { size = "mse", kind = "sparse_categorical_crossentropy" }\nloss_weights = { size = 0.3, kind = 2.0 }\nmetrics = { kind = ["accuracy"], size = ["mae"] }\noptimizer = "sgd"\n'
        self.run_jobs(job.format("file") + job.format("told") + words)
        history = net.fit(self.x, targets, epochs=2, batch_size=16, shuffle=False, verbose=0).history
        for name in ("file", "told"):
            self.assertEqual(set(self.history(name)), {"epoch", *history})
            self.expect_history(history, name)

    def test_outputs_without_a_loss_need_no_targets(self):
        x = keras.Input((6,))
        hidden = layers.Dense(4, "tanh", name="code")(x)
        self.save(keras.Model(x, {"code": hidden, "kind": layers.Dense(3, "softmax", name="k")(hidden), "size": layers.Dense(1, name="s")(hidden)}))
        compiled = {"kind": "sparse_categorical_crossentropy", "size": "mse"}
        net = keras.models.load_model(self.folder / "a.keras")
        net.compile(loss=compiled, optimizer="sgd")
        targets = {"kind": self.y, "size": self.x[:, :1]}
        expected = net.fit(self.x, targets, epochs=2, batch_size=16, shuffle=False, verbose=0).history
        np.savez(self.folder / "y.npz", **targets)
        self.write_csv("y.csv", ["kind", "size"], zip(self.y, self.x[:, 0]))
        job = '[[job]]\nname = "{}"\nmodel = "a.keras"\nx = "x.npy"\n{}\noptimizer = "sgd"\nshuffle = false\nepochs = 2\nbatch_size = 16\n'
        loss = '\nloss = { kind = "sparse_categorical_crossentropy", size = "mse" }'
        one = '\nloss = { kind = "sparse_categorical_crossentropy" }\nmetrics = { kind = ["accuracy"] }'
        self.run_jobs(
            job.format("npz", 'y = "y.npz"' + loss)
            + job.format("csv", 'y = { file = "y.csv", columns = { kind = ["kind"], size = ["size"] } }' + loss)
            + job.format("chosen", 'y = { file = "y.npz", arrays = { kind = "kind" } }\nvalidation_split = 0.2' + one)
            + job.format("npy", 'y = "y.npy"\nvalidation_split = 0.2' + one)
        )
        for name in ("npz", "csv"):
            self.expect_history(expected, name)
        net = keras.models.load_model(self.folder / "a.keras")
        net = keras.Model(net.inputs, net.outputs[1])
        net.compile(loss="sparse_categorical_crossentropy", optimizer="sgd")
        expected = net.fit(self.x, self.y, epochs=2, batch_size=16, shuffle=False, verbose=0, validation_split=0.2).history
        for name in ("chosen", "npy"):
            self.expect_history(expected, name)
            self.assertIn("val_kind_accuracy", self.history(name))
        for keys, words in {
            'y = "y.npz"' + loss.replace(" }", ', code = "mse" }'): "no array 'code' in 'y.npz'",
            'y = "y.npz"' + loss + '\nmetrics = { code = ["mae"] }': "no array 'code' in 'y.npz'",
            'y = { file = "y.npz", arrays = { size = "size" } }' + loss: "'arrays' has none for 'kind'",
            'y = "y.npy"' + loss: "the model has 3 outputs; 'y.npy' holds one array",
        }.items():
            self.refuse_jobs(job.format("bad", keys), words)

    def test_weights_are_columns_of_the_same_file(self):
        self.save(keras.Sequential([keras.Input((3,)), layers.Dense(3, "softmax")]))
        weight = np.random.default_rng(1).random(50).astype("float32")
        self.write_csv("d.csv", ["a", "b", "c", "kind", "w"], [(*x[:3], y, w) for x, y, w in zip(self.x, self.y, weight)])
        self.run_jobs(self.job('x = { file = "d.csv", columns = ["a", "b", "c"] }\ny = { columns = ["kind"] }\nsample_weight = { columns = ["w"] }'))
        self.expect_history(self.trained(self.x[:, :3], self.y, sample_weight=weight))

    def images(self, folder, count=30):
        random = np.random.default_rng(5)
        for name, shade in {"dark": 40, "light": 200}.items():
            (self.folder / folder / name).mkdir(parents=True)
            for i in range(count // 2):
                pixels = np.clip(random.normal(shade, 30, (10, 12, 3)), 0, 255).astype("uint8")
                write_png(self.folder / folder / name / f"{i:02}.png", pixels)

    def test_images_by_class(self):
        self.images("photos")
        self.save(keras.Sequential([keras.Input((64, 64, 3)), layers.Rescaling(1 / 255), layers.Flatten(), layers.Dense(2, "softmax")]))
        data = keras.utils.image_dataset_from_directory(self.folder / "photos", image_size=(64, 64), shuffle=False, batch_size=None)
        x = np.stack([np.array(image) for image, _ in data])
        y = np.array([int(label) for _, label in data])
        expected = self.trained(x, y)
        jobs = self.job('x = "photos"', "plain") + self.job('x = { folder = "photos", label_mode = "int" }', "table")
        self.run_jobs(jobs)
        self.expect_history(expected, "plain")
        self.expect_history(expected, "table")
        self.assertEqual((self.folder / "out/plain/labels.txt").read_text(), "dark\nlight\n")
        # Read while it is trained by, the same bits.
        self.succeed("fit", "jobs.toml", "--out", "streamed", "--data-memory", "1")
        self.assertEqual(columns(self.folder / "streamed/plain/history.csv"), self.history("plain"))
        # Classes as the loss wants them, a split that has some of each, and the same options as predict's images.
        self.run_jobs(
            self.job('x = { folder = "photos", scale = "1/255", mean = [0.5, 0.5, 0.5], resize = "nearest" }\nvalidation_split = 0.3', "hot", "categorical_crossentropy")
            + self.job('x = "photos"\nvalidation_x = "photos"', "both")
        )
        self.assertIn("val_loss", self.history("hot"))
        self.assertEqual(len(self.history("both")["val_loss"]), 2)
        (self.folder / "val/lihgt").mkdir(parents=True)
        write_png(self.folder / "val/lihgt/0.png", np.zeros((4, 4, 3), "uint8"))
        self.refuse_jobs(self.job('x = "photos"\nvalidation_x = "val"'), "did you mean 'light'")
        self.refuse_jobs(self.job('x = { folder = "photos", resize = "bilinar" }'), "did you mean 'bilinear'")
        self.save(keras.Sequential([keras.Input((None, None, 3)), layers.GlobalAveragePooling2D(), layers.Dense(2, "softmax")]), "any.keras")
        self.refuse_jobs(self.job('x = "photos"').replace("a.keras", "any.keras"), "or size in a job file")
        self.run_jobs(self.job('x = { folder = "photos", size = [12, 10] }').replace("a.keras", "any.keras"))
        # An image that cannot be read stops its job alone, and is named.
        (self.folder / "photos/dark/03.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
        (self.folder / "jobs.toml").write_text(self.job('x = "photos"') + self.job('x = "x.npy"\ny = "y.npy"', "b").replace("a.keras", "b.keras"))
        self.save(keras.Sequential([keras.Input((6,)), layers.Dense(3, "softmax")]), "b.keras")
        run = subprocess.run([self.program, "fit", "jobs.toml", "--out", "bad"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stderr, r"job 'a': \[fit\] step 0: .*photos/dark/03\.png' cannot be read")
        self.assertTrue((self.folder / "bad/b/model.keras").exists())

    def test_jpegs_have_the_pixels_that_keras_trains_by(self):
        """Those of tf.io.decode_image: by the fast DCT, and gray as it lies in the file."""
        import tensorflow as tf

        random = np.random.default_rng(6)
        for name in ("a", "b", "c"):
            (self.folder / "photos" / name).mkdir(parents=True)
            for i in range(8):
                pixels = np.clip(random.normal(128, 60, (20, 24, 3)), 0, 255).astype("uint8")
                (self.folder / f"photos/{name}/{i}.jpg").write_bytes(tf.io.encode_jpeg(pixels, quality=60).numpy())
        for channels, mode in {3: "rgb", 1: "grayscale"}.items():
            self.save(keras.Sequential([keras.Input((16, 16, channels)), layers.Rescaling(1 / 255), layers.Flatten(), layers.Dense(3, "softmax")]))
            data = keras.utils.image_dataset_from_directory(self.folder / "photos", image_size=(16, 16), shuffle=False, batch_size=None, color_mode=mode)
            x = np.stack([np.array(image) for image, _ in data])
            self.run_jobs(self.job('x = "photos"', mode) + self.job('x = { folder = "photos", decode_like = "pil" }', f"{mode}_pil"))
            expected = self.trained(x, np.repeat(np.arange(3), 8))
            self.expect_history(expected, mode, 1e-5)
            self.assertNotAlmostEqual(self.history(f"{mode}_pil")["loss"][0], expected["loss"][0], 4)

    def test_folders_are_classes_as_in_keras(self):
        """An empty one as well, and one that is a link; hidden ones are none. The images of a folder come before those of the folders in it."""
        self.images("photos")
        for i, name in enumerate(("00", "00/deep", "00-b", "Z", ".unseen")):
            inner = self.folder / "photos/dark" / name
            inner.mkdir(exist_ok=True)
            for j, kind in enumerate((".png", ".PNG", "-c.png")):
                write_png(inner / f"{20 - j}{kind}", np.full((4, 4, 3), 40 * i + 10 * j, "uint8"))
        (self.folder / "photos/dark/again").symlink_to(self.folder / "photos/light")
        for name in ("empty", ".hidden"):
            (self.folder / "photos" / name).mkdir()
        write_png(self.folder / "photos/.hidden/0.png", np.zeros((4, 4, 3), "uint8"))
        (self.folder / "photos/light").rename(self.folder / "elsewhere")
        (self.folder / "photos/light").symlink_to(self.folder / "elsewhere")
        self.save(keras.Sequential([keras.Input((8, 8, 3)), layers.Rescaling(1 / 255), layers.Flatten(), layers.Dense(3, "softmax")]))
        data = keras.utils.image_dataset_from_directory(self.folder / "photos", image_size=(8, 8), shuffle=False, batch_size=None)
        expected = self.trained(np.stack([np.array(image) for image, _ in data]), np.array([int(label) for _, label in data]))
        self.run_jobs(self.job('x = "photos"'))
        self.expect_history(expected)
        self.assertEqual((self.folder / "out/a/labels.txt").read_text(), "dark\nempty\nlight\n")
        # Keras would be trained by this one.
        (self.folder / "photos/dark/00/old.BMP").write_bytes(b"BM")
        self.refuse_jobs(self.job('x = "photos"'), "00/old.BMP' is in a folder of a class; images are read from .jpg, .jpeg and .png")

    def test_windows_of_a_series(self):
        time = np.arange(60)
        sales, price = 10 + time * 0.1 + np.sin(time / 3), 3 + np.cos(time / 5)
        self.write_csv("s.csv", ["day", "sales", "price"], [(f"2024-{1 + d // 28:02}-{1 + d % 28:02}", s, p) for d, s, p in zip(time, sales, price)])
        rows = [line.split(",") for line in (self.folder / "s.csv").read_text().splitlines()[1:]]
        self.write_csv("s.csv", ["day", "sales", "price"], [(f"{1990 + i}", *row[1:]) for i, row in enumerate(rows)])
        self.save(keras.Sequential([keras.Input((7, 2)), layers.Flatten(), layers.Dense(3)]))
        scaled = np.stack([(c - c.mean()) / c.std() for c in (sales, price)], -1).astype("float32")
        count = 60 - 7 - 3 + 1
        x = np.stack([scaled[i : i + 7] for i in range(count)])
        y = np.stack([scaled[i + 7 : i + 10, 0] for i in range(count)])
        keys = 'x = { file = "s.csv", target = "sales", features = ["price"], horizon = 3'
        self.run_jobs(self.job(keys + " }", "all", "mse") + self.job(keys + ', stride = 2, scale = "none" }', "few", "mse") + self.job(keys + " }\nvalidation_split = 0.25", "split", "mse"))
        self.expect_history(self.trained(x, y, "mse"), "all", 2e-3)
        raw = np.stack([sales, price], -1).astype("float32")
        self.expect_history(self.trained(np.stack([raw[i : i + 7] for i in range(0, count, 2)]), np.stack([raw[i + 7 : i + 10, 0] for i in range(0, count, 2)]), "mse"), "few", 2e-3)
        self.assertIn("val_loss", self.history("split"))
        self.refuse_jobs(self.job(keys.replace("3", "55") + " }", loss="mse"), "has 60 values")
        self.refuse_jobs(self.job(keys.replace('"sales"', '"sale"') + " }", loss="mse"), "sale")

    def test_data_larger_than_the_memory_for_them_are_read_as_they_are_needed(self):
        rows, width = 40_000, 200  # 32 MB
        random = np.random.default_rng(1)
        x = random.standard_normal((rows, width)).astype("float32")
        np.save(self.folder / "big.npy", x)
        np.save(self.folder / "big64.npy", x.astype("float64")[:2000])
        np.save(self.folder / "target.npy", x[:, :1])
        net = keras.Sequential([keras.Input((width,)), layers.Dense(1)])
        self.save(net)
        job = '[[job]]\nname = "{}"\nmodel = "a.keras"\nx = "{}"\ny = "target.npy"\nloss = "mse"\noptimizer = "sgd"\nbatch_size = 64\nepochs = {}\nvalidation_split = 0.1\n'
        np.save(self.folder / "target.npy", x[:, :1])
        (self.folder / "jobs.toml").write_text(job.format("a", "big.npy", 2))
        for out, options in {"held": (), "read": ("--data-memory", "1")}.items():
            self.succeed("fit", "jobs.toml", "--out", out, "--log-steps", *options)
        losses = [columns(self.folder / f"{out}/a/steps.csv")["loss"] for out in ("held", "read")]
        self.assertEqual(len(losses[0]), 2 * 563)
        self.assertEqual(*losses)
        self.assertEqual(*(columns(self.folder / f"{out}/a/history.csv")["val_loss"] for out in ("held", "read")))
        # A file that shrinks meanwhile is an error, not a crash.
        (self.folder / "jobs.toml").write_text(job.format("a", "big.npy", 1000))
        child = subprocess.Popen([self.program, "fit", "jobs.toml", "--out", "cut", "--data-memory", "1"], cwd=self.folder, stderr=subprocess.PIPE, text=True)
        try:
            child.wait(timeout=1)
        except subprocess.TimeoutExpired:
            pass
        with open(self.folder / "big.npy", "r+b") as file:
            file.truncate(1 << 20)
        self.assertEqual(child.wait(timeout=60), 1)
        self.assertRegex(child.stderr.read(), r"job 'a': \[fit\] step \d+: ")

    def test_a_csv_larger_than_the_memory_for_it_is_trained_by_all_the_same(self):
        rows, width = (10_000 if self.sanitized else 80_000), 40  # 12.8 MB of floats
        x = np.random.default_rng(2).integers(-99, 100, (rows, width))
        names = np.array(["even", "odd"])[x[:, 0] % 2]
        with open(self.folder / "big.csv", "w") as file:
            file.write(",".join([*(f"c{i}" for i in range(width)), "kind"]) + "\n")
            file.writelines(",".join(map(str, row)) + f",{name}\n" for row, name in zip(x.tolist(), names))
        self.save(keras.Sequential([keras.Input((width,)), layers.Rescaling(0.01), layers.Dense(2, "softmax")]))
        keys = 'x = "big.csv"\ny = {{ columns = ["kind"], classes = true, label_mode = "{}" }}\nvalidation_split = 0.1'
        jobs = self.job(keys.format("int")) + self.job(keys.format("categorical"), "hot", "categorical_crossentropy")
        (self.folder / "jobs.toml").write_text(jobs.replace("batch_size = 16", "batch_size = 500").replace("shuffle = false", "shuffle = true"))
        words = "import resource,subprocess,sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        used = {}
        for out, options in {"held": (), "stored": ("--data-memory", "1")}.items():
            child = subprocess.run(["python3", "-c", words, self.program, "fit", "jobs.toml", "--out", out, *options], cwd=self.folder, capture_output=True, text=True, check=True)
            used[out] = int(child.stdout) / 1024
        for name in ("a", "hot"):
            self.assertEqual(*(columns(self.folder / f"{out}/{name}/history.csv") for out in ("held", "stored")))
        self.assertEqual(sorted(p.name for p in (self.folder / "stored").iterdir()), ["a", "hot", "report.html"])
        if not self.sanitized:
            self.assertLess(used["stored"], used["held"] - 8)  # MB

    def test_jobs_that_share_a_file_hold_it_once(self):
        rows, width = 20_000, 100  # 8 MB, and 40 jobs
        x = np.random.default_rng(1).standard_normal((rows, width)).astype("float32")
        self.save_arrays(x=x, y=x[:, :1])
        self.run_program("fit", "jobs.toml", "--out", "out")
        text = '[[sweep]]\nname = "s"\nbuild = "dense 1"\ninput = [100]\nx = "x.npy"\ny = "y.npy"\nloss = "mse"\nbatch_size = 1000\nsteps_per_epoch = 2\n' + f"vary = {{ seed = {list(range(40))} }}\n"
        (self.folder / "jobs.toml").write_text(text)
        self.succeed("fit", "jobs.toml", "--out", "out", memory_mib=1500)
        child = subprocess.run(["/usr/bin/env", "python3", "-c", "import resource,subprocess,sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)", self.program, "fit", "jobs.toml", "--out", "again"], cwd=self.folder, capture_output=True, text=True, check=True)
        if not self.sanitized:
            self.assertLess(int(child.stdout) / 1024, 200)  # MB; 40 copies are 320


if __name__ == "__main__":
    main()
