"""predict in bulk. Images against what Keras predicted (make_photos.py): sources, options, order, faults, resuming."""

import csv
import io
import json
import os
import pathlib
import resource
import shutil
import signal
import statistics
import subprocess
import tarfile
import time

import numpy as np
import program

DATA = program.ROOT / "build" / "test_data" / "cli_photos"
EXPECTED = np.load(DATA / "expected.npz")
NAMES = [str(name) for name in EXPECTED["names"]]
MODEL = DATA / "conv.keras"
DENSE = program.DATA / "dense.keras"


class BulkTest(program.ProgramTest):
    def run_bulk(self, *arguments, stdin=None, code=0, limit_bytes=None):
        """Runs predict; unlike other verbs it warns of each item that failed. Gives the process's (out, err)."""

        def limit():
            if limit_bytes:
                signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it, shells do not
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))

        run = subprocess.run([self.program, "predict", *map(str, arguments)], cwd=self.folder, input=stdin, capture_output=True, timeout=120, text=True, preexec_fn=limit)
        self.assertEqual(run.returncode, code, run.stderr)
        errors = [line for line in run.stderr.splitlines() if not line.startswith("tutti: warning: ")]
        self.assertEqual(len(errors), 1 if code else 0, run.stderr)
        if code:
            self.assertTrue(errors[0].startswith("tutti: error: ["), run.stderr)
        return run.stdout, run.stderr

    def close(self, found, key="", rows=slice(None)):
        np.testing.assert_allclose(found, EXPECTED[f"y{key}"][rows], 1e-4, 1e-3)

    def left_over(self):
        return sorted(p.name for p in self.folder.iterdir() if ".resume" in p.name or ".part" in p.name)

    def photos(self, bad=None):
        """A copy of the photos, some files replaced: {name: bytes, or None to remove}."""
        folder = self.folder / "photos"
        shutil.copytree(DATA / "photos", folder)
        for name, data in (bad or {}).items():
            (folder / name).write_bytes(data)
        return folder


