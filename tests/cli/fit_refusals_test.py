"""Job files that tutti fit refuses, each in one line that says what is wrong."""

import numpy as np

from fit_jobs import FitTest, classifier, keras
from program import main

GOOD = '[[job]]\nname = "a"\nmodel = "a.keras"\nx = "x.npy"\ny = "y.npy"\nloss = "sparse_categorical_crossentropy"\n'


class FitRefusals(FitTest):
    def test_wrong_job_files_are_refused_in_one_line(self):
        self.save(classifier())
        good = '[[job]]\nname = "a"\nmodel = "a.keras"\nx = "x.npy"\ny = "y.npy"\n'
        for text, words in {
            good + "epoch = 3": "did you mean 'epochs'",
            good + "epochs = 2000000000": "between 1 and 1000000000",
            good + "batch_size = 0": "'batch_size' is a whole number",
            good + good: "two jobs have the name 'a'",
            good.replace('"a"', '"../a"', 1): "'name' is that of a folder",
            good.replace('x = "x.npy"\n', ""): "has no 'x'",
            "[job]\nname = 3": "hint: [[job]]",
            "[[jobs]]": "did you mean 'job'",
            good + 'build = "dense 3"': "either 'model' or 'build'",
            good.replace('"a"', '"report.html"', 1): "'name' is that of a folder",
            "name = ": "[toml] 'jobs.toml': line 1, column 8: ",
            "a = 1\n[)b]": "[toml] 'jobs.toml': ",
        }.items():
            (self.folder / "jobs.toml").write_text(text)
            self.refuse(1, words, "fit", "jobs.toml", "--out", "out")
        self.refuse(2, "--out DIR is needed", "fit", "jobs.toml")
        self.refuse(2, "did you mean 'cpu'", "fit", "jobs.toml", "--out", "out", "--device", "cp")
        self.assertFalse((self.folder / "out").exists())

    def test_numbers_that_make_no_sense_are_refused_in_one_line(self):
        self.save(classifier())
        good = GOOD
        for text, words in {
            good + 'optimizer = { name = "sgd", learning_rate = nan }': "'learning_rate' is a finite number from 0; got NaN",
            good + 'optimizer = { name = "sgd", learning_rate = -0.1 }': "'learning_rate' is a finite number from 0",
            good + 'optimizer = { name = "sgd", learning_rate = "fast" }': "'learning_rate' is a finite number from 0",
            good + 'optimizer = { name = "sgd", momentum = 7.0 }': "'momentum' is a finite number in [0,1]; got 7",
            good + 'optimizer = { name = "loss_scale_optimizer" }': "has an 'inner_optimizer'",
            good + 'schedule = { name = "cosine_decay", decay_steps = inf }': "'decay_steps' is a finite number above 0",
            good + 'optimizer = { name = "lion", beta_1 = 0 }': "'beta_1' is a finite number in (0,1]; got 0",
            good + 'optimizer = { name = "sgd", use_ema = true, ema_overwrite_frequency = 2.5 }': "'ema_overwrite_frequency' is a whole number from 0; got 2.5",
            good + 'early_stopping = { monitor = "loss", min_delta = nan }': "'min_delta' is a finite number; got NaN",
            good + 'early_stopping = { monitor = "loss", baseline = inf }': "'baseline' is a finite number",
            good + 'reduce_on_plateau = { monitor = "loss", min_lr = nan }': "'min_lr' is a finite number",
            good + 'metrics = [{ name = "f1_score", threshold = 2 }]': "'threshold' is a finite number in (0,1]; got 2",
            good + 'loss_weights = "much"': "loss_weights are numbers",
            good + 'reduce_on_plateau = { monitor = "loss", factor = -1.0 }': "'factor' is a finite number in [0,1); got -1",
            good.replace("sparse_categorical_crossentropy", "categorical_generalized_cross_entropy").replace("y.npy", "beyond.npy"): "the label of sample 2 is 9",
            good.replace("y.npy", "huge.npy"): "sample 3 of 'huge.npy' holds 1099511627776",
        }.items():
            self.save_arrays(beyond=np.where(np.arange(50) == 2, 9, self.y), huge=np.where(np.arange(50) == 3, 1 << 40, self.y))
            self.refuse_jobs(text, words)
        (self.folder / "jobs.toml").write_text(good)
        (self.folder / "file").write_text("")
        self.refuse(1, "cannot make the folder 'file/out'", "fit", "jobs.toml", "--out", "file/out")

    def test_misspelt_and_short_keys_get_a_hint(self):
        self.save(classifier())
        for keys, words in {
            'optimizer = { name = "sgd", lr = 0.1 }': "has no argument 'lr' (did you mean 'learning_rate'?)",
            "optimizer = { lr = 0.1 }": "which has no 'name'",
            'optimizer = { nmae = "sgd" }': "(did you mean 'name'?)",
            'schedule = "cosine"': "did you mean 'cosine_decay'",
            'early_stopping = { monitor = "loss", restore_best = true }': "did you mean 'restore_best_weights'",
            'metrics = { denes_1 = ["mae"] }': "which the model does not have (did you mean 'dense_1'?)",
            "bs = 3": "did you mean 'batch_size'",
            "val_split = 0.1": "did you mean 'validation_split'",
            "lr = 0.1": "there is no key 'lr'; hint: optimizer = { name",
            "learning_rate = 0.1": "there is no key 'learning_rate'; hint: optimizer = { name",
        }.items():
            net = classifier()
            net.layers[-1].name = "dense_1"
            self.save(net)
            self.refuse_jobs(GOOD + keys, words)
        self.refuse_jobs(GOOD.replace("sparse_categorical_crossentropy", "mse"), "loss 'mse': targets are [32], predictions [32, 3]")
        self.refuse_jobs(GOOD.replace('"sparse_categorical_crossentropy"', '{ nam = "mse" }'), "(did you mean 'name'?)")

    def test_code_that_a_file_was_compiled_with_is_said_to_be_code(self):
        def own(y, p):
            return keras.ops.mean(p, -1)

        good = GOOD.replace('loss = "sparse_categorical_crossentropy"\n', "")
        loss = 'loss = "sparse_categorical_crossentropy"\n'
        for compiled, keys, words in (
            ({"loss": own}, "", "there is no loss 'own'; hint: Python code is not in the file; a job with a key 'loss' of its own needs none"),
            ({"loss": "mse", "metrics": [own]}, loss, "there is no metric 'own'; hint: Python code is not in the file; a job with a key 'metrics'"),
        ):
            net = classifier(1)
            net.compile(**compiled)
            self.save(net)
            self.refuse_jobs(good + keys, words)
        self.run_jobs(GOOD + "metrics = []\n")
        self.refuse_jobs(GOOD + 'optimizer = { class_name = "Adamm" }', "there is no optimizer 'Adamm' (did you mean 'adam' or 'adamw'?)")

    def test_shapes_that_do_not_fit_are_named(self):
        self.save(classifier())
        self.save_arrays(two=np.ones((50, 2)), one_hot=np.eye(3, dtype="float32")[self.y])
        self.refuse_jobs(GOOD + 'metrics = ["binary_accuracy"]', "metric 'binary_accuracy': targets [32] do not go with predictions [32, 3]")
        hot = GOOD.replace("sparse_", "").replace("y.npy", "one_hot.npy")
        self.refuse_jobs(hot + 'metrics = ["sparse_categorical_accuracy"]', "metric 'sparse_categorical_accuracy': targets [32, 3] do not go")
        self.refuse_jobs(GOOD + 'sample_weight = "two.npy"', "sample weights are [32, 2], losses [32]")

    def test_folders_that_are_not_there_are_named(self):
        self.save(classifier())
        for path in ('"photos/"', '{ folder = "photos" }'):
            self.refuse_jobs(GOOD.replace('x = "x.npy"\ny = "y.npy"', f"x = {path}"), "'x' is 'photos")
        self.refuse_jobs(GOOD + 'validation_x = "held_out/"', "'validation_x' is 'held_out/', where there is no file and no folder")

    def test_a_run_that_cannot_see_its_checkpoints_does_not_begin_anew(self):
        self.save(classifier())
        (self.folder / "jobs.toml").write_text(GOOD)
        (self.folder / "out").mkdir()
        (self.folder / "out/a").symlink_to("a")
        self.refuse(1, "[fit] cannot look for 'out/a/checkpoint': Too many levels of symbolic links", "fit", "jobs.toml", "--out", "out", "--resume")

    def test_a_quiet_run_of_several_jobs_says_why_one_failed(self):
        self.save(classifier())
        (self.folder / "jobs.toml").write_text(GOOD + GOOD.replace('"a"', '"b"', 1).replace("x.npy", "none.npy"))
        self.refuse(1, "1 of 2 jobs failed; job 'b': [file] cannot open 'none.npy'", "fit", "jobs.toml", "--out", "out", "--quiet")

    def test_schedules_that_keras_makes_no_number_of_are_refused(self):
        self.save(classifier())
        for schedule, words in {
            '{ name = "cosine_decay_restarts", first_decay_steps = 2, t_mul = 0 }': "'t_mul' is a finite number above 0",
            '{ name = "piecewise_constant_decay", boundaries = [5, 2], values = [0.1, 0.2, 0.3] }': "boundaries rise; got [5, 2]",
        }.items():
            self.refuse_jobs(GOOD + f'optimizer = "sgd"\nschedule = {schedule}', words)

    def test_sweeps_name_what_they_lack(self):
        self.save(classifier())
        sweep = GOOD.replace("[[job]]", "[[sweep]]")
        self.refuse_jobs(sweep + 'vary = { validation_x = "none_*.npy" }', "sweep 'a': no file fits 'none_*.npy' of 'validation_x'")
        self.run_jobs(sweep + 'vary = { "x.file" = ["x.npy", "x.npy"] }')
        self.assertTrue((self.folder / "out/a_1/model.keras").exists())


if __name__ == "__main__":
    main()
