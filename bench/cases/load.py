"""Opening a 100 MB model from the page cache: at most twice the time of reading its bytes, memory once the weights, far below Keras."""

import json
import os
import statistics
import subprocess
import time

os.environ["KERAS_BACKEND"] = "jax"

LAYERS, UNITS, REPEATS = 25, 1000, 15
WEIGHT_BYTES = LAYERS * (UNITS * UNITS + UNITS) * 4


def setup(folder, _):
    if (folder / "large.h5").exists():
        return
    import keras

    model = keras.Sequential([keras.Input((UNITS,)), *(keras.layers.Dense(UNITS) for _ in range(LAYERS))])
    model.save(folder / "large.keras")
    model.save(folder / "large.h5")


def run(folder, build, _):
    import keras

    for name in ("large.keras", "large.h5"):
        file = folder / name

        def once(what):
            return json.loads(subprocess.run([build / "bench/load", file, what], check=True, stdout=subprocess.PIPE).stdout)

        once("bytes"), once("model")  # warm-up
        turns = [(once("bytes"), once("model")) for _ in range(REPEATS)]
        if any(ours["bytes"] != WEIGHT_BYTES for _, ours in turns):
            raise SystemExit(f"bench: {name} should have {WEIGHT_BYTES} bytes of weights; got {turns[0][1]['bytes']}")
        reads, loads = (sorted(turn[i]["seconds"] for turn in turns) for i in (0, 1))
        keras_times = []
        for _ in range(3):
            start = time.perf_counter()
            keras.models.load_model(file, compile=False)
            keras_times.append(time.perf_counter() - start)
        read, load = statistics.median(reads), statistics.median(loads)
        yield {
            "file": name,
            "load, ms": f"{load * 1e3:.0f} ({loads[0] * 1e3:.0f}–{loads[-1] * 1e3:.0f})",
            "read, ms": f"{read * 1e3:.0f} ({reads[0] * 1e3:.0f}–{reads[-1] * 1e3:.0f})",
            "load / read": f"{load / read:.2f}",
            "Keras / load": f"{statistics.median(keras_times) / load:.0f}",
            "peak memory / weights": f"{max(turn[1]['peak_bytes'] for turn in turns) / WEIGHT_BYTES:.2f}",
        }
