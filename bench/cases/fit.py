"""Many models trained at once: the time of one model's step, ours and the peers' from the same weights on the same data. Losses are compared before anything is timed. Ratio: ours over that peer's."""

import contextlib
import csv
import json
import statistics
import subprocess
import tempfile
import time

import compare
import fit_models
import numpy as np

SECONDS, ROUNDS = 0.4, 8
# Peers of each row, and what of their time ours may be at most.
TARGETS = {
    "three of the story": {"tf.function": 1 / 60, "jax.jit": 0.2},
    "32 x Dense 32-64-10": {"jax vmap": 0.3},
    "100 x Dense 5-2-1": {"jax vmap": 0.25},
    "32 x Dense 64-256-256-10": {"jax vmap": 0.45},
    "10 x LSTM(150)": {"jax vmap": 0.8},
    "8 x CNN": {"jax vmap": 0.9},
} | {name: {"jax.jit": 1} for name in ("ResNet 32x32", "U-Net 64x64", "Transformer 64x64", "BiLSTM 50x16", "Separable 48x48", "Embedding 20000x64")}
PEERS = ("tf.function", "jax.jit", "jax vmap")
ALONE = ("32 x Dense 32-64-10", "100 x Dense 5-2-1")  # rows that also say how much faster all at once are than one after another
WHOLE_RUN = 20  # epochs of a run whose start and end count as well


def setup(folder, wanted):
    compare.make("fit_models.py", folder, compare.chosen(fit_models.NAMES, wanted))


def run(folder, build, wanted):
    for name in compare.chosen(fit_models.NAMES, wanted):
        own = folder / name
        losses = Ours(build, own, False).losses()
        with contextlib.ExitStack() as ends:
            turns = {"tutti": Ours(build, own, False)}
            if name in ALONE:
                turns["tutti, one model"] = Ours(build, own, True)
            for engine in TARGETS[name]:
                peer = turns[engine] = ends.enter_context(compare.Peer(own, engine, 2, "fit_engines.py"))
                compare_losses(name, engine, losses, peer.result)
            rounds = [{engine: turn(SECONDS) for engine, turn in turns.items()} for _ in range(ROUNDS)]
        times = {engine: compare.middle([one[engine] for one in rounds]) for engine in turns}
        row = {"jobs": name}
        for engine in PEERS:
            target = TARGETS[name].get(engine)
            us = times.get(engine, {}).get("p50_us")
            row[engine] = "" if target is None else "—" if us is None else f"{compare.shown(times[engine])} µs, ratio **{times['tutti']['p50_us'] / us:.3f}** (at most {target:.3g})"
        yield row | {"tutti": f"{compare.shown(times['tutti'])} µs", "at once": at_once(name, times, turns) if name in ALONE else ""}


def at_once(name, times, turns):
    """How many times as fast as one model after another: by the time of a step, and as programs that are started."""
    steps = times["tutti, one model"]["p50_us"] / times["tutti"]["p50_us"]
    seconds = {engine: statistics.median(turns[engine].whole_run() for _ in range(5)) for engine in ("tutti", "tutti, one model")}
    runs = len(fit_models.members(name)) * seconds["tutti, one model"] / seconds["tutti"]
    return f"{steps:.1f} x one after another, {runs:.1f} x in runs of {WHOLE_RUN} epochs"


def compare_losses(name, engine, ours, answer):
    """[step][model] of both."""
    if "losses" not in answer:
        return
    theirs = np.array(answer["losses"])
    worst = np.max(np.abs(ours - theirs) / np.maximum(1, np.abs(theirs)))
    if not worst <= 2e-4:
        raise SystemExit(f"bench: {name}: losses differ from those of {engine} by {worst:.2g}")


class Ours:
    """Trains for about some seconds when it is called. What it tells is the time of the steps, without reading and compiling."""

    def __init__(self, build, folder, first_only):
        self.program, self.folder, self.first_only, self.epochs = build / "tutti", folder, first_only, 4

    def fit(self, epochs, out, *options):
        file = self.folder / ("one.toml" if self.first_only else "jobs.toml")
        file.write_text(fit_models.job_file(self.folder.name, epochs, self.first_only))
        return json.loads(subprocess.run([self.program, "fit", file, "--out", out, "--json", *options], check=True, stdout=subprocess.PIPE).stdout)

    def losses(self):
        with tempfile.TemporaryDirectory() as out:
            self.fit(2, out, "--log-steps")
            found = []
            for i in range(len(fit_models.members(self.folder.name))):
                with open(f"{out}/m{i}/steps.csv", newline="") as file:
                    found.append([float(row["loss"]) for row in csv.DictReader(file)][: fit_models.CHECKED])
        return np.array(found).T

    def whole_run(self):
        with tempfile.TemporaryDirectory() as out:
            start = time.perf_counter()
            self.fit(WHOLE_RUN, out)
            return time.perf_counter() - start

    def __call__(self, seconds):
        with tempfile.TemporaryDirectory() as out:
            done = self.fit(self.epochs, out)
        us = done["seconds"] * 1e6 / sum(job["steps"] for job in done["jobs"])
        self.epochs = max(4, min(20000, int(self.epochs * seconds / max(done["seconds"], 1e-3))))
        return {"p50_us": us, "p99_us": us}
