"""Metrics, weights of classes and callbacks of tutti fit, each beside Keras."""

import json

import numpy as np

from fit_jobs import FitTest, classifier, keras, layers
from program import main

M = keras.metrics

JOB = """
[[job]]
name = "a"
model = "a.keras"
x = "x.npy"
y = "y.npy"
shuffle = false
batch_size = 16
epochs = 3
"""


class FitMetrics(FitTest):
    def compare(self, net, x, y, weight=None, reopens=True, **options):
        """Compiled metrics of the file are the job's; every column is Keras's."""
        net.compile(optimizer=keras.optimizers.SGD(0.2), **options)
        self.save(net)
        self.save_arrays(x=x, y=y)
        job = JOB + "validation_split = 0.2\n"
        if weight is not None:
            self.save_arrays(w=weight)
            job += 'sample_weight = "w.npy"\n'
        self.run_jobs(job)
        history = net.fit(x, y, sample_weight=weight, batch_size=16, epochs=3, shuffle=False, verbose=0, validation_split=0.2).history
        self.expect_history(history)
        if not reopens:
            return
        # Keras opens what is written and measures by the same metrics.
        opened = keras.models.load_model(self.folder / "out/a/model.keras")
        measured = opened.evaluate(x, y, verbose=0, return_dict=True)
        self.assertLessEqual(set(measured), set(self.history()))

    def random(self):
        return np.random.default_rng(11)

    def test_of_two_classes(self):
        y = (self.y == 1).astype("float32")[:, None]
        net = keras.Sequential([keras.Input((6,)), layers.Dense(5, "tanh"), layers.Dense(1, "sigmoid")])
        metrics = [
            M.AUC(), M.AUC(curve="PR", summation_method="minoring", name="pr"), M.AUC(num_thresholds=11, summation_method="majoring", name="coarse"),
            M.AUC(thresholds=[0.3, 0.5, 0.9], name="chosen"), M.Precision(), M.Recall(thresholds=0.4), M.TruePositives(), M.FalsePositives(),
            M.TrueNegatives(), M.FalseNegatives(), M.SensitivityAtSpecificity(0.6), M.SpecificityAtSensitivity(0.6, num_thresholds=50),
            M.PrecisionAtRecall(0.7), M.RecallAtPrecision(0.5), M.F1Score(threshold=0.5), M.BinaryIoU(target_class_ids=[1]), M.BinaryIoU(name="both", threshold=0.4),
            M.BinaryAccuracy(threshold=0.4), "accuracy", "mse", M.RootMeanSquaredError(),
        ]  # fmt: skip
        self.compare(net, self.x, y, loss="binary_crossentropy", metrics=metrics)

    def test_of_many_classes(self):
        y = np.eye(3, dtype="float32")[self.y]
        metrics = [
            M.F1Score("macro"), M.F1Score("micro", name="micro"), M.FBetaScore("weighted", beta=2.0, threshold=0.4), M.OneHotIoU(3, [0, 2]), M.OneHotMeanIoU(3),
            M.Precision(top_k=2), M.Recall(class_id=1, name="recall_of_one"), M.AUC(multi_label=True, num_labels=3),
            M.AUC(multi_label=True, label_weights=[1.0, 2.0, 0.5], curve="PR", name="weighed"), M.AUC(label_weights=[1.0, 2.0, 0.5], name="flat"),
            M.TopKCategoricalAccuracy(2), M.CategoricalCrossentropy(), M.CosineSimilarity(), M.KLDivergence(), M.CategoricalHinge(), "accuracy", "accuracy",
        ]  # fmt: skip
        # Keras does not open the label_weights that it saves.
        self.compare(classifier(), self.x, y, loss="categorical_crossentropy", metrics=metrics, reopens=False)

    def test_of_labels(self):
        metrics = [M.MeanIoU(3, sparse_y_pred=False), M.IoU(3, [1], sparse_y_pred=False, ignore_class=0), M.SparseTopKCategoricalAccuracy(2),
                   M.SparseCategoricalCrossentropy(), "accuracy"]  # fmt: skip
        self.compare(classifier(), self.x, self.y, loss="sparse_categorical_crossentropy", metrics=metrics)

    def test_of_numbers(self):
        y = self.random().standard_normal((50, 3)).astype("float32")
        net = keras.Sequential([keras.Input((6,)), layers.Dense(5, "tanh"), layers.Dense(3)])
        metrics = [M.R2Score(), M.R2Score("variance_weighted_average", name="weighed"), M.PearsonCorrelation(),
                   M.ConcordanceCorrelation(), M.LogCoshError(), "mae", "mape", M.MeanSquaredLogarithmicError(), M.Poisson(), M.Hinge(), M.SquaredHinge()]  # fmt: skip
        self.compare(net, self.x, np.abs(y), loss="mse", metrics=metrics)
        # Keras on JAX cannot adjust the score.
        self.run_jobs(JOB + 'metrics = ["r2_score", { name = "r2_score", num_regressors = 7 }]\n')
        ours = self.history()
        self.expect_close(ours["r2_score_1"], [1 - (1 - r2) * 149 / 142 for r2 in ours["r2_score"]])

    def test_weighted_metrics_hear_the_weights_of_samples(self):
        y = np.eye(3, dtype="float32")[self.y]
        weight = self.random().integers(0, 4, 50).astype("float32")
        both = lambda: ["accuracy", M.AUC(name="auc"), M.Precision(name="precision"), M.F1Score("macro", name="f1"), M.R2Score(name="r2"),  # noqa: E731
                        M.RootMeanSquaredError(name="rmse"), M.OneHotMeanIoU(3, name="iou")]  # fmt: skip
        self.compare(classifier(), self.x, y, weight=weight, loss="categorical_crossentropy", metrics=both(), weighted_metrics=both())
        self.assertNotEqual(self.history()["accuracy"], self.history()["weighted_accuracy"])

    def test_of_classes_that_are_ignored_and_ids_that_are_sorted(self):
        ignoring = lambda: [M.SparseCategoricalCrossentropy(ignore_class=1), M.SparseTopKCategoricalAccuracy(2, name="top")]  # noqa: E731
        weight = self.random().random(50).astype("float32")
        self.compare(classifier(), self.x, self.y, weight=weight, loss="sparse_categorical_crossentropy", metrics=ignoring(), weighted_metrics=ignoring())
        x = np.argsort(self.x, -1)[:, :3].astype("float32")
        net = keras.Sequential([keras.Input((3,)), layers.Rescaling(1.0)])
        net.layers[0].trainable = False
        y = self.y[:, None].astype("float32")
        self.compare(net, x, y, loss="mse", metrics=[M.SparseTopKCategoricalAccuracy(2, from_sorted_ids=True)])

    def test_metrics_hear_masks(self):
        """In evaluation; in training, Keras's JAX loses them on the way out of the gradient."""
        x = self.random().integers(0, 5, (50, 7)).astype("int32")
        y = self.random().integers(0, 4, (50, 7)).astype("int32")
        net = keras.Sequential([keras.Input((7,), dtype="int32"), layers.Embedding(5, 4, mask_zero=True), layers.LSTM(5, return_sequences=True),
                                layers.Dense(4, "softmax")])  # fmt: skip
        self.compare(net, x, y, loss="sparse_categorical_crossentropy", metrics=["accuracy", M.SparseTopKCategoricalAccuracy(2)])

    def test_outputs_have_losses_of_their_own(self):
        x = keras.Input((6,))
        h = layers.Dense(5, "tanh")(x)
        net = keras.Model(x, [layers.Dense(3, "softmax", name="kind")(h), layers.Dense(1, name="size")(h)])
        sizes = self.random().standard_normal((50, 1)).astype("float32")
        net.compile(optimizer=keras.optimizers.SGD(0.2), loss=["sparse_categorical_crossentropy", "mse"], loss_weights=[0.5, 2.0],
                    metrics=[["accuracy"], ["mae", M.R2Score()]])  # fmt: skip
        self.save(net)
        np.savez(self.folder / "both.npz", kind=self.y, size=sizes)
        self.run_jobs(JOB.replace("y.npy", "both.npz") + "validation_split = 0.3\n")
        history = net.fit(self.x, [self.y, sizes], validation_split=0.3, batch_size=16, epochs=3, shuffle=False, verbose=0).history
        self.assertIn("val_size_loss", history)
        self.expect_history(history)

        # One array of weights is that of all outputs.
        weight = self.random().random(50).astype("float32")
        self.save_arrays(w=weight)
        self.save(net)
        self.run_jobs(JOB.replace("y.npy", "both.npz") + 'sample_weight = "w.npy"\nvalidation_split = 0.3\n')
        self.expect_history(net.fit(self.x, [self.y, sizes], sample_weight=weight, validation_split=0.3, batch_size=16, epochs=3, shuffle=False, verbose=0).history)

    def test_validation_has_weights_of_its_own(self):
        net = classifier()
        net.compile(optimizer=keras.optimizers.SGD(0.2), loss="sparse_categorical_crossentropy", metrics=["accuracy"], weighted_metrics=["accuracy"])
        self.save(net)
        weight = self.random().random(20).astype("float32")
        self.save_arrays(x=self.x[:30], y=self.y[:30], vx=self.x[30:], vy=self.y[30:], vw=weight, w=np.ones(30, "float32"))
        keys = 'validation_x = "vx.npy"\nvalidation_y = "vy.npy"\nvalidation_sample_weight = "vw.npy"\n'
        self.run_jobs(JOB + keys)
        validation = (self.x[30:], self.y[30:], weight)
        history = net.fit(self.x[:30], self.y[:30], validation_data=validation, batch_size=16, epochs=3, shuffle=False, verbose=0).history
        self.expect_history(history)
        self.assertNotEqual(self.history()["val_accuracy"], self.history()["val_weighted_accuracy"])
        self.run_jobs(JOB + keys + 'sample_weight = "w.npy"\n')
        self.expect_history(history)
        self.refuse_jobs(JOB + 'validation_split = 0.2\nvalidation_sample_weight = "vw.npy"\n', "without 'validation_x'; hint: of a validation_split")
        self.refuse_jobs(JOB + keys.replace("vw", "w"), "or its weights 30")

    def test_crossentropy_is_chosen_by_the_shapes(self):
        one_hot = np.eye(3, dtype="float32")[self.y]
        binary = keras.Sequential([keras.Input((6,)), layers.Dense(1, "sigmoid")])
        for net, y, loss in ((classifier(), self.y, "crossentropy"), (classifier(), one_hot, "ce"), (binary, self.y == 1, "crossentropy")):
            self.compare(net, self.x, y, loss=loss)
        self.save(classifier())
        self.save_arrays(y=self.y + 1)
        self.refuse_jobs(JOB + 'loss = "ce"\n', "the output '")  # labels are looked at
        self.refuse_jobs(JOB + 'loss = { name = "ce", from_logits = true }\n', "is a name alone; hint: binary_crossentropy")

    def test_class_weight(self):
        weights = {0: 3.0, 2: 0.25}
        for y, loss, last in ((self.y, "sparse_categorical_crossentropy", "{ 0 = 3, 2 = 0.25 }"),
                              (np.eye(3, dtype="float32")[self.y], "categorical_crossentropy", "[3.0, 1, 0.25]")):  # fmt: skip
            net = classifier()
            net.compile(optimizer="adam", loss=loss, weighted_metrics=["accuracy"])
            self.save(net)
            self.save_arrays(y=y)
            self.run_jobs(JOB + f"class_weight = {last}\nvalidation_split = 0.2\n")
            fit = net.fit(self.x, y, batch_size=16, epochs=3, shuffle=False, verbose=0, class_weight=weights, validation_split=0.2)
            self.expect_history(fit.history)
        self.save_arrays(w=np.ones(50, "float32"))
        self.refuse_jobs(JOB + "class_weight = [1, 2]\nsample_weight = 'w.npy'\n", "hint: one of them")
        self.refuse_jobs(JOB + "class_weight = { a = 2 }\n", "classes are whole numbers; got 'a'")
        self.refuse_jobs(JOB + "class_weight = { 0 = nan }\n", "weights are finite numbers; got NaN")

    def test_the_learning_rate_falls_on_a_plateau(self):
        net = classifier()
        net.compile(optimizer=keras.optimizers.SGD(2.0, momentum=0.5), loss="sparse_categorical_crossentropy")
        self.save(net)
        table = {"monitor": "val_loss", "factor": 0.5, "patience": 2, "min_delta": 0.01, "cooldown": 1, "min_lr": 0.1}
        text = ", ".join(f"{key} = {json.dumps(value)}" for key, value in table.items())
        job = JOB.replace("epochs = 3", "epochs = 40") + f"validation_split = 0.3\nreduce_on_plateau = {{ {text} }}\n"
        self.run_jobs(job)
        plateau = keras.callbacks.ReduceLROnPlateau(**table)
        history = net.fit(self.x, self.y, batch_size=16, epochs=40, shuffle=False, verbose=0, validation_split=0.3, callbacks=[plateau]).history
        self.assertGreater(len(set(history["learning_rate"])), 2)
        self.expect_history(history, relative=2e-2)
        self.assertEqual(self.history()["learning_rate"], history["learning_rate"])
        opened = keras.models.load_model(self.folder / "out/a/model.keras")
        self.assertEqual(float(opened.optimizer.learning_rate), float(net.optimizer.learning_rate))
        self.refuse_jobs(job + 'schedule = { name = "cosine_decay", decay_steps = 9 }\noptimizer = "sgd"\n', "which a schedule sets")
        self.refuse_jobs(job.replace("val_loss", "val_los"), "did you mean 'val_loss'")
        self.refuse_jobs(job.replace("0.5", "1.5"), "'factor' is a finite number in [0,1)")

    def test_what_is_monitored_is_known_by_its_class_not_its_name(self):
        for metric, monitor in ((M.SparseCategoricalCrossentropy(name="dist"), "val_dist"), (M.SparseCategoricalAccuracy(name="logic"), "val_logic")):
            net = classifier()
            net.compile(optimizer=keras.optimizers.SGD(1.0), loss="sparse_categorical_crossentropy", metrics=[metric])
            self.save(net)
            table = {"monitor": monitor, "patience": 1, "min_delta": 0.01}
            text = ", ".join(f"{key} = {json.dumps(value)}" for key, value in table.items())
            self.run_jobs(JOB.replace("epochs = 3", "epochs = 20") + f"validation_split = 0.3\nearly_stopping = {{ {text} }}\n")
            stop = keras.callbacks.EarlyStopping(**table)
            history = net.fit(self.x, self.y, batch_size=16, epochs=20, shuffle=False, verbose=0, validation_split=0.3, callbacks=[stop]).history
            self.assertEqual(len(self.history()["loss"]), len(history["loss"]))

    def test_what_is_no_single_number_is_refused(self):
        self.save(classifier())
        self.save_arrays(y=np.eye(3, dtype="float32")[self.y])
        for metric, words in {
            '"f1_score"': "average =",
            '{ name = "precision", thresholds = [0.1, 0.2] }': "one threshold",
            '{ name = "r2_score", class_aggregation = "none" }': "class_aggregation is",
            '{ name = "mean_io_u" }': "num_classes",
            '"f1_skore"': "did you mean 'f1_score'",
            '{ name = "auc", curve = "XY" }': "curve 'XY'",
            '{ name = "precision", class_id = 7 }': "class_id 7",
            '"sparse_top_k_categorical_accuracy"': "metric 'sparse_top_k_categorical_accuracy': targets [16, 3] do not go with predictions [16, 3]",
        }.items():
            self.refuse_jobs(JOB + f'loss = "categorical_crossentropy"\nmetrics = [{metric}]\n', words)
        self.save_arrays(y=self.y)
        self.refuse_jobs(JOB + 'loss = "sparse_categorical_crossentropy"\nmetrics = ["top_k_categorical_accuracy"]\n', "targets [16] do not go with predictions [16, 3]")


if __name__ == "__main__":
    main()
