"""forecast against Keras: models are rolled forward here with NumPy, window by window, and the program must say the same."""

import csv
import datetime
import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree

import program

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import layers  # noqa: E402

PASSENGERS = program.ROOT / "examples" / "ensemble" / "passengers.csv"


def with_random_weights(model, seed):
    rng = np.random.default_rng(seed)
    model.set_weights([rng.normal(0, 0.4, w.shape).astype(w.dtype) for w in model.get_weights()])
    return model


def dense(lags, steps=1, columns=1, seed=1, flat=False):
    shape = (lags * columns,) if flat else (lags, columns)
    front = [] if flat else [layers.Flatten()]
    return with_random_weights(keras.Sequential([keras.Input(shape), *front, layers.Dense(8, "tanh"), layers.Dense(steps)], name=f"dense_{seed}"), seed)


def lstm(columns=1, seed=2, lags=None):
    return with_random_weights(keras.Sequential([keras.Input((lags, columns)), layers.LSTM(6), layers.Dense(1)], name="lstm"), seed)


def passengers():
    with PASSENGERS.open() as file:
        return np.array([float(row["passengers"]) for row in csv.DictReader(file)])


def scaling(values, kind):
    if kind == "standard":
        return values.mean(0), values.std(0)
    if kind == "minmax":
        return values.min(0), values.max(0) - values.min(0)
    return np.zeros(values.shape[1:]), np.ones(values.shape[1:])


def rolled(model, table, lags, horizon, scale="standard", future=None, flat=False):
    """table: [time, columns], the target first. future: [steps known, features]; then the last row is held."""
    shift, factor = scaling(table, scale)
    rows, out = (table - shift) / factor, []
    while len(out) < horizon:
        window = rows[-lags:].astype("float32")[None]
        predicted = np.asarray(model(window.reshape(1, -1) if flat else window)).reshape(-1)
        for y in predicted:
            features = rows[-1, 1:]
            if future is not None and len(out) < len(future):
                features = (future[len(out)] - shift[1:]) / factor[1:]
            rows = np.vstack([rows, np.concatenate([[y], features])])
            out.append(y * factor[0] + shift[0])
    return np.array(out[:horizon])


class ForecastTest(program.ProgramTest):
    def save(self, model, name="m.keras"):
        model.save(self.folder / name)
        return model

    def read(self, name="out.csv"):
        with (self.folder / name).open(newline="") as file:
            return list(csv.DictReader(file))

    def write(self, text, name="x.csv"):
        (self.folder / name).write_text(text)
        return name

    def forecast(self, *options, source=PASSENGERS, target="passengers", model="m.keras", warns=False):
        run = self.run_program("forecast", model, source, "--target", target, "-o", "out.csv", *options)
        self.assertEqual(run.code, 0, run.err)
        if not warns:
            self.assertEqual(run.err, "")
        return self.read()

    def means(self, *arguments, **options):
        return np.array([float(row["mean"]) for row in self.forecast(*arguments, **options)])

    def close(self, found, wanted):
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=1e-3)