class Sources(BulkTest):
    def test_a_folder_in_the_order_of_its_paths(self):
        self.run_bulk(MODEL, DATA / "photos", "-o", "y.csv")
        rows = list(csv.reader(io.StringIO((self.folder / "y.csv").read_text())))
        self.assertEqual(rows[0], ["path", "scores_0", "scores_1", "scores_2"])
        self.assertEqual([row[0] for row in rows[1:]], sorted(NAMES))
        self.close(np.array([row[1:] for row in rows[1:]], "float32"))
        self.assertEqual(self.left_over(), [])

    def test_every_format_holds_the_same(self):
        for suffix in ("npy", "npz", "csv", "jsonl"):
            self.run_bulk(MODEL, DATA / "photos", "-o", f"y.{suffix}")
        rows = np.load(self.folder / "y.npy")
        self.close(rows)
        np.testing.assert_array_equal(np.load(self.folder / "y.npz")["scores"], rows)
        np.testing.assert_array_equal(np.array([r[1:] for r in csv.reader(io.StringIO((self.folder / "y.csv").read_text()))][1:], "float32"), rows)
        lines = [json.loads(line) for line in (self.folder / "y.jsonl").read_text().splitlines()]
        self.assertEqual([line["path"] for line in lines], NAMES)
        np.testing.assert_array_equal(np.array([line["scores"] for line in lines], "float32"), rows)

    def test_an_image_a_list_a_stream_and_an_archive(self):
        self.run_bulk(MODEL, DATA / "photos" / NAMES[3], "-o", "one.npy")
        self.close(np.load(self.folder / "one.npy"), rows=slice(3, 4))
        order = [7, 3, 7, 40]
        text = "".join(f"{DATA / 'photos' / NAMES[i]}\n" for i in order)
        (self.folder / "list.txt").write_text(text)
        self.run_bulk(MODEL, "--files", "list.txt", "-o", "list.npy")
        self.run_bulk(MODEL, "--files", "-", "-o", "stream.npy", stdin=text)
        for name in ("list.npy", "stream.npy"):
            self.close(np.load(self.folder / name), rows=order)
        with tarfile.open(self.folder / "a.tar", "w") as archive:
            for i in order:
                archive.add(DATA / "photos" / NAMES[i], f"{'x' * 120}/{i}.{NAMES[i][-3:]}")
                archive.add(DATA / "expected.npz", f"{i}.json")
        self.run_bulk(MODEL, "a.tar", "-o", "tar.csv")
        rows = list(csv.reader(io.StringIO((self.folder / "tar.csv").read_text())))[1:]
        self.assertEqual([row[0] for row in rows], [f"{'x' * 120}/{i}.{NAMES[i][-3:]}" for i in order])
        self.close(np.array([row[1:] for row in rows], "float32"), rows=order)

    def test_a_batch_does_not_wait_for_a_stream_that_pauses(self):
        child = subprocess.Popen([self.program, "predict", MODEL, "--files", "-", "--json", "--max-wait", "20"], cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for i in (1, 2):
            print(DATA / "photos" / NAMES[i], file=child.stdin, flush=True)
            time.sleep(0.5)
        out, _ = child.communicate(timeout=60)
        (device,) = [stage for stage in json.loads(out)["stages"] if stage["name"] == "device"]
        self.assertEqual(device["items"], 2)

    def test_without_an_output_a_table_or_json(self):
        out, _ = self.run_bulk(MODEL, DATA / "photos")
        self.assertEqual(out.splitlines()[0].split(), ["PATH", "scores", "[3]"])
        self.assertIn(NAMES[0], out)
        self.assertIn(f"and {len(NAMES) - 10} more", out)
        out, _ = self.run_bulk(MODEL, DATA / "photos", "--json")
        found = json.loads(out)
        self.close(np.array([one["scores"] for one in found["predictions"]], "float32"))
        self.assertEqual(found["samples"], len(NAMES))
        self.assertEqual([stage["name"] for stage in found["stages"]], ["source", "workers", "device", "writer"])
        self.assertEqual(found["stages"][1]["items"], len(NAMES))

    def test_no_images_give_an_empty_result(self):
        (self.folder / "none").mkdir()
        (self.folder / "none" / "scan.tiff").write_bytes(b"II*\0")
        _, err = self.run_bulk(MODEL, "none", "-o", "y.npy")
        self.assertEqual(np.load(self.folder / "y.npy").shape, (0, 3))
        self.assertIn("tutti: warning: [input] 'none' has no images", err)


class Preprocessing(BulkTest):
    def test_options_do_what_keras_does(self):
        for key in EXPECTED.files:
            if key not in ("names", "ygray"):
                with self.subTest(key[1:]):
                    self.run_bulk(MODEL, DATA / "photos", "-o", "y.npy", *key[1:].split())
                    self.close(np.load(self.folder / "y.npy"), key[1:])

    def test_one_channel_is_gray(self):
        for options in ([], ["--channels", "gray"]):
            self.run_bulk(DATA / "gray.keras", DATA / "photos", "-o", "y.npy", *options)
            self.close(np.load(self.folder / "y.npy"), "gray")

    def test_a_model_of_any_size_is_told_one(self):
        self.run_bulk(DATA / "any.keras", DATA / "photos", "--size", "24x20", "-o", "y.npy")
        self.close(np.load(self.folder / "y.npy"))
        self.refuse(1, "hint: --size HEIGHTxWIDTH", "predict", DATA / "any.keras", DATA / "photos")

    def test_pillows_resizing_is_another(self):
        self.run_bulk(MODEL, DATA / "photos", "-o", "y.npy", "--resize-like", "pil")
        difference = np.abs(np.load(self.folder / "y.npy") - EXPECTED["y"])
        self.assertGreater(difference.max(), 0.01)
        self.assertLess(difference.max(), 10)

    def test_workers_queues_and_batches_change_no_bit(self):
        self.run_bulk(MODEL, DATA / "photos", "-o", "y.csv")
        wanted = (self.folder / "y.csv").read_bytes()
        for options in ("--workers 1 --queue 1", "--workers 8", "--batch 7 --workers 2 --queue 3", "--batch 1", "--threads 1"):
            self.run_bulk(MODEL, DATA / "photos", "-o", "z.csv", *options.split())
            self.assertEqual((self.folder / "z.csv").read_bytes(), wanted, options)

    def test_labels(self):
        (self.folder / "labels.txt").write_text("cat\ndog, big\nbird\n")
        self.run_bulk(MODEL, DATA / "photos", "-o", "y.csv", "--labels", "labels.txt", "--top", "2")
        rows = list(csv.reader(io.StringIO((self.folder / "y.csv").read_text())))
        self.assertEqual(rows[0], ["path", "label_1", "score_1", "label_2", "score_2"])
        best = EXPECTED["y"].argsort(1)[:, ::-1]
        self.assertEqual([row[1] for row in rows[1:]], [["cat", "dog, big", "bird"][i] for i in best[:, 0]])
        np.testing.assert_allclose([float(row[4]) for row in rows[1:]], np.take_along_axis(EXPECTED["y"], best[:, 1:2], 1)[:, 0], 1e-4, 1e-3)
        self.run_bulk(MODEL, DATA / "photos", "-o", "y.jsonl", "--top", "1")
        self.assertEqual([json.loads(line)["top"][0]["label"] for line in (self.folder / "y.jsonl").read_text().splitlines()], [str(i) for i in best[:, 0]])
        (self.folder / "labels.txt").write_text("cat\n")
        self.refuse(1, "'labels.txt' has 1 lines; the output 'scores' has 3 classes", "predict", MODEL, DATA / "photos", "--labels", "labels.txt")
        self.refuse(1, "holds numbers, not labels", "predict", MODEL, DATA / "photos", "--top", "1", "-o", "y.npy")

    def test_wrong_options(self):
        for options, message in {
            "--scale x": "--scale takes a number or a fraction",
            "--mean nan": "--mean takes a number or a fraction like 1/255; got 'nan'",
            "--std 1e-50": "--std divides",
            "--mean 1,2": "one for each of the 3 channels; got 2",
            "--std 0": "--std divides",
            "--preprocess resnet5": "no preprocessing 'resnet5' (did you mean",
            "--preprocess tf --scale 2": "give one or the other",
            "--channels gray": "--channels gray is one channel",
            "--size 0x4": "--size takes HEIGHTxWIDTH",
            "--files list.txt": "give one",
        }.items():
            self.refuse(2, message, "predict", MODEL, DATA / "photos", *options.split())
        self.refuse(2, "INPUT is required", "predict", MODEL)
        self.refuse(2, "--scale is for images", "predict", MODEL, DATA / "x.npy", "--scale", "1/255")
        (self.folder / "x.gif").write_bytes(b"GIF89a")
        self.refuse(1, "of images, JPEG and PNG are read", "predict", MODEL, "x.gif", "--scale", "1/255")


class Faults(BulkTest):
    def hostile(self):
        whole = (DATA / "photos" / NAMES[0]).read_bytes()
        png = (DATA / "photos" / NAMES[-1]).read_bytes()
        huge = png[:16] + (1 << 30).to_bytes(4, "big") * 2 + png[24:]
        return {"00.jpg": whole[: len(whole) // 2], "03.jpg": b"", "bad\nname.png": b"GIF89a and so on", "huge.png": huge, "noise.jpg": b"\xff\xd8\xff" + os.urandom(500)}

    def test_bad_images_are_named_marked_and_counted(self):
        bad = self.hostile()
        folder = self.photos(bad)
        os.mkfifo(folder / "pipe.png")
        names = sorted({*NAMES, *bad, "pipe.png"})
        good = [i for i, name in enumerate(names) if name not in bad and name != "pipe.png"]
        kept = [NAMES.index(names[i]) for i in good]
        for suffix in ("csv", "npy", "jsonl"):
            _, err = self.run_bulk(MODEL, "photos", "-o", f"y.{suffix}", code=1)
            self.assertIn(f"6 of {len(names)} images failed", err.splitlines()[-1])
            self.assertEqual(err.count("tutti: warning: "), 6)
            self.assertIn("'bad\\nname.png': [image] JPEG and PNG images are read; by its first bytes this is a GIF", err)
            self.assertIn("'00.jpg': [image] is a broken JPEG", err)
            self.assertIn("'03.jpg': [image] is empty", err)
            self.assertIn("'pipe.png': [file] cannot open", err)
        rows = np.load(self.folder / "y.npy")
        self.close(rows[good], rows=kept)
        self.assertTrue(np.isnan(np.delete(rows, good, 0)).all())
        table = list(csv.reader(io.StringIO((self.folder / "y.csv").read_text())))[1:]
        self.assertEqual([row[0] for row in table], names)
        for i, row in enumerate(table):
            self.assertEqual(len(row), 4)
            if i not in good:
                self.assertTrue(row[1].startswith("error: ") and row[2:] == ["", ""], row)
        lines = [json.loads(line) for line in (self.folder / "y.jsonl").read_text().splitlines()]
        self.assertEqual([i for i, line in enumerate(lines) if "error" not in line], good)
        self.assertEqual(self.left_over(), [])

    def test_a_hundred_of_a_thousand(self):
        """Truncated, changed, empty, foreign, absurdly large: each its own error, every other row right."""
        folder, random = self.folder / "thousand", np.random.default_rng(0)
        folder.mkdir()
        good, kept = [], []
        for i in range(1000):
            source = int(random.integers(len(NAMES)))
            data = (DATA / "photos" / NAMES[source]).read_bytes()
            if i % 10 != 3:
                good.append(i)
                kept.append(source)
            else:
                kind = i // 10 % 5
                broken = bytearray(data[: int(random.integers(1, len(data) - 30))])
                if kind == 1:
                    broken = bytearray(random.bytes(int(random.integers(1, 4000))))
                elif kind == 2:
                    broken = bytearray(b"\xff\xd8\xff\xc0\x00\x11\x08\xff\xff\xff\xff\x03" + random.bytes(50))
                elif kind == 3:
                    broken = bytearray(list(self.hostile().values())[i // 50 % 5])
                data = bytes(broken)
            (folder / f"{i:04}{pathlib.Path(NAMES[source]).suffix}").write_bytes(data)
        _, err = self.run_bulk(MODEL, "thousand", "-o", "y.npy", code=1)
        self.assertIn("100 of 1000 images failed", err.splitlines()[-1])
        named = {line.split("'")[1][:4] for line in err.splitlines()[:-1]}
        self.assertEqual(named, {f"{i:04}" for i in range(3, 1000, 10)})
        rows = np.load(self.folder / "y.npy")
        self.close(rows[good], rows=kept)
        self.assertTrue(np.isnan(np.delete(rows, good, 0)).all())

    def test_the_only_image_is_an_error_of_one_line(self):
        (self.folder / "a.jpg").write_bytes(b"\xff\xd8\xff")
        self.refuse(1, "[predict] 'a.jpg': [image] is a broken JPEG: ", "predict", MODEL, "a.jpg", "-o", "y.npy")
        self.refuse(1, "cannot open 'none.jpg'", "predict", MODEL, "none.jpg", "-o", "y.npy")
        self.assertEqual([p.name for p in self.folder.iterdir()], ["a.jpg"])

    def test_missing_files_of_a_list(self):
        (self.folder / "list.txt").write_text(f"none.jpg\n{DATA / 'photos' / NAMES[0]}\n")
        _, err = self.run_bulk(MODEL, "--files", "list.txt", "-o", "y.npy", code=1)
        self.assertIn("'none.jpg': [file] cannot open 'none.jpg'", err)
        self.close(np.load(self.folder / "y.npy")[1:], rows=slice(0, 1))

    def test_on_error_stop_can_be_resumed(self):
        bad = sorted(NAMES)[20]
        self.photos({bad: b"broken"})
        _, err = self.run_bulk(MODEL, "photos", "-o", "y.npy", "--on-error", "stop", code=1)
        self.assertIn(f"'{bad}': [image]", err)
        self.assertIn("stopped after 20 images", err)
        self.assertFalse((self.folder / "y.npy").exists())
        shutil.copy(DATA / "photos" / bad, self.folder / "photos" / bad)
        out, _ = self.run_bulk(MODEL, "photos", "-o", "y.npy", "--resume", "--json")
        self.assertEqual(json.loads(out)["resumed"], 20)
        self.close(np.load(self.folder / "y.npy"))

    def test_a_broken_archive_keeps_what_came_before(self):
        with tarfile.open(self.folder / "a.tar", "w") as archive:
            for name in NAMES[:9]:
                archive.add(DATA / "photos" / name, name)
        data = (self.folder / "a.tar").read_bytes()
        (self.folder / "a.tar").write_bytes(data[: len(data) // 2])
        _, err = self.run_bulk(MODEL, "a.tar", "-o", "y.npy", "--batch", "2", code=1)
        self.assertIn("[tar] a.tar: ", err)
        (self.folder / "a.tar").write_bytes(data)
        self.run_bulk(MODEL, "a.tar", "-o", "y.npy", "--resume")
        self.close(np.load(self.folder / "y.npy"), rows=slice(0, 9))


class Resuming(BulkTest):
    def setUp(self):
        super().setUp()
        self.photos({"00.jpg": b"broken"})
        text = "".join(f"photos/{name}\n" for name in NAMES) * 60
        (self.folder / "list.txt").write_text(text)
        self.words = [MODEL, "--files", "list.txt", "--batch", "8", "--workers", "2"]

    def interrupt(self, output, number, after):
        child = subprocess.Popen([self.program, "predict", *map(str, self.words), "-o", output, "--resume"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        journal = self.folder / f"{output}.resume.rows"
        while child.poll() is None and not (journal.exists() and journal.stat().st_size >= after):
            time.sleep(0.001)
        child.send_signal(number)
        child.communicate(timeout=60)
        return child.returncode

    def test_a_killed_run_goes_on_and_ends_the_same(self):
        for suffix in ("csv", "npz"):
            self.run_bulk(*self.words, "-o", f"whole.{suffix}", code=1)
            after = 0
            for number in (signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGKILL):
                code = self.interrupt(f"cut.{suffix}", number, after)
                self.assertEqual(code, 130 if number == signal.SIGINT else -9, "the run ended before it was killed")
                self.assertFalse((self.folder / f"cut.{suffix}").exists())
                after = (self.folder / f"cut.{suffix}.resume.rows").stat().st_size + 12 * 100
            with open(self.folder / f"cut.{suffix}.resume", "ab") as journal:
                journal.write(b"half a li")  # as of a kill within a write
            out, _ = self.run_bulk(*self.words, "-o", f"cut.{suffix}", "--resume", "--json", code=1)
            self.assertGreater(json.loads(out)["resumed"], 0)
            self.assertEqual((self.folder / f"cut.{suffix}").read_bytes(), (self.folder / f"whole.{suffix}").read_bytes())
            self.assertEqual(self.left_over(), [])

    def test_ctrl_c_keeps_what_is_finished(self):
        child = subprocess.Popen([self.program, "predict", *map(str, self.words), "-o", "y.csv"], cwd=self.folder, stderr=subprocess.PIPE, text=True)
        while not (self.folder / "y.csv.resume").exists():
            time.sleep(0.001)
        time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 130, err)
        self.assertIn("tutti: error: [interrupted] after ", err)
        self.assertEqual(self.left_over(), ["y.csv.resume", "y.csv.resume.rows"])

    def test_two_signals_end_it(self):
        child = subprocess.Popen([self.program, "predict", str(MODEL), "--files", "-", "-o", "y.csv", "--max-wait", "1"], cwd=self.folder, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        child.stdin.write(f"photos/{NAMES[1]}\n")
        child.stdin.flush()
        while not (self.folder / "y.csv.resume.rows").exists():
            time.sleep(0.001)
        child.send_signal(signal.SIGSTOP)
        child.send_signal(signal.SIGINT)
        child.send_signal(signal.SIGTERM)
        child.send_signal(signal.SIGCONT)
        self.assertIn(child.wait(60), (130, 143))
        child.communicate()

    def test_other_settings_and_other_items_are_refused(self):
        self.interrupt("y.csv", signal.SIGKILL, 1)
        self.refuse(1, 'had scale ""; now it is "1/255"', "predict", *self.words, "-o", "y.csv", "--resume", "--scale", "1/255")
        shutil.copy(MODEL, self.folder / "m.keras")
        words, self.words = self.words, ["m.keras", *self.words[1:]]
        self.interrupt("z.csv", signal.SIGKILL, 1)
        os.utime(self.folder / "m.keras", (1, 1))
        self.refuse(1, "had model's time", "predict", *self.words, "-o", "z.csv", "--resume")
        self.words = words
        (self.folder / "list.txt").write_text("photos/other.jpg\n")
        self.refuse(1, "item 0 is 'photos/other.jpg', and was", "predict", *self.words, "-o", "y.csv", "--resume")

    def test_a_full_disk_is_resumable(self):
        self.run_bulk(*self.words, "-o", "whole.csv", code=1)
        _, err = self.run_bulk(*self.words, "-o", "y.csv", code=1, limit_bytes=10000)
        self.assertIn("cannot write 'y.csv.resume", err)
        self.assertIn("--resume goes on", err)
        self.run_bulk(*self.words, "-o", "y.csv", "--resume", code=1)
        self.assertEqual((self.folder / "y.csv").read_bytes(), (self.folder / "whole.csv").read_bytes())


class Memory(BulkTest):
    """At its peak, with a hundred times as many items: a tenth more at most."""

    def peak(self, *arguments):
        code = "import resource,subprocess,sys; subprocess.run(sys.argv[1:], check=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        run = subprocess.run(["python3", "-c", code, self.program, "predict", *map(str, arguments), "-o", "y.npy"], cwd=self.folder, capture_output=True, text=True, check=True)
        return int(run.stdout)

    def of_images(self, count):
        (self.folder / "list.txt").write_text(f"{DATA / 'photos' / NAMES[0]}\n" * count)
        return self.peak(MODEL, "--files", "list.txt")

    def of_rows(self, count):
        np.save(self.folder / "x.npy", np.ones((count, 4), "float32"))
        return statistics.median(self.peak(DENSE, "x.npy") for _ in range(5))  # of some fifteen megabytes, which differ by a few per cent

    def test_it_does_not_grow_with_the_number_of_items(self):
        if not self.sanitized:
            for peak in (self.of_images, self.of_rows):
                with self.subTest(peak.__name__):
                    self.assertLess(peak(100_000), 1.1 * peak(1000))


if __name__ == "__main__":
    program.main()
