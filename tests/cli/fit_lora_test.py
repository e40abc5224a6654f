"""Layers with LoRA: their kernels stay, their factors are trained; a .keras file has the factors merged into the kernels, and new ones of zero."""

import numpy as np

from fit_jobs import FitTest, columns, keras, layers
from program import main

JOB = '[[job]]\nname = "a"\nmodel = "{}"\nx = "x.npy"\ny = "y.npy"\nloss = "sparse_categorical_crossentropy"\noptimizer = {{ name = "adam", learning_rate = 0.02 }}\nshuffle = false\nepochs = 6\nbatch_size = 25\n'


class FitLora(FitTest):
    def net(self):
        """With factors that are not zero, as after some training."""
        net = keras.Sequential(
            [
                keras.Input((6,), dtype="int32"),
                layers.Embedding(9, 5),
                layers.EinsumDense("abc,cd->abd", (6, 4), bias_axes="d", activation="tanh"),
                layers.Conv1D(4, 2, activation="relu"),
                layers.Flatten(),
                layers.Dense(7, "tanh", kernel_regularizer="l2"),
                layers.Dense(3, "softmax"),
            ]
        )
        for layer, alpha in zip((net.layers[0], net.layers[1], net.layers[2], net.layers[4]), (None, 3.0, 1.0, 8.0)):
            layer.enable_lora(2, lora_alpha=alpha)
        random = np.random.default_rng(5)
        for variable in net.trainable_variables:
            variable.assign(variable + 0.2 * random.standard_normal(variable.shape))
        self.words = random.integers(0, 9, (50, 6)).astype("int32")
        self.save_arrays(x=self.words)
        return net

    def train(self, net):
        net.compile(loss="sparse_categorical_crossentropy", optimizer=keras.optimizers.Adam(0.02))
        losses = []
        for step in range(12):
            part = slice(step % 2 * 25, step % 2 * 25 + 25)
            net.reset_metrics()
            losses.append(float(net.train_on_batch(self.words[part], self.y[part], return_dict=True)["loss"]))
        return losses

    def expect_trained_as(self, net, file):
        losses = self.train(net)
        self.run_jobs(JOB.format(file), "--log-steps")
        self.expect_close(columns(self.folder / "out/a/steps.csv")["loss"], losses)
        again = keras.models.load_model(self.folder / "out/a/model.keras")
        self.assertEqual([layer.lora_rank for layer in again.layers if getattr(layer, "lora_rank", None)], [2, 2, 2, 2])
        self.expect_close(again.predict(self.words, verbose=0), net.predict(self.words, verbose=0), 1e-3)
        self.succeed("predict", "out/a/model.keras", "x.npy", "-o", "p.npy")
        self.expect_close(np.load(self.folder / "p.npy"), net.predict(self.words, verbose=0), 1e-3)
        return losses

    def test_a_keras_file_begins_with_merged_factors(self):
        self.save(self.net())
        loaded = keras.models.load_model(self.folder / "a.keras")
        kernel = np.array(loaded.layers[4]._kernel)
        self.expect_trained_as(loaded, "a.keras")
        again = keras.models.load_model(self.folder / "out/a/model.keras")
        np.testing.assert_array_equal(again.layers[4]._kernel, kernel)

    def test_an_h5_file_goes_on_with_its_factors(self):
        net = self.net()
        net.save(self.folder / "a.h5")
        losses = self.expect_trained_as(net, "a.h5")
        self.assertLess(losses[-1], losses[0])


if __name__ == "__main__":
    main()
