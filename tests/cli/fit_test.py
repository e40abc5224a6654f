"""tutti fit: jobs trained beside Keras itself, files that Keras opens and goes on with, and what happens to jobs that are wrong."""

import json
import re
import subprocess
import sys
import types

import numpy as np

from fit_jobs import FitTest, classifier, columns, job_in_order, keras, layers
from program import main


class Fit(FitTest):
    def test_history_steps_and_weights_are_those_of_keras(self):
        net = self.save(classifier())
        metrics = ["accuracy", "sparse_categorical_crossentropy"]
        keys = f'''
            loss = "sparse_categorical_crossentropy"
            optimizer = {{ name = "adam", learning_rate = 0.01 }}
            metrics = {metrics}
            validation_split = 0.2
        '''
        done = self.run_jobs(job_in_order("a", 3, keys), "--log-steps", "--json")
        net.compile(loss="sparse_categorical_crossentropy", optimizer=keras.optimizers.Adam(0.01), metrics=metrics)
        history = self.history_in_order(net, 3, validation_split=0.2)
        ours = columns(self.folder / "out/a/history.csv")
        self.assertEqual(set(ours), {"epoch", *history})
        for key, values in history.items():
            self.expect_close(ours[key], values)
        self.assertEqual(len(columns(self.folder / "out/a/steps.csv")["loss"]), 9)
        job = json.loads(done.out)["jobs"][0]
        self.assertEqual((job["name"], job["steps"], job["stopped_because"]), ("a", 9, "epochs"))
        self.expect_close(job["loss"], history["loss"][-1])
        opened = keras.models.load_model(self.folder / "out/a/model.keras")
        for a, b in zip(opened.get_weights(), net.get_weights()):
            self.expect_close(a, b, 1e-3)
        # Keras goes on from there, optimizer state included, and we go on from Keras.
        self.expect_close(opened.optimizer.variables[2], net.optimizer.variables[2], 1e-3)
        self.assertEqual(int(opened.optimizer.iterations), 9)
        opened.save(self.folder / "b.keras")
        again = self.history_in_order(net, 2)["loss"]
        self.expect_close(self.history_in_order(opened, 2)["loss"], again)
        self.run_jobs(job_in_order("b", 2))
        self.expect_close(self.history("b")["loss"], again)

    def test_every_option_of_a_job_has_its_effect(self):
        self.save(classifier())
        self.run_jobs(
            """
            [defaults]
            model = "a.keras"
            x = "x.npy"
            y = "y.npy"
            loss = "sparse_categorical_crossentropy"
            batch_size = 20
            shuffle = false
            [[job]]
            name = "schedule"
            optimizer = { name = "sgd", learning_rate = 0.5 }
            schedule = { name = "cosine_decay", decay_steps = 4 }
            epochs = 2
            [[job]]
            name = "accumulation"
            optimizer = { name = "sgd", learning_rate = 0.5 }
            gradient_accumulation_steps = 3
            epochs = 2
            [[job]]
            name = "carried"
            optimizer = "sgd"
            steps_per_epoch = 2
            epochs = 3
            [[job]]
            name = "shuffled"
            optimizer = "sgd"
            shuffle = true
            seed = 5
            epochs = 2
            [[job]]
            name = "averaged"
            optimizer = { name = "sgd", learning_rate = 0.5, use_ema = true, ema_momentum = 0.7 }
            epochs = 2
            """,
            "--log-steps",
        )

        def expected(optimizer, epochs=2):
            net = keras.models.load_model(self.folder / "a.keras")
            net.compile(loss="sparse_categorical_crossentropy", optimizer=optimizer)
            return net, net.fit(self.x, self.y, epochs=epochs, batch_size=20, shuffle=False, verbose=0).history["loss"]

        sgd = keras.optimizers.SGD
        for name, optimizer in {"schedule": sgd(keras.optimizers.schedules.CosineDecay(0.5, 4)), "accumulation": sgd(0.5, gradient_accumulation_steps=3),
                                "averaged": sgd(0.5, use_ema=True, ema_momentum=0.7)}.items():
            net, losses = expected(optimizer)
            self.expect_close(columns(self.folder / f"out/{name}/history.csv")["loss"], losses)
            for a, b in zip(keras.models.load_model(self.folder / f"out/{name}/model.keras").get_weights(), net.get_weights()):
                self.expect_close(a, b, 1e-3)
        # Two steps an epoch over batches of 20, 20, 10: the third epoch begins with the second batch of the second pass.
        plain = columns(self.folder / "out/carried/steps.csv")["loss"]
        net, losses = expected(sgd(), 2)
        self.expect_close([np.average(plain[:3], weights=[20, 20, 10]), np.average(plain[3:6], weights=[20, 20, 10])], losses)
        # Another order, the same every time.
        first = columns(self.folder / "out/shuffled/steps.csv")["loss"]
        self.assertGreater(abs(first[0] - plain[0]), 1e-6)

    def test_the_same_seed_is_the_same_run_with_dropout(self):
        self.save(keras.Sequential([keras.Input((6,)), layers.Dense(16, "relu"), layers.Dropout(0.5), layers.BatchNormalization(), layers.Dense(3)]))
        job = """
            [[job]]
            name = "{}"
            model = "a.keras"
            x = "x.npy"
            y = "y.npy"
            loss = {{ name = "sparse_categorical_crossentropy", from_logits = true }}
            optimizer = "adam"
            epochs = 3
            seed = {}
        """
        self.run_jobs(job.format("a", 1) + job.format("b", 1) + job.format("c", 2), "--log-steps")
        a, b, c = (columns(self.folder / f"out/{name}/steps.csv")["loss"] for name in "abc")
        self.assertEqual(a, b)
        self.assertNotEqual(a, c)
        net = keras.models.load_model(self.folder / "out/a/model.keras")
        moved = [np.abs(w - v).max() for w, v in zip(net.layers[2].get_weights(), keras.models.load_model(self.folder / "a.keras").layers[2].get_weights())]
        self.assertGreater(min(moved), 0)

    def test_early_stopping_stops_and_restores(self):
        self.save(classifier())
        done = self.run_jobs(
            """
            [[job]]
            name = "a"
            model = "a.keras"
            x = "x.npy"
            y = "y.npy"
            loss = "sparse_categorical_crossentropy"
            optimizer = { name = "sgd", learning_rate = 4.0 }
            epochs = 40
            validation_split = 0.3
            shuffle = false
            early_stopping = { monitor = "val_loss", patience = 2, restore_best_weights = true }
            """,
            "--json",
        )
        net = keras.models.load_model(self.folder / "a.keras")
        net.compile(loss="sparse_categorical_crossentropy", optimizer=keras.optimizers.SGD(4.0))
        stop = keras.callbacks.EarlyStopping(patience=2, restore_best_weights=True)
        history = net.fit(self.x, self.y, epochs=40, validation_split=0.3, shuffle=False, verbose=0, callbacks=[stop]).history
        self.expect_close(columns(self.folder / "out/a/history.csv")["val_loss"], history["val_loss"], 1e-2)
        self.assertEqual(json.loads(done.out)["jobs"][0]["stopped_because"], "early_stopping")
        for a, b in zip(keras.models.load_model(self.folder / "out/a/model.keras").get_weights(), net.get_weights()):
            self.expect_close(a, b, 1e-2)

    def test_metrics_are_those_of_keras(self):
        net = self.save(keras.Sequential([keras.Input((6,)), layers.Dense(5, "tanh"), layers.Dense(1, "sigmoid")]))
        y = (self.y == 1).astype("float32")[:, None]
        np.save(self.folder / "y.npy", y)
        names = ["accuracy", "auc", "precision", "recall", "mse", "mae", "root_mean_squared_error", "true_positives", "false_negatives", "binary_crossentropy"]
        self.run_jobs(
            f"""
            [[job]]
            name = "a"
            model = "a.keras"
            x = "x.npy"
            y = "y.npy"
            loss = "binary_crossentropy"
            optimizer = {{ name = "sgd", learning_rate = 0.5 }}
            epochs = 3
            shuffle = false
            metrics = {json.dumps([*names, "AUC"])[:-1]}, {{ name = "auc", curve = "PR" }}]
            """.replace(', "AUC"', "")
        )
        net.compile(loss="binary_crossentropy", optimizer=keras.optimizers.SGD(0.5), metrics=names)
        history = net.fit(self.x, y, epochs=3, shuffle=False, verbose=0).history
        with open(self.folder / "out/a/history.csv") as file:
            header, *rows = [line.strip().split(",") for line in file]
        for name in names:
            self.expect_close([float(row[header.index(name)]) for row in rows], history[name], 1e-3)

    def test_a_job_that_fails_at_its_last_batch_alone_stops_alone(self):
        net = keras.Sequential([keras.Input((8, 2)), layers.Dense(3, "softmax")])
        self.save(net)
        self.save(classifier(), "b.keras")
        self.save_arrays(series=np.zeros((20, 8, 2), "float32"), labels=np.zeros((20, 8), "int32"), w=np.ones(20, "float32"))
        loss = 'loss = { name = "sparse_categorical_crossentropy", ignore_class = 1 }\n'
        job = loss + 'name = "a"\nmodel = "a.keras"\nx = "series.npy"\ny = "labels.npy"\nsample_weight = "w.npy"\nbatch_size = 8\n'
        (self.folder / "jobs.toml").write_text("[[job]]\n" + job + job_in_order("b", 2, loss))
        done = subprocess.run([self.program, "fit", "jobs.toml", "--out", "out"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("job 'a': [fit] loss 'sparse_categorical_crossentropy': sample weights are [4], losses [4, 8]; a sample has one weight", done.stderr)
        self.assertIn("error: [fit] 1 of 2 jobs failed", done.stderr)
        self.assertEqual(len(self.history("b")["loss"]), 2)

    def test_results_of_an_earlier_run_do_not_pass_for_those_of_this_one(self):
        self.save(classifier())
        job = job_in_order("a", 2, 'loss = "sparse_categorical_crossentropy"')
        self.run_jobs(job)
        self.save_arrays(x=np.full((50, 6), np.nan, "float32"))
        self.refuse_jobs(job, "is nan")
        self.assertFalse((self.folder / "out/a/model.keras").exists())
        self.refuse(1, "is nan", "fit", "jobs.toml", "--out", "out", "--resume")  # not finished before

    def test_a_job_whose_results_could_not_all_be_written_is_not_finished(self):
        self.save(classifier())
        job = job_in_order("a", 2, 'loss = "sparse_categorical_crossentropy"')
        (self.folder / "out/a/history.csv/in_the_way").mkdir(parents=True)
        self.refuse_jobs(job, "history.csv")
        (self.folder / "out/a/history.csv/in_the_way").rmdir()
        (self.folder / "out/a/history.csv").rmdir()
        done = self.succeed("fit", "jobs.toml", "--out", "out", "--resume", "--json").json["jobs"][0]
        self.assertEqual(done["stopped_because"], "epochs")
        self.assertEqual(len(self.history()["loss"]), 2)

    def test_what_was_finished_before_is_told_with_its_history(self):
        self.save(classifier())
        first = self.run_jobs(job_in_order("a", 3, 'loss = "sparse_categorical_crossentropy"\nvalidation_split = 0.2'), "--json").json["jobs"][0]
        page = (self.folder / "out/report.html").read_text()
        again = self.succeed("fit", "jobs.toml", "--out", "out", "--resume", "--json").json["jobs"][0]
        self.assertEqual((again["stopped_because"], again["loss"]), ("finished_before", first["loss"]))
        curves = re.findall(r"points=\"[^\"]+\"", page)
        self.assertEqual(len(curves), 2)
        self.assertEqual(re.findall(r"points=\"[^\"]+\"", (self.folder / "out/report.html").read_text()), curves)
        (self.folder / "out/a/history.csv").write_text("no history")
        self.assertIsNone(self.succeed("fit", "jobs.toml", "--out", "out", "--resume", "--json").json["jobs"][0]["loss"])

    def test_numbers_that_are_none_have_no_sign(self):
        # Beside infinity there is no score; on the way through a checkpoint it would lose a sign that others keep.
        y = self.x[:, :2].copy()
        y[45] = np.inf
        self.save_arrays(y=y)
        text = '[[job]]\nname = "a"\nbuild = "dense 2"\ninput = [6]\nx = "x.npy"\ny = "y.npy"\nloss = "mse"\nshuffle = false\nvalidation_split = 0.2\nmetrics = ["r2_score", "pearson_correlation"]\nepochs = 2\n'
        self.run_jobs(text)
        history = (self.folder / "out/a/history.csv").read_text()
        self.assertIn(",nan", history)
        self.assertNotIn("-nan", history)

    def test_keras_opens_what_plain_words_and_whole_numbers_give(self):
        self.save(classifier())
        self.save_arrays(y=np.eye(3, dtype="float32")[self.y])
        for keys in (
            'optimizer = "sgd"\nschedule = { name = "cosine_decay", decay_steps = 10 }',
            'optimizer = "sgd"\nschedule = { name = "cosine_decay", decay_steps = 10, initial_learning_rate = 1 }',
            'optimizer = { name = "sgd", momentum = 0, use_ema = true, ema_overwrite_frequency = 2.0 }\nmetrics = [{ name = "one_hot_mean_io_u", num_classes = 3 }]',
            'optimizer = "sgd"\nmetrics = "accuracy"',
            'optimizer = "sgd"\nmetrics = ["rmse", "KLD", "logcosh", { name = "log_cosh" }]',
            'optimizer = "sgd"\nmetrics = [{ name = "f_beta_score", beta = 2, threshold = 1, average = "micro" }, { name = "one_hot_mean_io_u", num_classes = 3 }]',
        ):
            self.run_jobs(job_in_order("a", 1, 'loss = "categorical_crossentropy"\n' + keys))
            opened = keras.models.load_model(self.folder / "out/a/model.keras")
            if "= 1 }" in keys:
                self.assertTrue(0.5 < float(opened.optimizer.learning_rate) < 1)
            self.assertLessEqual(set(opened.fit(self.x, np.eye(3, dtype="float32")[self.y], verbose=0).history), set(self.history()))
        for loss, y in (("logcosh", np.eye(3)[self.y]), ("kullback_leibler_divergence", np.eye(3)[self.y]), ("categorical_generalized_cross_entropy", self.y)):
            self.save_arrays(y=y)
            self.run_jobs(job_in_order("a", 1, f'loss = "{loss}"\noptimizer = {{ name = "sgd", learning_rate = 0.0 }}'))
            opened = keras.models.load_model(self.folder / "out/a/model.keras")
            self.expect_close(opened.fit(self.x, y, batch_size=16, shuffle=False, verbose=0).history["loss"], self.history()["loss"])
        self.save_arrays(y=np.eye(3, dtype="float32")[self.y])
        # A model that is beside another and inside of it stays one.
        shared = keras.Sequential([keras.Input((6,)), layers.Dense(6, "tanh")])
        net = self.save(keras.Sequential([keras.Input((6,)), shared, keras.Sequential([keras.Input((6,)), shared, layers.Dense(3)])]))
        self.run_jobs(job_in_order("a", 2, 'loss = "mse"\noptimizer = { name = "adam", learning_rate = 0.01 }'))
        net.compile(loss="mse", optimizer=keras.optimizers.Adam(0.01))
        net.fit(self.x, np.eye(3, dtype="float32")[self.y], epochs=2, batch_size=16, shuffle=False, verbose=0)
        opened = keras.models.load_model(self.folder / "out/a/model.keras")
        self.assertEqual(len(opened.weights), 4)
        for a, b in zip(opened.get_weights() + opened.optimizer.variables[2:], net.get_weights() + net.optimizer.variables[2:]):
            self.expect_close(a, b, 1e-3)

    def test_a_model_in_words_learns(self):
        self.run_jobs(
            """
            [[job]]
            name = "a"
            build = "dense 16 relu; dropout 0.1; dense 3 softmax"
            input = [6]
            x = "x.npy"
            y = "y.npy"
            loss = "sparse_categorical_crossentropy"
            optimizer = "adam"
            metrics = ["accuracy"]
            epochs = 150
            seed = 2
            """
        )
        self.assertGreater(columns(self.folder / "out/a/history.csv")["accuracy"][-1], 0.8)
        net = keras.models.load_model(self.folder / "out/a/model.keras")
        self.assertGreater(net.evaluate(self.x, self.y, verbose=0)[1], 0.8)

    def test_a_sweep_is_the_product_of_its_lists(self):
        for part in range(2):
            np.save(self.folder / f"store_{part}_x.npy", self.x[part::2])
            np.save(self.folder / f"store_{part}_y.npy", self.y[part::2])
        run = self.run_jobs(
            """
            [[sweep]]
            name = "s"
            build = "dense 4 relu; dense 3 softmax"
            input = [6]
            loss = "sparse_categorical_crossentropy"
            optimizer = "sgd"
            vary = { x = "store_*_x.npy", y = "store_*_y.npy", "optimizer.learning_rate" = [0.1, 0.2, 0.3], seed = [1, 2] }
            """,
            "--json",
        )
        jobs = run.json["jobs"]
        self.assertEqual([job["name"] for job in jobs], [f"s_{i}" for i in range(12)])
        self.assertEqual(len({job["loss"] for job in jobs}), 4)  # one step an epoch: the learning rate is not yet in its loss
        rates = [float(keras.models.load_model(self.folder / f"out/s_{i}/model.keras").optimizer.learning_rate) for i in range(0, 6, 2)]
        np.testing.assert_allclose(rates, [0.1, 0.2, 0.3], rtol=1e-6)
        self.refuse_jobs("[[sweep]]\nname = 's'\nseed = [1, 2]", "a table 'vary'")
        self.refuse_jobs("[[sweep]]\nname = 's'\nvary = { x = ['a', 'b'], y = ['c'] }", "data files vary together")
        self.refuse_jobs("[[sweep]]\nname = 's'\nvary = { x = 'none_*' }", "no file fits")
        self.refuse_jobs("[[sweep]]\nname = 's'\nvary = { name = ['a', 'b'] }", "names of their own")
        self.refuse_jobs("[job]\nname = 'a'\n[[sweep]]\nname = 's'\nvary = { seed = [1] }", "[[job]]")

    def test_tensorboard_reads_the_history(self):
        sys.modules["tensorboard.compat.notf"] = types.ModuleType("tensorboard.compat.notf")  # its own reader of records, not TensorFlow's
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        self.save(classifier())
        self.run_jobs(
            """
            [[job]]
            name = "a"
            model = "a.keras"
            x = "x.npy"
            y = "y.npy"
            loss = "sparse_categorical_crossentropy"
            metrics = ["accuracy"]
            validation_split = 0.2
            epochs = 200
            """
        )
        events = EventAccumulator(str(self.folder / "out/a"), size_guidance={"scalars": 0})
        events.Reload()
        history = self.history()
        self.assertEqual(sorted(events.Tags()["scalars"]), sorted(set(history) - {"epoch"}))
        for column in events.Tags()["scalars"]:
            self.assertEqual([event.step for event in events.Scalars(column)], list(range(200)))
            np.testing.assert_array_equal([event.value for event in events.Scalars(column)], np.float32(history[column]))

    def test_a_killed_run_goes_on_bit_for_bit(self):
        job = """
            [[job]]
            name = "a"
            build = "dense 32 relu; dropout 0.3; batch_normalization; dense 3 softmax"
            input = [6]
            x = "x.npy"
            y = "y.npy"
            loss = "sparse_categorical_crossentropy"
            optimizer = { name = "adam", use_ema = true }
            metrics = ["accuracy"]
            validation_split = 0.2
            early_stopping = { monitor = "val_loss", patience = 100000, restore_best_weights = true }
            reduce_on_plateau = { monitor = "loss", patience = 30, factor = 0.7, cooldown = 3, min_lr = 1e-5 }
            batch_size = 7
            epochs = 1500
        """
        (self.folder / "jobs.toml").write_text(job)
        self.succeed("fit", "jobs.toml", "--out", "whole", "--log-steps")
        arguments = [self.program, "fit", "jobs.toml", "--out", "parts", "--log-steps", "--checkpoint-every", "97", "--resume"]
        kills = 0
        for delay in (0.15, 0.2, 0.25, 0.3, 0.35, 0.4):
            child = subprocess.Popen(arguments, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            try:
                child.wait(timeout=delay)
            except subprocess.TimeoutExpired:
                child.kill()
                kills += 1
            self.assertEqual(child.communicate()[1], b"")
        self.assertGreater(kills, 0)
        self.succeed(*arguments[1:])
        for name in ("steps.csv", "history.csv"):
            self.assertEqual((self.folder / "whole/a" / name).read_text(), (self.folder / "parts/a" / name).read_text())
        self.assertEqual((self.folder / "whole/a/model.keras").read_bytes(), (self.folder / "parts/a/model.keras").read_bytes())
        self.assertFalse((self.folder / "parts/a/checkpoint").exists())
        self.assertEqual(self.succeed(*arguments[1:], "--json").json["jobs"][0]["stopped_because"], "finished_before")
        # A torn file, and one of another job.
        (self.folder / "torn/a").mkdir(parents=True)
        (self.folder / "torn/a/checkpoint").write_bytes(b"tutti checkpoint 2\n" + bytes(8))
        self.refuse(1, "json", "fit", "jobs.toml", "--out", "torn", "--resume")
        (self.folder / "torn/a/checkpoint").write_bytes(b"tutti checkpoint 2\n")
        self.refuse(1, "is torn", "fit", "jobs.toml", "--out", "torn", "--resume")

    def test_a_failing_job_stops_alone(self):
        self.save(classifier())
        np.save(self.folder / "short.npy", self.y[:10])
        np.save(self.folder / "beyond.npy", np.where(np.arange(50) == 7, 3, self.y))
        np.save(self.folder / "nan.npy", np.where(self.x > 1.5, np.nan, self.x))
        job = '[[job]]\nname = "{}"\nmodel = "{}"\nx = "x.npy"\ny = "{}"\nloss = "{}"\n'
        (self.folder / "jobs.toml").write_text(
            job.format("absent", "b.keras", "y.npy", "mse")
            + job.format("fine", "a.keras", "y.npy", "sparse_categorical_crossentropy")
            + job.format("short", "a.keras", "short.npy", "sparse_categorical_crossentropy")
            + job.format("beyond", "a.keras", "beyond.npy", "sparse_categorical_crossentropy")
            + job.format("unknown", "a.keras", "y.npy", "mean_squard_error")
            + job.format("not_a_number", "a.keras", "y.npy", "sparse_categorical_crossentropy").replace("x.npy", "nan.npy"),
        )
        done = subprocess.run([self.program, "fit", "jobs.toml", "--out", "out", "--json"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        *warnings, error = done.stderr.splitlines()
        self.assertEqual(error, "tutti: error: [fit] 5 of 6 jobs failed")
        self.assertEqual(len(warnings), 5)
        jobs = {job["name"]: job for job in json.loads(done.stdout)["jobs"]}
        self.assertEqual({name: job["stopped_because"] for name, job in jobs.items()},
                         {"absent": "error", "fine": "epochs", "short": "error", "beyond": "error", "unknown": "error", "not_a_number": "error"})
        self.assertTrue((self.folder / "out/fine/model.keras").exists())
        self.assertEqual(sorted(p.name for p in (self.folder / "out").iterdir()), ["fine", "report.html"])
        self.assertIn("50 samples", jobs["short"]["error"])
        self.assertRegex(jobs["beyond"]["error"], "the label of sample 7 is 3; the output '.*' has 3 classes")
        self.assertRegex(jobs["not_a_number"]["error"], r"the loss of step 0 \(epoch 0\) is nan: x of sample \d+ holds nan")
        self.assertIn("mean_squared_error", jobs["unknown"]["error"])

    def test_several_optimizers_have_weights_of_their_own(self):
        net = keras.Sequential([keras.Input((6,)), layers.Dense(8, "tanh", name="body"), layers.Dense(3, "softmax", name="head")], name="net")
        self.save(net)

        def job(patterns):
            optimizer = f'optimizer = {{ name = "multi_optimizer", optimizer_map = {{ default_optimizer = "sgd", optimizer_map = {{ {patterns} }} }} }}'
            return job_in_order("a", 3, 'loss = "sparse_categorical_crossentropy"\n' + optimizer)

        self.run_jobs(job('"net/head/.*" = { name = "adam", learning_rate = 0.01 }, "net/body/bias" = "rmsprop"'))
        o = keras.optimizers
        net.compile(loss="sparse_categorical_crossentropy", optimizer=o.MultiOptimizer(o.OptimizerMap(o.SGD(), {"net/head/.*": o.Adam(0.01), "net/body/bias": o.RMSprop()})))
        self.expect_history(self.history_in_order(net, 3))
        # Keras opens it, and leaves out the states of the optimizers, as it does with files of its own; here they go on.
        opened = keras.models.load_model(self.folder / "out/a/model.keras")
        self.assertEqual(type(opened.optimizer), type(net.optimizer))
        for ours, wanted in zip(opened.get_weights(), net.get_weights(), strict=True):
            np.testing.assert_allclose(ours, wanted, rtol=1e-3, atol=1e-5)
        net.save(self.folder / "b.keras")
        more = self.history_in_order(net, 2)["loss"]
        self.run_jobs(job_in_order("b", 2))
        self.expect_close(self.history("b")["loss"], more)
        for patterns, words in {
            '"net/(head|body)/.*" = "adam"': "of patterns only '.*' is done",
            '"net/.*" = "adam", ".*/kernel" = "sgd"': "both 'net/.*' and '.*/kernel' fit 'net/body/kernel'",
            '"net/.*" = "multi_optimizer"': "which Keras does not take",
        }.items():
            self.refuse_jobs(job(patterns), words)

    def test_a_step_that_does_not_fit_in_memory_computes_some_of_it_again(self):
        if self.sanitized:
            return  # has no limit, and would compute for minutes
        rows = 30_000
        self.save_arrays(x=np.tile(self.x, (rows // 50, 1)), y=np.tile(self.y, rows // 50))
        layers_of_it = "dense 64 tanh; " * 48 + "dense 3 softmax"
        (self.folder / "jobs.toml").write_text(
            f'[[job]]\nname = "a"\nbuild = "{layers_of_it}"\ninput = [6]\nx = "x.npy"\ny = "y.npy"\nloss = "sparse_categorical_crossentropy"\noptimizer = "sgd"\nbatch_size = {rows}\nepochs = 2\n'
        )
        limit = 600  # MB of address space, of which the program itself takes a part
        self.assertGreater(json.loads(self.succeed("explain", "jobs.toml", "--json").out)["peak_memory_bytes"] / 2**20, limit)
        self.succeed("fit", "jobs.toml", "--out", "short", "--threads", "1", memory_mib=limit)
        self.succeed("fit", "jobs.toml", "--out", "long", "--threads", "1")
        self.expect_close(*(columns(self.folder / f"{out}/a/history.csv")["loss"] for out in ("short", "long")))

    def test_recomputed_steps_train_alike(self):
        self.save(classifier())
        good = '[[job]]\nname = "a"\nmodel = "a.keras"\nx = "x.npy"\ny = "y.npy"\nloss = "sparse_categorical_crossentropy"\nepochs = 3\n'
        (self.folder / "jobs.toml").write_text(good)
        self.succeed("fit", "jobs.toml", "--out", "kept", "--log-steps")
        self.succeed("fit", "jobs.toml", "--out", "again", "--log-steps", "--recompute")
        self.expect_close(*(columns(self.folder / out / "a" / "steps.csv")["loss"] for out in ("kept", "again")), relative=1e-5)


if __name__ == "__main__":
    main()
