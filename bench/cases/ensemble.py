"""An ensemble's mean on one batch: the median time, ours (a manifest of the members) and the peers' (the members in one graph). Ratio: ours over the best peer's."""

import sys

import chart
import compare
import ensembles
from compare import OURS

PYTHON = ("keras.predict loop", "keras call", "tf.function", "tf.function XLA")
NATIVE = ("ONNX Runtime 1", "ONNX Runtime 2", "OpenVINO 1", "OpenVINO 2", "JAX vmap 2")


def setup(folder, wanted):
    compare.make("ensembles.py", folder, compare.chosen(ensembles.NAMES, wanted))


def run(folder, build, wanted):
    table = {}
    for name in compare.chosen(ensembles.NAMES, wanted):
        times = table[name] = compare.measure(folder / name, build / "tutti", "model.toml", NATIVE, PYTHON, ensembles.batch(name))
        best, ratio = compare.best_peer(times)
        yield {"ensemble": name, "ratio": f"**{ratio:.2f}** of {best}"} | {engine: compare.shown(times[engine]) for engine in (*OURS, *NATIVE, *PYTHON)}
    bars = {name: {engine: t["p50_us"] for engine, t in times.items() if engine in ("tutti", *NATIVE) and "p50_us" in t} for name, times in table.items()}
    (folder / "ensemble.svg").write_text(chart.bars(bars, "time of one batch, µs (log scale)"))
    print(f"bench: bars in {folder / 'ensemble.svg'}", file=sys.stderr)
