"""The demo: demo.py PROGRAM FOLDER. Shows a Keras file, predicts with it, and compares with what Keras predicted; then an ensemble forecasts a year, and so
does one that is trained here and now."""

import pathlib
import shutil
import subprocess
import sys

import numpy as np

np.set_printoptions(suppress=True)


def main():
    program, folder = sys.argv[1:]
    failed = False
    for model in ("spots.keras", "spots.h5"):
        run(program, folder, "inspect", model)
        run(program, folder, "predict", model, "images.npy", "-o", "predicted.npy")
        predicted, expected = np.load(f"{folder}/predicted.npy"), np.load(f"{folder}/expected.npy")
        print(f"tutti\n{predicted.round(4)}\nkeras\n{expected.round(4)}")
        failed |= not np.allclose(predicted, expected, rtol=1e-4, atol=1e-5)
        print(f"largest difference: {np.abs(predicted - expected).max():.1e}\n")
    bag = pathlib.Path(__file__).parent / "ensemble"
    words = ("--target", "passengers", "--horizon", "12", "--backtest", "1", "-o", f"{folder}/forecast.csv", "--plot", f"{folder}/forecast.html")
    run(program, bag, "forecast", "bag.toml", "passengers.csv", *words)
    print(f"\nthe plot is in {folder}/forecast.html\n")
    train(program, bag, pathlib.Path(folder) / "trained")
    sys.exit("the predictions differ" if failed else 0)


def train(program, bag, folder):
    """The members know nothing of the year that the back-test asks for."""
    folder.mkdir(exist_ok=True)
    for name in ("jobs.toml", "passengers.csv"):
        shutil.copy(bag / name, folder)
    (folder / "before_1960.csv").write_text("".join((bag / "passengers.csv").read_text().splitlines(keepends=True)[:-12]))
    run(program, folder, "fit", "jobs.toml", "--out", "out")
    run(program, folder, "ensemble", *(f"out/member_{i}/model.keras" for i in range(8)), "--reduce", "mean", "--reduce", "quantile:0.1,0.9", "-o", "bag.toml")
    run(program, folder, "forecast", "bag.toml", "passengers.csv", "--target", "passengers", "--horizon", "12", "--backtest", "1", "-o", "forecast.csv")
    print(f"\nthe curves are in {folder}/out/report.html")


def run(program, folder, *words):
    print("$ tutti", *words, flush=True)
    subprocess.run([program, *words], cwd=folder, check=True)


if __name__ == "__main__":
    main()
