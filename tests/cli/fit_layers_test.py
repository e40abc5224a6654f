"""Layers that draw while training: their numbers are not Keras's, their distributions are."""

import zipfile

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

    def test_what_comes_from_h5_is_opened_by_keras_whatever_it_reads_from_h5(self):
        x = keras.Input((5, 6))
        net = keras.Model(x, layers.Dense(1)(layers.Flatten()(layers.Softmax(axis=(1, 2))(keras.ops.abs(x)))))
        net.save(self.folder / "a.h5")
        given = np.random.default_rng(1).standard_normal((10, 5, 6)).astype("float32")
        self.save_arrays(x=given, y=np.zeros((10, 1), "float32"))
        self.run_jobs('[[job]]\nname = "a"\nmodel = "a.h5"\nx = "x.npy"\ny = "y.npy"\nloss = "mse"\noptimizer = { name = "sgd", learning_rate = 0.0 }\nepochs = 1\n')
        self.expect_close(keras.models.load_model(self.folder / "out/a/model.keras")(given), net(given))

    def expect_alike(self, layer, x, calls=1):
        if self.sanitized:  # what is compared does not depend on it
            self.squares(layer, x[:50])
            return np.inf, 0
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

    def test_colours_and_parts_have_the_distribution_of_keras(self):
        random = np.random.default_rng(4)
        ramp = np.linspace(0, 1, 7)[:, None, None] + np.linspace(0, 0.6, 8)[None, :, None] ** 2 + np.array([0.0, 0.7, 0.3])
        x = np.clip(ramp * 90 + random.normal(30, 12, (ROWS, 7, 8, 3)), 0, 255).astype("float32")
        told_apart = 0
        for layer in (
            layers.RandomGrayscale(0.6),
            layers.RandomInvert(0.7),
            layers.RandomSaturation((0.6, 0.9), value_range=(0, 1)),
            layers.RandomHue(0.8),
            layers.RandomColorDegeneration((0.3, 0.9)),
            layers.RandomPosterization((1, 4)),
            layers.Solarization(0.3, 0.6),
            layers.RandomSharpness((0.6, 1.0)),
            layers.RandomColorJitter(brightness_factor=(0.1, 0.3), contrast_factor=0.4, saturation_factor=(0.4, 0.6), hue_factor=0.5),
            layers.RandomShear((0.1, 0.4), (0.0, 0.3)),  # a number becomes a range that Keras does not read back
            layers.RandomShear(0.0, (0.2, 0.5), fill_mode="constant", fill_value=9.0),
            layers.RandomErasing(0.9),
            layers.RandomErasing(1.0, scale=(0.1, 0.5), fill_value=200.0),
        ):
            difference, limit = self.expect_alike(layer, x)
            told_apart += difference > limit
        self.assertGreater(told_apart, 8)
        # One deviation for a batch.
        self.expect_alike(layers.RandomGaussianBlur(1.0, kernel_size=5, sigma=(0.3, 1.0)), x[:20], calls=60)

    def test_mixed_images_and_perspectives_have_the_distribution_of_keras(self):
        random = np.random.default_rng(5)
        ramp = np.linspace(0, 1, 8)[:, None] + np.linspace(0, 0.6, 9)[None, :] ** 2
        signs = np.where(random.integers(0, 2, (ROWS, 1, 1, 1)), 1, -1)  # so that most mixtures are smaller
        x = (signs * (ramp[None, :, :, None] * 100 + random.normal(60, 8, (ROWS, 8, 9, 2)))).astype("float32")
        told_apart = 0
        for layer in (
            layers.MixUp(0.2),
            layers.MixUp(3.0),
            layers.CutMix((0.9, 0.9)),  # else one number is drawn for a batch
            layers.RandomPerspective(1.0, 0.8),
            layers.RandomPerspective((0.5, 0.7), 1.0, interpolation="nearest", fill_value=90.0),
        ):
            difference, limit = self.expect_alike(layer, x)
            told_apart += difference > limit
        self.assertGreater(told_apart, 3)
        self.expect_alike(layers.CutMix(), x[:40], calls=60)

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
        x = np.random.default_rng(3).normal(0, 1.5, (400, 4, 6, 2)).astype("float32")
        self.expect_alike(layers.ConvLSTM1D(3, 2, recurrent_dropout=0.5, recurrent_initializer="random_normal"), x)

    def test_layers_that_pick_among_layers_have_the_distribution_of_keras(self):
        """Which layers, and how strong a distortion is, is one draw for a batch."""
        random = np.random.default_rng(4)
        ramp = np.linspace(0, 1, 7)[:, None, None] + np.linspace(0, 0.6, 8)[None, :, None] ** 2 + np.array([0.0, 0.7, 0.3])
        x = np.clip(ramp * 90 + random.normal(30, 12, (6, 7, 8, 3)), 0, 255).astype("float32")
        self.expect_alike(layers.RandAugment(num_ops=3, factor=(0.2, 0.4), interpolation="nearest"), x, calls=20)
        self.expect_alike(layers.AugMix(num_chains=2, chain_depth=2), x, calls=20)
        self.expect_alike(layers.AugMix(alpha=0.3, all_ops=False, value_range=(0, 200)), x, calls=20)
        x = np.clip(random.normal(100, 60, (4, 40, 48, 1)), 0, 255).astype("float32")
        self.expect_alike(layers.RandomElasticTransform((0.8, 0.9), (0.4, 1.0)), x, calls=15)

    def test_nothing_is_picked_or_moved_where_the_factors_say_so(self):
        x = np.random.default_rng(5).uniform(0, 255, (20, 7, 8, 3)).astype("float32")
        for layer in (layers.RandAugment(num_ops=0), layers.RandomElasticTransform(0.0), layers.RandomElasticTransform(scale=0.0)):
            theirs, ours = self.squares(layer, x)
            np.testing.assert_allclose(ours, np.mean(theirs), rtol=1e-5, err_msg=layer.name)

    def test_what_is_picked_does_as_in_keras(self):
        """With the factor 0 each layer has one result, so a step has one of a few losses."""
        x = np.clip(np.random.default_rng(6).normal(90, 50, (5, 6, 7, 3)), 0, 255).astype("float32")
        for value_range in ((0, 255), (0, 1)):
            images = x if value_range == (0, 255) else x / 255
            layer = layers.RandAugment(num_ops=1, factor=0.0, value_range=value_range)
            _, ours = self.squares(layer, images, calls=40)
            *_, flat, dense = keras.models.load_model(self.folder / "a.keras").layers
            wanted = np.array([np.mean(np.square(dense(flat(getattr(layer, name)(images, training=True))))) for name in layer._AUGMENT_LAYERS])
            nearest = np.argmin(np.abs(ours[:, None] - wanted), -1)
            np.testing.assert_allclose(ours, wanted[nearest], rtol=1e-4)
            self.assertEqual(len(np.unique(np.round(wanted[nearest], 3))), len(np.unique(np.round(wanted, 3))))

    def test_equalization_by_itself_does_nothing_in_a_model(self):
        """Its symbolic output is its input, so that Keras's models go around it."""
        x = np.random.default_rng(5).uniform(0, 255, (20, 7, 8, 3)).astype("float32")
        theirs, ours = self.squares(layers.Equalization(), x)
        np.testing.assert_allclose(ours, np.mean(theirs), rtol=1e-5)

    def test_sizes_that_are_drawn_are_refused_by_name(self):
        """RandomHeight of Keras 2, under the name of a layer that Keras 3 can write."""
        self.save(keras.Sequential([keras.Input((4, 4, 3)), layers.RandomZoom(0.2), layers.GlobalAveragePooling2D(), layers.Dense(3)]))
        with zipfile.ZipFile(self.folder / "a.keras") as file:
            parts = {name: file.read(name) for name in file.namelist()}
        parts["config.json"] = parts["config.json"].replace(b"RandomZoom", b"RandomHeight")
        with zipfile.ZipFile(self.folder / "a.keras", "w") as file:
            for name, content in parts.items():
                file.writestr(name, content)
        self.save_arrays(x=np.zeros((4, 4, 4, 3), "float32"), y=np.zeros((4, 3), "float32"))
        self.refuse_jobs('[[job]]\nname = "a"\nmodel = "a.keras"\nx = "x.npy"\ny = "y.npy"\nloss = "mse"\n', "gives each batch a size that is drawn while training")


if __name__ == "__main__":
    main()
