"""One sample at a time: the median time of a prediction, ours and the peers'. Ratio: ours (threads as we choose) over the best peer's (its best of 1 and 2 threads)."""

import json
import math
import statistics
import subprocess
import sys

import chart
import compare
import models
from compare import OURS

PYTHON = ("keras.predict", "keras call", "tf.function", "tf.function XLA")
NATIVE = tuple(f"{engine} {threads}" for engine in ("ONNX Runtime", "OpenVINO", "LiteRT") for threads in (1, 2))
SPREAD = "p99 / p50 (peer's; a loop's)"


def spread(times):
    return times["p99_us"] / times["p50_us"]


def idle(build, times):
    """A loop as long as our call and on as many threads, which does nothing: the p99 that the machine allows."""
    threads = 2 if times["tutti"]["p50_us"] < 0.95 * times["tutti 1"]["p50_us"] else 1
    return json.loads(subprocess.run([build / "bench" / "idle", str(times["tutti"]["p50_us"]), str(threads)], check=True, stdout=subprocess.PIPE).stdout)


def setup(folder, wanted):
    compare.make("models.py", folder, compare.chosen(models.NAMES, wanted))


def run(folder, build, wanted):
    table = {}
    for name in compare.chosen(models.NAMES, wanted):
        times = table[name] = compare.measure(folder / name, build / "tutti", "model.keras", NATIVE, PYTHON)
        best, times["ratio"] = compare.best_peer(times)
        yield {
            "model": name,
            "ratio": f"**{times['ratio']:.2f}** of {best}",
            SPREAD: f"{spread(times['tutti']):.1f} ({spread(times[best]):.1f}; {spread(idle(build, times)):.1f})",
            **{engine: compare.shown(times[engine]) for engine in (*OURS, *NATIVE, *PYTHON)},
        }
    if len(table) > 1:
        mean = math.exp(statistics.mean(math.log(times["ratio"]) for times in table.values()))
        yield {"model": "geometric mean", "ratio": f"**{mean:.2f}**"} | {key: "" for key in (SPREAD, *OURS, *NATIVE, *PYTHON)}
    bars = {name: {engine: t["p50_us"] for engine, t in times.items() if engine in ("tutti", *NATIVE) and "p50_us" in t} for name, times in table.items()}
    (folder / "single.svg").write_text(chart.bars(bars, "time of one prediction, µs (log scale)"))
    print(f"bench: bars in {folder / 'single.svg'}", file=sys.stderr)