class Forecasts(ForecastTest):
    def test_a_model_of_one_step_is_rolled_as_keras_would_be(self):
        table = passengers()[:, None]
        for device in ("cpu", "reference"):
            for scale in ("standard", "minmax", "none"):
                with self.subTest(device=device, scale=scale):
                    model = self.save(dense(12))
                    rows = self.forecast("--horizon", 15, "--scale", scale, "--device", device)
                    self.close([float(row["mean"]) for row in rows], rolled(model, table, 12, 15, scale))
                    self.assertEqual([row["time"] for row in rows], [f"{1961 + i // 12}-{i % 12 + 1:02}" for i in range(15)])
                    self.assertEqual(list(rows[0]), ["time", "quantile_0.1", "quantile_0.5", "quantile_0.9", "mean"])
                    self.assertTrue(all(row["quantile_0.1"] == row["mean"] == row["quantile_0.9"] for row in rows))

    def test_a_recurrent_model_is_a_loop_within_the_loop(self):
        model = self.save(lstm())
        self.close(self.means("--horizon", 8, "--lags", 10), rolled(model, passengers()[:, None], 10, 8))

    def test_direct_models_strides_and_flat_windows(self):
        table = passengers()[:, None]
        for steps, flat in ((6, False), (9, True), (4, False), (4, True), (1, True)):
            with self.subTest(steps=steps, flat=flat):
                model = self.save(dense(7, steps, flat=flat))
                self.close(self.means("--horizon", 6), rolled(model, table, 7, 6, flat=flat))

    def test_h5_files_and_steps_with_an_axis_of_their_own(self):
        model = keras.Sequential([keras.Input((5, 1)), layers.Flatten(), layers.Dense(3), layers.Reshape((3, 1))])
        self.save(with_random_weights(model, 3), "m.h5")
        self.close(self.means("--horizon", 5, model="m.h5"), rolled(model, passengers()[:, None], 5, 5))

    def feature_table(self, future):
        rng = np.random.default_rng(5)
        values = np.cumsum(rng.normal(size=(60, 3)), 0) + [10, 0, 50]
        start = datetime.date(2021, 2, 20)
        lines = ["sales,day,price,rain"]
        for i, (y, price, rain) in enumerate(values):
            lines.append(f"{y if i < 50 else ''},{start + datetime.timedelta(i)},{price},{rain}")
            if i == 49 + future:
                break
        self.write("\n".join(lines) + "\n", "shop.csv")
        return values, [str(start + datetime.timedelta(50 + i)) for i in range(10)]

    def test_features_with_and_without_a_future(self):
        model = self.save(dense(6, columns=3))
        for future in (0, 3, 10):
            with self.subTest(future=future):
                values, days = self.feature_table(future)
                table = values[:, [0, 2, 1]]  # as --features orders them
                run = self.run_program("forecast", "m.keras", "shop.csv", "--target", "sales", "--features", "rain,price", "--horizon", 8, "-o", "out.csv")
                self.assertEqual(run.code, 0, run.err)
                self.assertEqual(run.err.count("its last value is held"), 0 if future >= 7 else 2, run.err)
                rows = self.read()
                self.close([float(row["mean"]) for row in rows], rolled(model, table[:50], 6, 8, future=table[50 : 50 + future, 1:]))
                self.assertEqual([row["time"] for row in rows], days[:8])

    def test_members_make_a_band(self):
        models = [self.save(dense(12, seed=seed), f"m{seed}.keras") for seed in range(5)]
        self.save(lstm(lags=9), "m5.keras")
        table = passengers()[:, None]
        more = [word for i in range(1, 6) for word in ("--member", f"m{i}.keras")]
        rows = self.forecast("--horizon", 6, "--quantiles", "0.05,0.5,0.8,1", "--members", *more, model="m0.keras")
        wanted = np.stack([*(rolled(model, table, 12, 6) for model in models), rolled(keras.models.load_model(self.folder / "m5.keras"), table, 9, 6)])
        for i in range(6):
            self.close([float(row[f"member_{i + 1}"]) for row in rows], wanted[i])
        self.close([float(row["mean"]) for row in rows], wanted.mean(0))
        for q in ("0.05", "0.5", "0.8", "1"):
            self.close([float(row[f"quantile_{q}"]) for row in rows], np.quantile(wanted, float(q), axis=0))

    def test_an_ensemble_is_its_members_however_they_are_arranged(self):
        models = [self.save(dense(6, seed=seed), f"m{seed}.keras") for seed in range(3)]
        self.save(lstm(lags=6), "m3.keras")
        table = passengers()[:, None]
        wanted = np.stack([*(rolled(model, table, 6, 5) for model in models), rolled(keras.models.load_model(self.folder / "m3.keras"), table, 6, 5)])
        files = [f"m{i}.keras" for i in range(4)]
        weights = np.array([0.4, 0.3, 0.2, 0.1])
        self.write(f"members = {json.dumps(files)}\nreduce = [\"median\"]\n", "all.toml")
        self.write(f"members = {json.dumps(files)}\nreduce = [\"mean\"]\nweights = {weights.tolist()}\n", "weighted.toml")
        for plan in ("merged", "stacked", "looped", "auto"):
            with self.subTest(plan):
                rows = self.forecast("--horizon", 5, "--ensemble-plan", plan, model="all.toml")
                self.close([float(row["mean"]) for row in rows], wanted.mean(0))
                self.close([float(row["quantile_0.9"]) for row in rows], np.quantile(wanted, 0.9, axis=0))
        rows = self.forecast("--horizon", 5, model="weighted.toml")
        self.close([float(row["mean"]) for row in rows], (wanted * weights[:, None]).sum(0))
        self.close([float(row["quantile_0.1"]) for row in rows], np.quantile(wanted, 0.1, axis=0))

    def test_a_member_that_gives_nan_is_seen_in_every_figure_and_named(self):
        self.save(dense(4, seed=1))
        self.save(dense(4, seed=3), "other.keras")
        self.save(dense(4, seed=4), "third.keras")
        broken = dense(4, seed=2)
        broken.set_weights([np.full_like(w, np.nan) for w in broken.get_weights()])
        self.save(broken, "broken.keras")
        more = ["--member", "broken.keras", "--member", "other.keras", "--member", "third.keras", "--quantiles", "0,0.2,0.5,1"]
        run = self.run_program("forecast", "m.keras", PASSENGERS, "--target", "passengers", "--horizon", 2, *more, "-o", "out.csv")
        self.assertEqual(run.code, 0, run.err)
        self.assertIn("model 2 ('dense_2') predicts 2 values that are not finite", run.err)
        self.assertEqual({value for row in self.read() for name, value in row.items() if name != "time"}, {"nan"})

    def test_several_series(self):
        model = self.save(dense(4))
        rng = np.random.default_rng(8)
        series = {"a": rng.normal(100, 5, 20), 'b, "quoted"': rng.normal(5, 1, 15)}
        rows = [(f"2020-01-01T{i:02}:00:00Z", name, values[i]) for name, values in series.items() for i in range(len(values))]
        rng.shuffle(rows)
        with (self.folder / "x.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("when", "sensor", "y"), *rows])
        out = self.forecast("--horizon", 3, "--id", "sensor", source="x.csv", target="y")
        for name, values in series.items():
            mine = [row for row in out if row["id"] == name]
            self.close([float(row["mean"]) for row in mine], rolled(model, values[:, None], 4, 3))
            self.assertEqual(mine[0]["time"], f"2020-01-01T{len(values):02}:00:00Z")

    def test_times_are_written_as_the_file_writes_them(self):
        self.save(dense(2))
        for times, following in (
            (["28-Jan-2021", "29-Jan-2021", "30-Jan-2021"], ["31-Jan-2021", "01-Feb-2021"]),
            (["Jan 28, 2021", "Jan 29, 2021", "Jan 30, 2021"], ["Jan 31, 2021", "Feb 01, 2021"]),
            (["Oct 2020", "Nov 2020", "Dec 2020"], ["Jan 2021", "Feb 2021"]),
            (["2020-W51", "2020-W52", "2020-W53"], ["2021-W01", "2021-W02"]),
            (["1/30/2021 9:00 PM", "1/30/2021 10:00 PM", "1/30/2021 11:00 PM"], ["1/31/2021 12:00 AM", "1/31/2021 1:00 AM"]),
        ):
            self.write("when,y\n" + "".join(f'"{time}",{i}\n' for i, time in enumerate(times)))
            self.assertEqual([row["time"] for row in self.forecast("--horizon", 2, source="x.csv", target="y")], following)

    def test_series_without_spread_or_beyond_squares(self):
        model = self.save(dense(4))
        for values in (np.full(30, 0.1), 1e300 * np.arange(1.0, 21)):
            self.write("date,y\n" + "".join(f"{i},{value!r}\n" for i, value in enumerate(values.tolist())))
            unit = values[-1]
            given = [float(row["mean"]) for row in self.forecast("--horizon", 2, source="x.csv", target="y")]
            if values[0] == values[-1]:
                self.close(np.array(given) - 0.1, rolled(model, np.zeros((30, 1)), 4, 2, "none"))
            else:
                self.close(np.array(given) / unit, rolled(model, values[:, None] / unit, 4, 2))

    def test_gaps_are_interpolated_and_counted(self):
        model = self.save(dense(4))
        values = np.array([3, 5, 4, 6, 8, 7, 9, 11, 10, 12.0])
        months = [f"2020-{i + 1:02}-{[31, 29, 31, 30, 31, 30, 31, 31, 30, 31][i]}" for i in range(10)]
        lines = [f"{month},{value}" for month, value in zip(months, values)]
        lines[3] = months[3] + ",NA"
        del lines[6]
        values[3], values[6] = (4 + 8) / 2, (7 + 11) / 2
        self.write("date,y\n" + "\n".join(reversed(lines)) + "\n")
        run = self.run_program("forecast", "m.keras", "x.csv", "--target", "y", "--horizon", 2, "-o", "out.csv", "--json")
        self.assertEqual(run.code, 0, run.err)
        self.assertIn("2 of 10 values of 'y' are missing (1 have no row) and are interpolated", run.err)
        self.close([float(row["mean"]) for row in self.read()], rolled(model, values[:, None], 4, 2))
        self.assertEqual([row["time"] for row in self.read()], ["2020-11-30", "2020-12-31"])
        self.assertEqual((run.json["series"][0]["filled"], run.json["frequency"], run.json["season"]), (2, "monthly", 12))

    def test_a_backtest_does_not_see_behind_a_gap(self):
        self.save(dense(4))
        found = []
        for later in (0, 1000):
            values = [3, 5, 4, 6, 8, 7, 9, 11, None, None, 10 + later, 12 + later]
            self.write("date,y\n" + "".join(f"2020-01-{i + 1:02},{'' if v is None else v}\n" for i, v in enumerate(values)))
            run = self.run_program("forecast", "m.keras", "x.csv", "--target", "y", "--horizon", 3, "--backtest", 1, "--json")
            found.append(run.json["series"][0]["backtest"][0]["mean"])
        self.assertEqual(found[0], found[1])

    def test_a_backtest_does_not_see_the_first_value_of_a_feature_before_it_is_known(self):
        self.save(dense(4, columns=2))
        self.write("date,y,price\n" + "".join(f"2020-01-{i + 1:02},{i % 5},{i if i >= 8 else ''}\n" for i in range(16)))
        options = ("forecast", "m.keras", "x.csv", "--target", "y", "--features", "price", "--horizon", 3, "--scale", "none")
        run = self.run_program(*options, "--backtest", 3, "--quiet", "--verbose")
        self.assertEqual(run.code, 1)
        self.assertIn("feature 'price' has its first value at 2020-01-09, and the first back-test knows the values before 2020-01-08; hint: a smaller", run.err)
        self.assertEqual(self.run_program(*options, "--backtest", 2).code, 0)

    def test_a_backtest_against_numpy(self):
        models = [self.save(dense(12, seed=seed), f"m{seed}.keras") for seed in range(3)]
        options = ["--horizon", 6, "--backtest", 4, "--stride", 5, "--member", "m1.keras", "--member", "m2.keras", "--batch", 2]
        run = self.succeed("forecast", "m0.keras", PASSENGERS, "--target", "passengers", *options, "--json")
        values, errors, naive_errors, scaled, naive_scaled, inside = passengers(), [], [], [], [], []
        pinball = {0.1: [], 0.5: [], 0.9: []}
        for i in range(4):
            origin = 144 - 6 - (3 - i) * 5
            history, truth = values[:origin], values[origin : origin + 6]
            all_members = np.stack([rolled(model, history[:, None], 12, 6) for model in models])
            self.close(run.json["series"][0]["backtest"][i]["mean"], all_members.mean(0))
            scale = np.abs(history[12:] - history[:-12]).mean()
            naive = history[-12:-6]
            errors.append(truth - all_members.mean(0))
            naive_errors.append(truth - naive)
            scaled.append(np.abs(errors[-1]) / scale)
            naive_scaled.append(np.abs(naive_errors[-1]) / scale)
            for q, losses in pinball.items():
                above = truth - np.quantile(all_members, q, axis=0)
                losses.append(np.maximum(q * above, (q - 1) * above))
            low, high = np.quantile(all_members, [0.1, 0.9], axis=0)
            inside.append((truth >= low) & (truth <= high))
        scores, naive = run.json["scores"], run.json["seasonal_naive"]
        self.assertEqual(scores["points"], 24)
        self.close([scores["mae"], scores["rmse"]], [np.abs(errors).mean(), np.sqrt(np.square(errors).mean())])
        self.close([naive["mae"], naive["rmse"]], [np.abs(naive_errors).mean(), np.sqrt(np.square(naive_errors).mean())])
        self.close([scores["mase"], naive["mase"]], [np.mean(scaled), np.mean(naive_scaled)])
        self.close([scores["pinball"][str(q)] for q in pinball], [np.mean(losses) for losses in pinball.values()])
        self.assertAlmostEqual(scores["coverage"], np.mean(inside))
        self.assertIsNone(naive["coverage"])

    def test_without_an_output_it_prints_a_table(self):
        self.save(dense(12))
        run = self.succeed("forecast", "m.keras", PASSENGERS, "--target", "passengers", "--horizon", 30, "--backtest", 2)
        self.assertIn("'passengers', monthly, 144 values from 1949-01 to 1960-12", run.out)
        self.assertIn("windows of 12, rolled forward step by step", run.out)
        self.assertIn("and 6 more rows; -o OUT.csv writes them all", run.out)
        self.assertRegex(run.out, r"BACK-TEST +MAE +RMSE +MASE +PINBALL 0.1")
        self.assertRegex(run.out, r"seasonal-naive \(12\) +\d")

    def test_one_model_has_no_band_and_says_so_when_asked(self):
        self.save(dense(12))
        run = self.run_program("forecast", "m.keras", PASSENGERS, "--target", "passengers", "--horizon", 2, "--quantiles", "0.2,0.8")
        self.assertEqual(run.code, 0)
        self.assertIn("one model gives no band", run.err)

    def test_wrong_usage(self):
        self.save(dense(12))
        base = ["forecast", "m.keras", PASSENGERS, "--target", "passengers", "--horizon", 2]
        self.refuse(2, "--target COLUMN is needed", "forecast", "m.keras", PASSENGERS, "--horizon", 2)
        self.refuse(2, "--horizon N is needed", "forecast", "m.keras", PASSENGERS, "--target", "passengers")
        self.refuse(2, "a forecast is written as .csv", *base, "-o", "out.npy")
        self.refuse(2, "a plot is .svg or .html", *base, "--plot", "out.png")
        own = self.folder / "own.csv"
        own.write_bytes(PASSENGERS.read_bytes())
        self.refuse(2, "is the input, and results would be written over it", *base[:2], own, *base[3:], "-o", "./own.csv")
        self.assertEqual(own.read_bytes(), PASSENGERS.read_bytes())
        self.refuse(2, "--quantiles are numbers from 0 to 1; got '1.5'", *base, "--quantiles", "0.1,1.5")
        self.refuse(2, "--quantiles holds a number twice", *base, "--quantiles", "0.1,0.1")
        self.refuse(2, "--features is a list with commas between", *base, "--features", "a,,b")
        self.refuse(2, "--stride is the distance of back-tests", *base, "--stride", 3)
        self.refuse(2, "unknown device 'gpuu'", *base, "--device", "gpuu")
        self.refuse(2, "--horizon", *base[:-1], 0)
        self.refuse(2, "--scale", *base, "--scale", "log")

    def test_what_does_not_fit_is_named(self):
        self.save(dense(12))
        self.save(dense(3, columns=2), "two.keras")
        self.save(dense(3, steps=4), "steps.keras")
        ids = keras.Sequential([keras.Input((4,), dtype="int32"), layers.Embedding(9, 2), layers.Flatten(), layers.Dense(1)])
        ids.save(self.folder / "ids.keras")
        a, b = keras.Input((3, 1)), keras.Input((3, 1))
        keras.Model([a, b], layers.Add()([a, b])).save(self.folder / "inputs.keras")
        keras.Sequential([keras.Input((3, 1)), layers.Dense(5)]).save(self.folder / "wide.keras")
        run = lambda model, *more: ["forecast", model, PASSENGERS, "--target", "passengers", "--horizon", 2, *more]  # noqa: E731
        self.refuse(1, "there is no column 'passanger' (--target) (did you mean 'passengers'?)", "forecast", "m.keras", PASSENGERS, "--target", "passanger", "--horizon", 2)
        self.refuse(1, "no column 'rain' (--features)", *run("m.keras", "--features", "rain"))
        self.refuse(1, "no column 'when' (--time)", *run("m.keras", "--time", "when"))
        self.refuse(1, "no column 'shop' (--id)", *run("m.keras", "--id", "shop"))
        self.refuse(1, "windows of 12; got --lags 6", *run("m.keras", "--lags", 6))
        self.refuse(1, "so 2 columns; target and features are 1", *run("two.keras"))
        self.refuse(1, "takes int32 [any, 4]", *run("ids.keras"))
        self.refuse(1, "has 2 inputs and 1 outputs", *run("inputs.keras"))
        self.refuse(1, "gives f32[2, 3, 5] for 2 windows", *run("wide.keras"))
        self.refuse(1, "the series has 144 values; 70 back-tests, 2 apart, of 2 steps after windows of 12 need 152", *run("m.keras", "--backtest", 70))
        np.save(self.folder / "x.npy", passengers())
        self.refuse(1, "'x.npy' is no .csv", "forecast", "m.keras", "x.npy", "--target", "y", "--horizon", 2)
        self.refuse(1, "cannot open 'nothing.csv'", "forecast", "m.keras", "nothing.csv", "--target", "y", "--horizon", 2)
        self.refuse(1, "at most 268435456 are held", *run("m.keras")[:5], "--horizon", 1000000, "--backtest", 1000)
        self.assertFalse((self.folder / "out.csv").exists())

    def test_hostile_files(self):
        self.save(dense(2))
        refuse = lambda message, text: self.refuse(1, message, "forecast", "m.keras", self.write(text), "--target", "y", "--horizon", 2)  # noqa: E731
        rows = "".join(f"2020-01-{i:02},{i}\n" for i in range(1, 9))
        refuse("is empty", "")
        refuse("has a header and no rows", "date,y\n")
        refuse("line 10 has 3 fields", "date,y\n" + rows + "2020-01-09,1,2\n")
        refuse("line 10, column 2 ('y'): is not a finite number; got '1e999'", "date,y\n" + rows + "2020-01-09,1e999\n")
        refuse("is not a time that is read; got '\\x1b[31m'", "date,y\n\x1b[31m,1\n")
        refuse("'y' has 9 values where daily times from its first to its last would have 2914", "date,y\n" + rows + "9999-01-09,1\n")
        refuse("lines 2 and 10 have the same time", "date,y\n" + rows + "2020-01-01,1\n")
        refuse("may mean 01/02 as day and month or as month and day", "date,y\n01/02/2020,1\n02/02/2020,1\n")
        refuse("has a quote that is never closed", 'date,y\n"2020')
        refuse("two rows at least", "date,y\n2020-01-01,1\n")
        (self.folder / "x.csv").write_bytes(b"date,\xff\xfe\x00y\n\x00,1\n")
        self.refuse(1, "there is no column 'y'", "forecast", "m.keras", "x.csv", "--target", "y", "--horizon", 2)


class Plots(ForecastTest):
    def draw(self, kind, series=1, hostile="y"):
        for seed in range(3):
            self.save(dense(4, seed=seed), f"m{seed}.keras")
        rng = np.random.default_rng(1)
        with (self.folder / "x.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["date", "id", hostile])
            for one in range(series):
                writer.writerows((datetime.date(2020, 1, 1) + datetime.timedelta(i), f"<b>{one}</b>", rng.normal(10, 2)) for i in range(50))
        words = ["--target", hostile, "--id", "id", "--horizon", 7, "--backtest", 2, "--member", "m1.keras", "--member", "m2.keras", "--plot", "p." + kind]
        self.succeed("forecast", "m0.keras", "x.csv", "-o", "out.csv", *words)
        return (self.folder / ("p." + kind)).read_text()

    def test_the_picture_is_xml_and_holds_every_part(self):
        for series in (1, 5):
            root = xml.etree.ElementTree.fromstring(self.draw("svg", series))
            classes = [e.get("class") for e in root.iter()]
            for name, count in {"panel": 1, "history": 1, "mean": 1, "band": 1, "member": 3, "past": 2, "past-band": 2, "now": 1}.items():
                # The legend shows some of them once more.
                self.assertIn(classes.count(name) - count * series, (0, 1), name)
            self.assertIn("prefers-color-scheme: dark", root.find("{*}style").text)

    def test_a_member_that_runs_away_stays_in_its_panel(self):
        wild = dense(4, seed=2)
        wild.layers[-1].bias.assign([50.0])
        for model, name in ((dense(4, seed=0), "m0.keras"), (dense(4, seed=1), "m1.keras"), (wild, "wild.keras")):
            self.save(model, name)
        self.forecast("--horizon", 4, "--member", "m1.keras", "--member", "wild.keras", "--quantiles", "0.2,0.5", "--plot", "p.svg", model="m0.keras")
        root = xml.etree.ElementTree.parse(self.folder / "p.svg").getroot()
        panel = next(e for e in root.iter() if e.get("class") == "panel")
        frame = next(e for e in panel if e.tag.endswith("svg"))
        self.assertEqual(frame.get("viewBox").split(), [panel.get("data-" + name) for name in ("left", "top", "width", "height")])
        self.assertEqual([e.get("class") for e in frame], ["member"] * 3)

    def test_at_most_twelve_series_are_drawn_and_it_says_so(self):
        root = xml.etree.ElementTree.fromstring(self.draw("svg", 15))
        self.assertEqual([e.get("class") for e in root.iter()].count("panel"), 12)
        self.assertIn("15 series, 7 steps ahead; the first 12 are drawn", root.find("{*}desc").text)

    def test_text_from_the_file_is_no_markup(self):
        for kind in ("svg", "html"):
            text = self.draw(kind, 2, hostile='</title></script><script>alert("1")</script>&')
            self.assertNotIn("<script>alert", text)
            self.assertNotIn("<b>0", text)
            self.assertIn("&lt;script&gt;alert(&quot;1&quot;)", text)

    def test_the_page_needs_nothing_from_outside(self):
        page = self.draw("html")
        self.assertEqual(re.findall(r"(?:src|href)\s*=|url\(|@import|https?://(?!www\.w3\.org/2000/svg)", page), [])
        for part in ("<table>", "seasonal-naive (7)", "pinball 0.1", "<details>", 'lang="en"', "2020-02-26"):
            self.assertIn(part, page)

    def test_the_page_in_a_browser(self):
        """Opens it with a script of ours at its end that moves by key and by pointer, looks around and leaves what it saw in the title."""
        browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        if browser is None:
            self.skipTest("no chromium in PATH; hint: apt-get install chromium")
        probe = """<script>
        const svg = document.querySelector("svg"), values = document.getElementById("values"), hidden = values.hidden;
        svg.focus();
        svg.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
        svg.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft" }));
        const by_key = values.innerText;
        const now = document.querySelectorAll(".now")[1].getBoundingClientRect();
        svg.dispatchEvent(new PointerEvent("pointermove", { clientX: now.x, clientY: now.y + 20 }));
        const by_pointer = values.innerText;
        svg.dispatchEvent(new PointerEvent("pointerleave"));
        const drawn = [...document.querySelectorAll("svg path")].filter((path) => !(path.getTotalLength() > 0)).length;
        const outside = [...document.querySelectorAll("svg text")].filter((text) => { const b = text.getBBox(); return b.x < 0 || b.x + b.width > 960; }).length;
        const color = (name) => getComputedStyle(document.querySelector(name)).fill;
        document.title = JSON.stringify({ hidden, by_key, by_pointer, drawn, outside, paper: color(".paper"), text: color(".title"), left: values.hidden });
        </script></body>"""
        page = self.draw("html", 3)
        (self.folder / "probe.html").write_text(page.replace("</body>", probe))
        words = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={self.folder}/profile"]
        for scheme, paper, title_color in ((1, "rgb(255, 255, 255)", "rgb(16, 42, 67)"), (0, "rgb(15, 22, 32)", "rgb(240, 244, 248)")):
            wanted = f"--blink-settings=preferredColorScheme={scheme}"
            shown = subprocess.run([*words, wanted, "--dump-dom", f"file://{self.folder}/probe.html"], capture_output=True, text=True, timeout=120)
            title = re.search(r"<title>(.*?)</title>", shown.stdout)
            self.assertIsNotNone(title, shown.stderr[-2000:])
            seen = json.loads(title[1])
            self.assertEqual((seen["hidden"], seen["left"], seen["drawn"], seen["outside"]), (True, True, 0, 0), seen)
            self.assertRegex(seen["by_key"], r"^2020-02-25\nmean -?\d")
            self.assertRegex(seen["by_pointer"], r"^2020-02-19\nhistory -?\d[\d.,]*\nback-test -?\d")
            self.assertEqual((seen["paper"], seen["text"]), (paper, title_color))


if __name__ == "__main__":
    program.main()
