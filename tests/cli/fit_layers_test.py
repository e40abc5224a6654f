"""Layers that draw while training: their numbers are not Keras's, their distributions are."""

import numpy as np

from fit_jobs import FitTest, columns, keras, layers
from program import main

ROWS, STEPS = 1500, 4


class FitLayers(FitTest):
    def squares(self, layer, x, calls=1):
        """By sample: the squared output of a fixed weighing of what the layer gives in training, as Keras draws it; and the same by ours, a mean a step."""
        net = keras.Sequential([keras.Input(x.shape[1:]), layer, layers.Flatten(), layers.Dense(1, use_bias=False)])
        self.save(net)
        theirs = np.concatenate([np.ravel(net(x, training=True)) ** 2 for _ in range(calls)])
        self.save_arrays(x=x, y=np.zeros((len(x), 1), "float32"))
        self.run_jobs(
            f"""
            [[job]]
            name = "a"
            model = "a.keras"
            x = "x.npy"
            y = "y.npy"
            loss = "mse"
            optimizer = {{ name = "sgd", learning_rate = 0.0 }}
            batch_size = {len(x)}
            epochs = {STEPS * calls}
            shuffle = false
            seed = 3
            """,
            "--log-steps",
        )
        return theirs, np.array(columns(self.folder / "out/a/steps.csv")["loss"])

    def expect_alike(self, layer, x, calls=1):
        theirs, ours = self.squares(layer, x, calls)
        plain = np.ravel(keras.models.load_model(self.folder / "a.keras")(x, training=False)) ** 2
        # Means of independent draws, by five deviations; a batch with one draw for all counts as one.
        count = len(theirs) if calls == 1 else calls
        deviation = np.std(theirs) if calls == 1 else np.std([np.mean(part) for part in np.split(theirs, calls)])
        limit = 5 * deviation * np.sqrt(1 / count + 1 / (count * STEPS))
        self.assertLess(abs(np.mean(ours) - np.mean(theirs)), limit, layer.name)
        self.assertGreater(np.std(ours), 0, layer.name)  # steps draw anew
        return abs(np.mean(plain) - np.mean(theirs)), limit

    def test_augmentation_has_the_distribution_of_keras(self):
        random = np.random.default_rng(2)
        ramp = np.linspace(0, 1, 8)[:, None] + np.linspace(0, 0.6, 9)[None, :] ** 2
        x = (ramp[None, :, :, None] * 100 + random.normal(60, 8, (ROWS, 8, 9, 2))).astype("float32")
        told_apart = 0
        for layer in (
            layers.RandomFlip("horizontal"),
            layers.RandomFlip("vertical"),
            layers.RandomFlip(),
            layers.RandomRotation(0.15),
            layers.RandomRotation((0.1, 0.2), fill_mode="constant", interpolation="nearest"),
            layers.RandomTranslation(0.3, (-0.2, 0.4), fill_mode="nearest"),
            layers.RandomTranslation((0.1, 0.3), 0.0, fill_mode="wrap"),
            layers.RandomZoom(0.4),
            layers.RandomZoom((0.2, 0.6), (-0.3, 0.0), fill_mode="constant", fill_value=7.0),
            layers.RandomContrast(0.6),
            layers.RandomBrightness((0.1, 0.4)),
        ):
            difference, limit = self.expect_alike(layer, x)
            told_apart += difference > limit
        self.assertGreater(told_apart, 7)  # the comparison sees what most of them do

    def test_a_random_crop_is_one_for_the_batch(self):
        x = np.random.default_rng(2).normal(0, 1, (3, 9, 8, 1)).astype("float32") + np.linspace(0, 2, 9, dtype="float32")[:, None, None]
        net = keras.Sequential([keras.Input((9, 8, 1)), layers.RandomCrop(4, 5), layers.GlobalAveragePooling2D(), layers.Dense(1, use_bias=False)])
        theirs = np.array([np.mean(np.ravel(net(x, training=True)) ** 2) for _ in range(150)])
        self.save(net)
        self.save_arrays(x=x, y=np.zeros((3, 1), "float32"))
        self.run_jobs(
            '[[job]]\nname = "a"\nmodel = "a.keras"\nx = "x.npy"\ny = "y.npy"\nloss = "mse"\noptimizer = { name = "sgd", learning_rate = 0.0 }\nepochs = 600\nshuffle = false\n', "--log-steps"
        )
        ours = np.array(columns(self.folder / "out/a/steps.csv")["loss"])
        places = len(np.unique(np.round(ours, 5)))
        self.assertTrue(20 <= places <= 24, places)  # 6 x 4 of them
        self.assertLess(abs(ours.mean() - theirs.mean()), 5 * theirs.std() * np.sqrt(1 / 150 + 1 / 600))

    def test_recurrent_dropout_has_the_distribution_of_keras(self):
        x = np.random.default_rng(2).normal(0, 1.5, (ROWS, 6, 3)).astype("float32")
        for layer in (
            layers.LSTM(5, recurrent_dropout=0.4, recurrent_initializer="random_normal"),
            layers.GRU(5, recurrent_dropout=0.4),
            layers.GRU(5, recurrent_dropout=0.4, reset_after=False),
            layers.SimpleRNN(5, recurrent_dropout=0.4),
            layers.Bidirectional(layers.LSTM(3, recurrent_dropout=0.5, return_sequences=True)),
        ):
            self.expect_alike(layer, x)

    def test_what_is_not_drawn_is_refused_by_name(self):
        self.save(keras.Sequential([keras.Input((4, 4, 3)), layers.RandomHue(0.2), layers.Flatten(), layers.Dense(3)]))
        self.save_arrays(x=np.zeros((4, 4, 4, 3), "float32"), y=np.zeros((4, 3), "float32"))
        self.refuse_jobs('[[job]]\nname = "a"\nmodel = "a.keras"\nx = "x.npy"\ny = "y.npy"\nloss = "mse"\n', "augments its inputs at random while training")


if __name__ == "__main__":
    main()
