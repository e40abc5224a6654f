"""Files of Keras 2 as starting models: trained by the rules of Keras 3, written as .keras that it opens."""

import numpy as np
import tf_keras

from fit_jobs import FitTest, columns, keras
from program import main

L = tf_keras.layers


class FitLegacy(FitTest):
    def expect_trained(self, net, xs, y, loss="mse"):
        """The first loss is that of Keras 2, the next ones are those of a model of Keras 3 that goes on from the same weights."""
        net.save(self.folder / "old.h5")
        np.savez(self.folder / "x.npz", *xs)
        np.save(self.folder / "y.npy", y)
        job = '[[job]]\nname = "{}"\nmodel = "old.h5"\nx = "x.npz"\ny = "y.npy"\nloss = "{}"\noptimizer = {{ name = "sgd", learning_rate = {} }}\nshuffle = false\nepochs = 4\nbatch_size = 100\n'
        self.run_jobs(job.format("still", loss, 0.0) + job.format("a", loss, 0.1), "--log-steps")
        net.compile(loss=loss, optimizer="sgd")
        begin = net.evaluate(list(xs) if len(xs) > 1 else xs[0], y, verbose=0, batch_size=100)
        losses = columns(self.folder / "out/a/steps.csv")["loss"]
        self.expect_close(losses[0], begin)
        again = keras.models.load_model(self.folder / "out/still/model.keras")
        for ours, theirs in zip(sorted(w.tobytes() for w in again.get_weights()), sorted(w.tobytes() for w in net.get_weights())):
            self.assertEqual(ours, theirs)
        again.compile(loss=loss, optimizer=keras.optimizers.SGD(0.1))
        expected = again.fit(list(xs) if len(xs) > 1 else xs[0], y, epochs=4, batch_size=100, shuffle=False, verbose=0).history["loss"]
        self.expect_close(losses, expected)
        self.assertLess(losses[-1], losses[0])
        self.assertEqual(self.succeed("inspect", "out/a/model.keras").err, "")  # ours again

    def test_a_sequence_of_layers(self):
        tf_keras.utils.set_random_seed(1)
        self.expect_trained(tf_keras.Sequential([L.Input((6,)), L.Dense(8, "tanh"), L.Dense(3, "softmax")]), [self.x], self.y, "sparse_categorical_crossentropy")

    def test_a_graph_with_a_recurrent_layer(self):
        tf_keras.utils.set_random_seed(1)
        series, plain = L.Input((5, 4)), L.Input((6,))
        joined = L.Concatenate()([L.LSTM(6)(series), L.Dense(4, activation="relu")(plain)])
        random = np.random.default_rng(1)
        xs = [random.standard_normal((50, 5, 4)).astype("float32"), self.x]
        self.expect_trained(tf_keras.Model([series, plain], L.Dense(2)(joined)), xs, random.standard_normal((50, 2)).astype("float32"))

    def test_images(self):
        tf_keras.utils.set_random_seed(1)
        x = np.random.default_rng(1).standard_normal((50, 8, 8, 1)).astype("float32")
        net = tf_keras.Sequential([L.Input((8, 8, 1)), L.Conv2D(4, 3, activation="relu"), L.MaxPooling2D(), L.Flatten(), L.Dense(3, "softmax")])
        self.expect_trained(net, [x], self.y, "sparse_categorical_crossentropy")

    def test_a_depthwise_kernel_has_another_name(self):
        tf_keras.utils.set_random_seed(1)
        x = np.random.default_rng(1).standard_normal((50, 8, 8, 2)).astype("float32")
        layers = [L.DepthwiseConv2D(3, depth_multiplier=2), L.ReLU(), L.SeparableConv2D(3, 3), L.Flatten(), L.Dense(3, "softmax")]
        self.expect_trained(tf_keras.Sequential([L.Input((8, 8, 2)), *layers]), [x], self.y, "sparse_categorical_crossentropy")

    def test_a_frozen_base_with_a_new_head(self):
        """Axes in lists, slashes in names, a Sequential inside whose calls count from one, a model in a Sequential, generators of random numbers."""
        tf_keras.utils.set_random_seed(1)
        image = L.Input((8, 8, 2))
        block = tf_keras.Sequential([L.Input((8, 8, 4)), L.SeparableConv2D(4, 3, name="block/conv"), L.BatchNormalization()])
        out = block(L.BatchNormalization(name="stem/bn")(L.Conv2D(4, 3, padding="same", name="stem/conv")(image)))
        base = tf_keras.Model(image, L.GlobalAveragePooling2D()(L.Conv2DTranspose(3, 3)(out)))
        base.trainable = False
        net = tf_keras.Sequential([L.Input((8, 8, 2)), L.SpatialDropout2D(0.0), L.RandomBrightness(0.0), base, L.Dense(3, "softmax")])
        x = np.random.default_rng(1).random((50, 8, 8, 2)).astype("float32")
        self.expect_trained(net, [x], self.y, "sparse_categorical_crossentropy")

    def test_the_first_layer_of_a_sequence_has_the_shape(self):
        tf_keras.utils.set_random_seed(1)
        layers = [L.Embedding(9, 4, batch_input_shape=(None, 5)), L.GRU(4, reset_after=False), L.Dense(3, "softmax")]
        x = np.random.default_rng(1).integers(0, 9, (50, 5)).astype("float32")
        self.expect_trained(tf_keras.Sequential(layers), [x], self.y, "sparse_categorical_crossentropy")

    def test_tensors_as_named_arguments(self):
        tf_keras.utils.set_random_seed(1)
        series = L.Input((5, 4))
        mixed = L.MultiHeadAttention(2, 3)(series, value=L.Dense(4)(series))
        x = np.random.default_rng(1).standard_normal((50, 5, 4)).astype("float32")
        self.expect_trained(tf_keras.Model(series, L.Dense(3, "softmax")(L.Flatten()(mixed))), [x], self.y, "sparse_categorical_crossentropy")

    def test_an_archive_of_keras_2(self):
        tf_keras.utils.set_random_seed(1)
        image = L.Input((6,))
        inner = tf_keras.Sequential([L.Input((6,)), L.Dense(4)])
        tf_keras.Model(image, L.Dense(2)(inner(image))).save(self.folder / "old.keras")
        self.save_arrays(y=self.x[:, :2])
        self.run_jobs('[[job]]\nname = "a"\nmodel = "old.keras"\nx = "x.npy"\ny = "y.npy"\nloss = "mse"\n')
        self.assertEqual(keras.models.load_model(self.folder / "out/a/model.keras").count_params(), 38)

    def test_layers_that_keras_3_does_not_have_are_named(self):
        net = tf_keras.Sequential([L.Input((6,)), L.Dense(3), L.ThresholdedReLU(0.1)])
        net.save(self.folder / "old.h5")
        (self.folder / "jobs.toml").write_text('[[job]]\nname = "a"\nmodel = "old.h5"\nx = "x.npy"\ny = "y.npy"\nloss = "mse"\n')
        self.save_arrays(y=self.x[:, :3])
        self.assertIn("Keras 3 has no ThresholdedReLU: the trained model is for tutti alone", self.run_program("fit", "jobs.toml", "--out", "out").err)
        self.succeed("inspect", "out/a/model.keras")

    def test_what_a_file_was_compiled_with_is_told_to_stay_behind(self):
        net = tf_keras.Sequential([L.Input((6,)), L.Reshape((2, 3)), L.LSTM(4, recurrent_activation="hard_sigmoid"), L.Dense(1)])
        net.compile("adam", "mse")
        net.save(self.folder / "old.h5")
        self.save_arrays(y=self.y.astype("float32"))
        job = '[[job]]\nname = "a"\nmodel = "old.h5"\nx = "x.npy"\ny = "y.npy"\n'
        self.refuse_jobs(job, "there is no loss, and what a file of Keras 2 was compiled with is not taken along")
        (self.folder / "jobs.toml").write_text(job + 'loss = "mse"\n')
        said = self.run_program("fit", "jobs.toml", "--out", "out").err
        self.assertIn("rmsprop trains it", said)
        self.assertIn("hard_sigmoid is x / 6 + 0.5 in Keras 3", said)
        (self.folder / "jobs.toml").write_text(job.replace("old.h5", "out/a/model.keras"))
        self.succeed("fit", "jobs.toml", "--out", "more")

    def test_losses_that_the_model_adds_are_not_left_out(self):
        x = L.Input((6,))
        net = tf_keras.Model(x, L.Dense(6)(x))
        net.add_loss(tf_keras.backend.mean(net.output))
        net.save(self.folder / "old.h5")
        np.save(self.folder / "x.npy", self.x)
        self.refuse_jobs('[[job]]\nname = "a"\nmodel = "old.h5"\nx = "x.npy"\ny = "x.npy"\nloss = "mse"\nepochs = 1\n', "training with what model.add_loss() or add_metric() added is not done")


if __name__ == "__main__":
    main()
