"""tutti fit goes on where a file's optimizer stopped, whoever wrote the file, and Keras goes on from ours."""

import shutil
import warnings

from fit_jobs import FitTest, classifier, job_in_order, keras, layers
from program import main


class GoesOn(FitTest):
    def test_a_mixed_model_with_a_float32_head_goes_on(self):
        """Keras puts a LossScaleOptimizer around the optimizer, of which the file's config says nothing: only its variables do."""
        keras.config.set_dtype_policy("mixed_float16")
        try:
            x = keras.Input((6,))
            net = keras.Model(x, layers.Dense(3, "softmax", dtype="float32")(layers.Dense(8, "tanh")(x)))
            for optimizer in (keras.optimizers.SGD(0.5), keras.optimizers.SGD(0.5, momentum=0.5)):
                net.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy")
                for _ in range(2):  # an optimizer that has not begun, and one that has
                    self.save(net)
                    self.run_jobs(job_in_order("a", 3))
                    self.expect_close(self.history()["loss"], self.history_in_order(net, 3)["loss"], 1e-2)
        finally:
            keras.config.set_dtype_policy("float32")

    def test_nadam_in_a_loss_scale_optimizer_goes_on_without_what_keras_does_not_keep(self):
        self.save(classifier())
        optimizer = 'optimizer = { name = "loss_scale_optimizer", initial_scale = 32.0, inner_optimizer = { name = "nadam", learning_rate = 0.05 } }\n'
        loss = 'loss = "sparse_categorical_crossentropy"\n'
        self.run_jobs(job_in_order("a", 4, loss + optimizer))
        whole = self.history()["loss"]
        self.run_jobs(job_in_order("a", 2, loss + optimizer))
        shutil.copy(self.folder / "out/a/model.keras", self.folder / "a.keras")
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # Keras warns where it leaves variables of an optimizer out
            opened = keras.models.load_model(self.folder / "a.keras")
        self.assertEqual(int(opened.optimizer.inner_optimizer.iterations), 8)
        self.run_jobs(job_in_order("a", 2))
        self.expect_close(self.history()["loss"], whole[2:], 1e-4)

    def test_a_compiled_h5_file_goes_on_with_its_optimizer(self):
        net = classifier()
        net.compile(loss=keras.losses.SparseCategoricalCrossentropy(), optimizer=keras.optimizers.Adam(0.03, beta_1=0.8),
                    metrics=[keras.metrics.SparseCategoricalAccuracy()])  # fmt: skip
        self.history_in_order(net, 1)
        self.save(net, "a.h5")
        self.run_jobs(job_in_order("a", 3).replace("a.keras", "a.h5"))
        self.expect_history(self.history_in_order(net, 3))
        opened = keras.models.load_model(self.folder / "out/a/model.keras")
        self.assertEqual((type(opened.optimizer), int(opened.optimizer.iterations)), (keras.optimizers.Adam, 16))
        self.expect_close(self.history_in_order(opened, 1)["loss"], self.history_in_order(net, 1)["loss"], 1e-3)

    def test_an_optimizer_of_other_weights_starts_anew_as_in_keras(self):
        """Layers frozen or set free behind the back of `compile`: the file's optimizer is of another set of weights. Of a head that is
        frozen, its first variables even have the right shapes."""
        for layer, trainable in ((0, False), (1, False), (0, True)):
            net = classifier()
            net.layers[layer].trainable = not trainable
            net.compile(loss="sparse_categorical_crossentropy", optimizer=keras.optimizers.SGD(0.05, momentum=0.9))
            self.history_in_order(net, 2)
            net.layers[layer].trainable = trainable
            self.save(net)
            with self.subTest(layer=layer, trainable=trainable), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Keras says that it skips the variables
                opened = keras.models.load_model(self.folder / "a.keras")
                (self.folder / "jobs.toml").write_text(job_in_order("a", 3))
                done = self.run_program("fit", "jobs.toml", "--out", "out")
                self.assertEqual(done.code, 0, done.err)
                self.assertIn("job 'a': the file's optimizer has", done.err)
                self.expect_close(self.history()["loss"], self.history_in_order(opened, 3)["loss"])


if __name__ == "__main__":
    main()
