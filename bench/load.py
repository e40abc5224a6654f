"""Opening a model of about 100 MB: Tutti against reading the bytes, and against Keras's own load_model. Outputs are compared first.

    ./x bench load
"""
import json
import os
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras
import numpy as np
from keras import layers


def build():
    model = keras.Sequential([keras.Input((1024,))] + [layers.Dense(2048, activation="relu") for _ in range(6)] + [layers.Dense(10)])
    return model


def keras_seconds(path):
    times = []
    for _ in range(3):
        start = time.perf_counter()
        keras.models.load_model(path, compile=False)
        times.append(time.perf_counter() - start)
    return sorted(times)[1]


def main(program):
    model = build()
    expected = np.asarray(model(np.ones((1, 1024), np.float32)))[0]
    weights = sum(w.nbytes for w in model.get_weights())
    print(f"{'file':<8}{'MB':>7}{'read ms':>10}{'tutti ms':>10}{'/ read':>8}{'keras ms':>10}{'keras / tutti':>15}{'held / weights':>16}")
    worst = 0
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("keras", "h5"):
            path = os.path.join(folder, "model." + kind)
            model.save(path)
            ours = json.loads(subprocess.run([program, path, "15"], check=True, capture_output=True, text=True).stdout)
            if not np.allclose(ours["output"], expected, rtol=1e-4, atol=1e-5):
                sys.exit(f"bench load: {kind}: outputs differ, so nothing is timed")
            theirs = keras_seconds(path) * 1e3
            ratio = ours["load_ms"] / ours["read_ms"]
            worst = max(worst, ratio)
            print(f"{kind:<8}{os.path.getsize(path) / 1e6:>7.1f}{ours['read_ms']:>10.1f}{ours['load_ms']:>10.1f}{ratio:>8.2f}"
                  f"{theirs:>10.0f}{theirs / ours['load_ms']:>15.1f}{ours['held_bytes'] / weights:>16.2f}")
    print(f"load / read at worst {worst:.2f} (to stay at or below 2)")


if __name__ == "__main__":
    main(sys.argv[1])
