"""The demo: demo.py PROGRAM FOLDER. Shows a Keras file, predicts with it, and compares with what Keras predicted; then an ensemble forecasts a year."""

import pathlib
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
    print(f"\nthe plot is in {folder}/forecast.html")
    sys.exit("the predictions differ" if failed else 0)


def run(program, folder, *words):
    print("$ tutti", *words, flush=True)
    subprocess.run([program, *words], cwd=folder, check=True)


if __name__ == "__main__":
    main()
