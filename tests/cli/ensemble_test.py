"""tutti ensemble: what it writes, what that predicts here and in Keras, and what it refuses. ensemble_test.py PROGRAM"""

import os
import pathlib
import resource
import subprocess
import tempfile

os.environ["KERAS_BACKEND"] = "jax"
import keras  # noqa: E402
import numpy as np  # noqa: E402
import program  # noqa: E402

L = keras.layers


class Ensembles(program.ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="tutti_ensemble_")
        cls.models = pathlib.Path(cls.scratch.name)
        random = np.random.default_rng(0)
        cls.x = random.standard_normal((7, 6)).astype("float32")
        np.save(cls.models / "x.npy", cls.x)
        makers = [
            lambda: keras.Sequential([keras.Input((6,)), L.Dense(8, activation="relu"), L.BatchNormalization(), L.Dense(3)]),
            lambda: keras.Sequential([keras.Input((6,)), L.Dense(8, activation="relu"), L.BatchNormalization(), L.Dense(3)]),
            functional,
        ]
        cls.answers = []
        for name, make in zip(("a.keras", "b.h5", "c.keras"), makers):
            model = make()
            model.set_weights([np.abs(random.standard_normal(w.shape)).astype("float32") for w in model.get_weights()])
            model.save(cls.models / name)
            cls.answers.append(np.asarray(model(cls.x, training=False)))
        cls.members = [cls.models / name for name in ("a.keras", "b.h5", "c.keras")]

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def make(self, name, *words, members=None):
        out = self.folder / name
        self.succeed("ensemble", *(members or self.members), *words, "-o", out)
        return out

    def predict(self, model, *words):
        out = self.folder / "y.npz"
        self.succeed("predict", model, self.models / "x.npy", "-o", out, *words)
        with np.load(out) as arrays:
            return dict(arrays)

    def check(self, got, expected):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)

    def test_a_manifest_predicts_what_numpy_makes_of_the_members(self):
        model = self.make("all.toml", "--reduce", "mean,std", "--reduce", "quantile:0.1,0.9")
        for plan in ("auto", "merged", "stacked", "looped"):
            got = self.predict(model, "--ensemble-plan", plan)
            self.assertEqual(list(got), ["mean", "std", "quantile_0.1", "quantile_0.9"])
            self.check(got["mean"], np.mean(self.answers, axis=0))
            self.check(got["std"], np.std(self.answers, axis=0))
            self.check(got["quantile_0.1"], np.quantile(self.answers, 0.1, axis=0))
            self.check(got["quantile_0.9"], np.quantile(self.answers, 0.9, axis=0))

    def test_keras_opens_what_is_written_and_predicts_the_same(self):
        reductions = {"mean": np.mean, "min": np.min, "max": np.max, "sum": np.sum}
        for name, reduce in reductions.items():
            file = self.make(f"{name}.keras", "--reduce", name)
            expected = reduce(self.answers, axis=0)
            self.check(self.predict(file)[name], expected)
            self.check(np.asarray(keras.saving.load_model(file)(self.x)), expected)
        file = self.make("several.keras", "--reduce", "mean,max")
        mean, largest = keras.saving.load_model(file)(self.x)
        self.check(mean, np.mean(self.answers, axis=0))
        self.check(largest, np.max(self.answers, axis=0))

    def test_a_kernel_that_a_wrapper_holds_too_is_written_twice(self):
        files = [self.folder / "a.keras", self.folder / "b.h5"]
        models = [keras.Sequential([keras.Input((6,)), L.SpectralNormalization(L.Dense(3))]) for _ in files]
        for model, file in zip(models, files):
            model.save(file)
        file = self.make("mean.keras", members=files)
        expected = np.mean([model(self.x, training=False) for model in models], axis=0)
        self.check(self.predict(file)["mean"], expected)
        self.check(np.asarray(keras.saving.load_model(file)(self.x, training=False)), expected)

    def test_inputs_in_lists_inside_of_dictionaries_stay_where_they_are(self):
        parts = {name: self.x[:, from_:to] for name, from_, to in (("image", 0, 3), ("m0", 3, 5), ("m1", 5, 6))}
        given = {"meta": [parts["m0"], parts["m1"]], "image": parts["image"]}
        np.savez(self.folder / "parts.npz", **parts)
        for nested in (given, [[given["meta"], parts["image"]]]):
            inputs = keras.tree.map_structure(lambda part: keras.Input(part.shape[1:], name=next(n for n, p in parts.items() if p is part)), nested)
            files = [self.folder / "a.keras", self.folder / "b.h5"]
            models = [keras.Model(inputs, L.Dense(2)(L.Concatenate()(keras.tree.flatten(inputs)))) for _ in files]
            for model, file in zip(models, files):
                model.save(file)
            file = self.make("mean.keras", members=files)
            expected = np.mean([model(nested) for model in models], axis=0)
            self.succeed("predict", file, self.folder / "parts.npz", "-o", self.folder / "y.npy")
            self.check(np.load(self.folder / "y.npy"), expected)
            self.check(np.asarray(keras.saving.load_model(file)(keras.tree.flatten(nested))), expected)

    def test_keras_opens_members_that_it_cannot_read_from_h5(self):
        def attention(x):
            return L.Attention()([x, L.Dense(6)(x)], return_attention_scores=True)[1]

        inner = keras.Sequential([keras.Input((5, 6)), L.Dense(4), L.UnitNormalization(axis=(1, 2)), L.Activation("mish")])
        functions = (
            lambda x: L.Dense(3)(keras.ops.abs(x)[:, 1:] * 2 - keras.ops.mean(x, axis=-1, keepdims=True)[:, 1:]),
            lambda x: keras.ops.image.resize(keras.activations.relu(x[..., None], negative_slope=0.1), (3, 4)),
            L.Softmax(axis=(1, 2)),
            L.LayerNormalization(axis=(1, 2)),
            attention,
            lambda x: L.TimeDistributed(L.Dense(2))(inner(x)),
        )
        given = np.random.default_rng(1).standard_normal((3, 5, 6)).astype("float32")
        for function in functions:
            x = keras.Input((5, 6))
            model = keras.Model(x, function(x))
            expected = model(given)
            for name in ("a.h5", "a.keras"):
                model.save(self.folder / name)
            file = self.make("b.keras", members=[self.folder / "a.h5", self.folder / "a.keras"])
            self.check(keras.saving.load_model(file)(given), expected)

    def test_single_numbers_need_a_manifest(self):
        x = keras.Input((6,))
        keras.Model(x, keras.ops.sum(L.Dense(3)(x))).save(self.folder / "a.keras")
        self.refuse(1, "gives a single number, which no merging layer of Keras takes", "ensemble", self.folder / "a.keras", self.folder / "a.keras", "-o", self.folder / "b.keras")

    def test_weights(self):
        expected = np.average(self.answers, axis=0, weights=[3, 1, 0])
        for name in ("weighted.keras", "weighted.toml"):
            self.check(self.predict(self.make(name, "--weights", "3,1,0"))["mean"], expected)
        self.check(np.asarray(keras.saving.load_model(self.folder / "weighted.keras")(self.x)), expected)

    def test_an_ensemble_is_a_member_of_another(self):
        for name in ("inner.keras", "inner.toml"):
            inner = self.make(name, members=self.members[:2])
            outer = self.make("outer.toml", "--reduce", "max", members=[inner, self.members[2]])
            self.check(self.predict(outer)["max"], np.maximum(np.mean(self.answers[:2], axis=0), self.answers[2]))
        outer = self.make("outer.keras", members=[self.folder / "inner.toml", self.members[2]])
        self.check(np.asarray(keras.saving.load_model(outer)(self.x)), np.mean([np.mean(self.answers[:2], axis=0), self.answers[2]], axis=0))

    def test_an_ensemble_is_fine_tuned_as_keras_does(self):
        random = np.random.default_rng(5)
        x, y = random.standard_normal((40, 6)).astype("float32"), random.standard_normal((40, 3)).astype("float32")
        np.save(self.folder / "train_x.npy", x)
        np.save(self.folder / "train_y.npy", y)
        net = keras.saving.load_model(self.make("bag.keras"))
        net.compile("sgd", "mse")
        losses = net.fit(x, y, batch_size=8, epochs=3, shuffle=False, verbose=0).history["loss"]
        self.make("bag.toml")
        for model in ("bag.keras", "bag.toml"):
            job = f'[[job]]\nname = "a"\nmodel = "{model}"\nx = "train_x.npy"\ny = "train_y.npy"\nloss = "mse"\noptimizer = "sgd"\nbatch_size = 8\nepochs = 3\nshuffle = false\n'
            (self.folder / "jobs.toml").write_text(job)
            self.succeed("fit", "jobs.toml", "--out", "out")
            rows = (self.folder / "out" / "a" / "history.csv").read_text().splitlines()[1:]
            np.testing.assert_allclose([float(row.split(",")[1]) for row in rows], losses, rtol=1e-3)
            trained = keras.saving.load_model(self.folder / "out" / "a" / "model.keras")
            for ours, theirs in zip(trained.get_weights(), net.get_weights()):
                np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=2e-3)
        self.make("spread.toml", "--reduce", "std")
        (self.folder / "jobs.toml").write_text(job.replace("bag.toml", "spread.toml"))
        self.refuse(1, "Keras has layers for mean", "fit", "jobs.toml", "--out", "out")

    def test_a_folder_and_a_pattern_stand_for_their_models(self):
        folder = self.folder / "many"
        folder.mkdir(exist_ok=True)
        for i in range(12):
            (folder / f"m{i:02}.keras").write_bytes(self.members[0].read_bytes())
        for words in ([folder], [folder / "m0*.keras", folder / "m1?.keras"]):
            self.make("many.toml", members=words)
            self.check(self.predict(self.folder / "many.toml")["mean"], self.answers[0])

    def test_folders_whose_names_look_like_patterns_or_are_links(self):
        folder = self.folder / "run[1]"
        folder.mkdir()
        for file in self.members[:2]:
            (folder / file.name).write_bytes(file.read_bytes())
        (folder / "all.toml").write_text("members = ['?.*']")
        self.check(self.predict(folder / "all.toml")["mean"], np.mean(self.answers[:2], axis=0))
        deep = self.folder / "deep" / "er"
        deep.mkdir(parents=True)
        (self.folder / "link").symlink_to(deep)
        made = self.make("link/out.toml", members=[folder / "a.keras"])
        self.assertIn('"../../run[1]/a.keras"', made.read_text())
        self.check(self.predict(made)["mean"], self.answers[0])
        (self.folder / "newest").symlink_to(folder)  # one that stays a link
        made = self.make("newest.toml", members=[self.folder / "newest" / "a.keras"])
        self.assertIn('"newest/a.keras"', made.read_text())

    def test_a_manifest_is_no_member_of_itself(self):
        inner = self.make("inner.toml", members=self.members[:2])
        outer = self.make("outer.toml", members=[inner, self.members[2]])
        before = inner.read_text()
        for words in ([inner, self.members[2]], [outer], [inner, "--add", inner]):
            self.refuse(1, "would be a member of itself", "ensemble", *words, "-o", inner)
        self.assertEqual(inner.read_text(), before)
        folder = self.folder / "all"
        folder.mkdir()
        (folder / "a.keras").write_bytes(self.members[0].read_bytes())
        self.make("all/both.keras", members=[folder])
        self.refuse(1, "both.keras' would be a member of itself", "ensemble", folder, "-o", folder / "both.keras")  # once more

    def test_manifests_that_multiply_are_bounded(self):
        model = f"'{self.members[0]}', "
        (self.folder / "inner.toml").write_text(f"members = [{model * 60_000}]")
        (self.folder / "outer.toml").write_text(f"members = ['inner.toml', {model * 60_000}]")
        self.refuse(1, "an ensemble has at most 100000 members", "inspect", self.folder / "outer.toml")

    def test_members_of_a_manifest_come_and_go(self):
        old = self.make("old.toml", "--reduce", "mean,max", members=self.members[:2])
        new = self.make("new.toml", "--add", self.members[2], "--drop", "a", members=[old])
        got = self.predict(new)
        self.assertEqual(list(got), ["mean", "max"])
        self.check(got["mean"], np.mean(self.answers[1:], axis=0))
        self.make("old.toml", "--drop", self.members[1], "--reduce", "sum", "--ignore-nan", members=[old])  # in its place
        self.check(self.predict(old)["sum"], self.answers[0])
        self.assertIn("ignore_nan = true", old.read_text())
        weighted = self.make("weighted.toml", "--weights", "3,1,2")
        fewer = self.make("fewer.toml", "--drop", "b", members=[weighted])
        self.check(self.predict(fewer)["mean"], np.average([self.answers[0], self.answers[2]], axis=0, weights=[3, 2]))
        more = self.make("more.keras", "--add", self.members[1], "--weights", "3,2,1", members=[fewer])
        self.check(np.asarray(keras.saving.load_model(more)(self.x)), np.average(self.answers, axis=0, weights=[3, 1, 2]))
        before = weighted.read_text()
        for words, code, text in [
            ((weighted, "--drop", "d"), 1, "--drop: no member 'd' (did you mean 'a'"),
            ((weighted, "--drop", "a", "--drop", "a"), 1, "--drop: no member 'a'"),
            ((weighted, "--drop", "a", "--drop", "b", "--drop", "c"), 1, "at least one member"),
            ((weighted, "--add", self.members[1]), 1, "b.h5' is a member already"),
            ((fewer, "--add", self.members[1]), 1, "have weights; hint: --weights with those of all 3"),
            ((weighted, "--add", self.folder / "absent.keras", "--weights", "1,1,1,1"), 1, "absent.keras"),
            ((*self.members, "--drop", "a"), 2, "--add and --drop change one manifest"),
            ((self.members[0], "--add", self.members[1]), 2, "--add and --drop change one manifest"),
        ]:
            self.refuse(code, text, "ensemble", *words, "-o", weighted)
        self.assertEqual(weighted.read_text(), before)

    def test_every_verb_takes_it(self):
        model = self.make("verbs.toml")
        shown = self.succeed("inspect", model, "--json").json
        self.assertEqual([member["name"] for member in shown["members"]], ["a", "b", "c"])
        alone = self.succeed("inspect", self.members[0], "--json").json["outputs"][0]
        self.assertEqual(shown["outputs"], [{**alone, "name": "mean"}])
        plan = self.succeed("explain", model, "--ensemble-plan", "stacked", "--json").json["plan"]
        self.assertEqual(plan["groups"][0]["members"], ["a", "b"])
        self.assertEqual(plan["groups"][0]["chosen"], "stacked")
        measured = self.succeed("explain", model, "--json").json["plan"]["groups"][0]
        self.assertEqual(sorted(measured["us"]), ["looped", "merged", "stacked"])
        self.assertEqual(measured["chosen"], min(measured["us"], key=measured["us"].get))
        self.assertIn("an ensemble of 3", self.succeed("inspect", model).out)

    def test_members_inside_a_keras_file_are_found(self):
        file = self.make("found.keras", members=self.members[:2])
        plan = self.succeed("explain", file, "--ensemble-plan", "looped", "--json").json["plan"]
        self.assertEqual(plan["groups"][0]["members"], ["a", "b"])
        for how in ("merged", "stacked", "looped"):
            self.check(self.predict(file, "--ensemble-plan", how)["mean"], np.mean(self.answers[:2], axis=0))

    def test_refusals(self):
        (self.folder / "loop.keras").symlink_to("loop.keras")
        for words, code, text in [
            ((*self.members, "--reduce", "median", "-o", self.folder / "no.keras"), 1, "(-o X.toml) predicts it"),
            ((*self.members, "--reduce", "mode", "-o", self.folder / "no.toml"), 2, "no reduction 'mode'"),
            ((*self.members, "-o", self.folder / "no.json"), 2, ".keras (Keras opens it) or .toml"),
            ((*self.members,), 2, "-o OUT is needed"),
            ((self.folder / "absent.keras", "-o", self.folder / "no.toml"), 1, "absent.keras"),
            ((self.folder / "zz*.keras", "-o", self.folder / "no.toml"), 1, "no file fits"),
            ((self.folder / "loo*.keras", "-o", self.folder / "no.toml"), 1, "loop.keras': Too many levels of symbolic links"),
            ((*self.members, "--weights", "1,2", "-o", self.folder / "no.toml"), 1, "weights are one a member; got 2 for 3 members"),
            ((*self.members, "--weights", "1,x,3", "-o", self.folder / "no.toml"), 2, "weights are numbers"),
        ]:
            self.refuse(code, text, "ensemble", *words)
        self.assertFalse((self.folder / "no.keras").exists() or (self.folder / "no.toml").exists())

    def test_more_members_than_a_process_begins_with_open_files(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))  # the program begins with it
        try:
            many = self.make("many.toml", members=[self.members[0]] * 100)
            self.check(self.predict(many)["mean"], self.answers[0])
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    def test_memory_is_the_weights_once(self):
        if self.sanitized:
            self.skipTest("sanitizers keep what is freed")
        model = keras.Sequential([keras.Input((256,)), L.Dense(512), L.Dense(256), L.Dense(1)])
        count = 80
        for i in range(count):
            for weights in model.weights:
                weights.assign(weights + i)
            model.save(self.folder / f"m{i:03}.keras")
        manifest = self.make("many.toml", members=[self.folder / "*.keras"])
        words = "import resource,subprocess,sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        child = subprocess.run(["/usr/bin/env", "python3", "-c", words, self.program, "inspect", manifest], capture_output=True, text=True, check=True)
        self.assertLess(int(child.stdout) * 1024, count * model.count_params() * 4 + (50 << 20))

    def test_broken_manifests(self):
        file = self.folder / "broken.toml"
        for text, message in [
            ("members = [", "line 1"),
            ("members = 3", "members is a text or a list of texts; got int"),
            ("reduce = 'mean'", "has the key members"),
            ("members = []", "at least one member"),
            ("members = ['a.keras']\nredcue = 'mean'", "no key 'redcue' (did you mean 'reduce'"),
            ("members = ['a.keras']\nweights = 'x'", "weights is a list of numbers"),
            ("members = ['broken.toml']", "do they name each other"),
            ("members = ['absent.keras']", "absent.keras"),
        ]:
            file.write_text(text)
            self.refuse(1, message, "predict", file, self.models / "x.npy")

    def test_outputs_with_other_axes_of_1_are_no_keras_file(self):
        column = self.folder / "column.keras"
        keras.Sequential([keras.Input((6,)), L.Dense(3), L.Reshape((3, 1))]).save(column)
        self.refuse(1, "would need layers between", "ensemble", self.members[0], column, "-o", self.folder / "no.keras")
        self.assertEqual(self.predict(self.make("yes.toml", members=[self.members[0], column]))["mean"].shape, (7, 3))
        turned = [self.folder / "turned_0.keras", self.folder / "turned_1.keras"]
        for file, shape in zip(turned, ((6, 1), (1, 6))):
            keras.Sequential([keras.Input(shape), L.Flatten(), L.Dense(3)]).save(file)
        self.refuse(1, "would need layers between", "ensemble", *turned, "-o", self.folder / "no.keras")

    def test_an_ensemble_that_ignores_nan_is_a_member_as_well(self):
        inner = self.make("inner.toml", "--ignore-nan", members=self.members[:2])
        got = self.predict(self.make("outer.toml", members=[inner, self.members[2]]))
        self.assertEqual(list(got), ["mean"])
        self.check(got["mean"], (np.mean(self.answers[:2], axis=0) + self.answers[2]) / 2)

    def test_the_widest_dtype_is_taken_whoever_is_first(self):
        whole, real = self.folder / "whole.keras", self.members[0]
        keras.Sequential([keras.Input((6,), dtype="int32"), L.Embedding(4, 2), L.Flatten(), L.Dense(3)]).save(whole)
        np.save(self.folder / "x.npy", np.abs(self.x))
        found = []
        for i, members in enumerate(([whole, real], [real, whole])):
            model = self.make(f"mixed_{i}.toml", members=members)
            self.succeed("predict", model, self.folder / "x.npy", "-o", self.folder / "y.npy")
            found.append(np.load(self.folder / "y.npy"))
        self.check(found[0], found[1])

    def test_the_median_of_infinities_and_the_sum_of_truths(self):
        endless, truth = self.folder / "endless.keras", self.folder / "truth.keras"
        x = keras.Input((6,))
        keras.Model(x, 1 / (x[:, :3] * 0)).save(endless)
        keras.Model(x, x > -1e9).save(truth)
        got = self.predict(self.make("m.toml", "--reduce", "median", members=[endless, self.members[0], endless, endless]))["median"]
        self.assertTrue(np.isinf(got).all())
        np.testing.assert_array_equal(self.predict(self.make("s.toml", "--reduce", "sum", members=[truth, truth]))["sum"], np.full((7, 6), 2))

    def test_members_that_do_not_go_together(self):
        other = self.folder / "other.keras"
        keras.Sequential([keras.Input((5,)), L.Dense(3)]).save(other)
        self.refuse(1, "members take the same inputs", "ensemble", self.members[0], other, "-o", self.folder / "no.toml")
        keras.Sequential([keras.Input((6,)), L.Dense(4)]).save(other)
        self.refuse(1, "members give outputs of one shape", "ensemble", self.members[0], other, "-o", self.folder / "no.toml")

    def test_outputs_of_members_go_by_their_names(self):
        def model(seed, order):
            keras.utils.set_random_seed(seed)
            x = keras.Input((6,), name="x")
            heads = {name: L.Dense(2, name=name)(L.Dense(4, "tanh")(x)) for name in "pq"}
            return keras.Model(x, [heads[name] for name in order])

        members = [model(1, "pq"), model(2, "qp"), model(3, "qp")]
        for i, member in enumerate(members):
            member.save(self.folder / f"{i}.keras")
        answers = [dict(zip(member.output_names, member.predict(self.x, verbose=0))) for member in members]
        files = [self.folder / f"{i}.keras" for i in range(3)]
        for words in ((), ("--weights", "1,1,1")):
            for out in ("named.toml", "named.keras"):
                found = self.predict(self.make(out, *words, members=files))
                for name in "pq":
                    self.check(found[f"{name}.mean"], np.mean([answer[name] for answer in answers], axis=0))
            opened = keras.saving.load_model(self.folder / "named.keras").predict(self.x, verbose=0)
            self.check(opened[0], np.mean([answer["p"] for answer in answers], axis=0))

    def test_nan_is_reported_by_member_when_it_is_ignored(self):
        broken = keras.saving.load_model(self.members[0])
        broken.set_weights([np.full(w.shape, np.nan, "float32") for w in broken.get_weights()])
        broken.save(self.folder / "broken.keras")
        members = [*self.members[1:], self.folder / "broken.keras"]
        self.assertTrue(np.isnan(self.predict(self.make("nan.toml", members=members))["mean"]).all())
        model = self.make("ignored.toml", "--ignore-nan", members=members)
        done = self.run_program("predict", model, self.models / "x.npy", "-o", self.folder / "y.npy")
        self.assertEqual(done.code, 0)
        self.assertIn("'broken' in 7", done.err)
        self.check(np.load(self.folder / "y.npy"), np.mean(self.answers[1:], axis=0))


def functional():
    inputs = keras.Input((6,), name="features")
    hidden = L.Dense(5, activation="tanh")(inputs)
    return keras.Model(inputs, L.Dense(3)(L.Concatenate()([hidden, inputs])))


if __name__ == "__main__":
    program.main()
