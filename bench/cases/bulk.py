"""Bulk prediction. Images: a folder of JPEGs, 640 x 480, through MobileNetV2 from an .h5 file to an .npy file; the whole process for ours (start, compilation and writing included), the second pass
for peers; the bound is what the cores would do if they did nothing but decode and compute, each at the cost measured on one thread. Table: ten million rows of 32 floats through Dense 32-64-10, .npy to
.npy, against the same rows computed in memory, in the best of some batches. Ratio: ours over the other. Parts: "images" or "table", and a number for that many images."""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import compare
import engines
import numpy as np

PEER = compare.PEERS / "bulk.py"
PEERS = ("tf.data + tf.function 32", "tf.data + tf.function 1", "processes + queue + keras.predict 32", "keras.predict 32", "keras.predict 1")
ROUNDS, ROWS = 5, 10_000_000
BATCHES = (128, 512, 2048, 8192)  # of which the best is what the table is held against


def asked(parts):
    """Which rows, and how many images."""
    words = [part for part in parts if not part.isdigit()] or ["images", "table"]
    if unknown := set(words) - {"images", "table"}:
        raise SystemExit(f"bench: bulk has images and table; got {', '.join(sorted(unknown))}")
    return words, int(next((part for part in parts if part.isdigit()), 400))


def setup(folder, parts):
    words, images = asked(parts)
    for word, what in (("images", str(images)), ("table", "table")):
        data = folder / what
        if word in words and not (data / "y.npy").exists():
            data.mkdir(parents=True, exist_ok=True)
            print(f"bench: making {word}", file=sys.stderr)
            subprocess.run([sys.executable, PEER, "make", data, what], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def predict(build, model, given, expected, *options):
    """Seconds of a whole run, and what it says of itself."""
    with tempfile.TemporaryDirectory(dir=build) as scratch:
        out = pathlib.Path(scratch) / "y.npy"
        start = time.perf_counter()
        run = subprocess.run([build / "tutti", "predict", model, given, "-o", out, "--json", *options], check=True, stdout=subprocess.PIPE)
        seconds = time.perf_counter() - start
        found = np.load(out, mmap_mode="r")
        difference = f"has {len(found)} rows" if len(found) < len(expected) else engines.differs(found[: len(expected)], expected)
    if difference:
        raise SystemExit(f"bench: our answer {difference}")
    return seconds, json.loads(run.stdout)


def peer(data, engine):
    run = subprocess.run([sys.executable, PEER, engine, data], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    result = json.loads(run.stdout.splitlines()[-1])
    if "error" in result:
        print(f"bench: {engine}: {result['error']}", file=sys.stderr)
    return result.get("seconds", float("nan"))


def row(work, ours, other, rate, unit):
    return {"work": work, "tutti": f"{ours:,.0f} {unit}/s", "against": other, "its rate": f"{rate:,.1f} {unit}/s", "ratio": f"**{ours / rate:.2f}**"}


def run_images(data, build, images):
    words = [build, data / "model.h5", data / "photos", np.load(data / "y.npy"), "--preprocess", "mobilenet_v2"]
    ours = images / statistics.median(predict(*words)[0] for _ in range(ROUNDS))
    alone = {stage["name"]: stage["busy_seconds"] / images for stage in predict(*words, "--threads", "1", "--workers", "1")[1]["stages"]}
    cores = len(os.sched_getaffinity(0))
    bound = f"{cores} cores, {alone['workers'] * 1e3:.1f} ms to decode and {alone['device'] * 1e3:.1f} ms to compute one"
    work = f"{images} images"
    yield from (row(work, ours, engine, images / peer(data, engine), "images") for engine in PEERS)
    yield row(work, ours, bound, cores / (alone["workers"] + alone["device"]), "images")


def in_memory(build, words, batch):
    """Rows a second, of rows that are in memory."""
    said = subprocess.run([build / "tutti", "predict", *words, "--latency", "--repeat", "3", "--batch", str(batch), "--json"], check=True, stdout=subprocess.PIPE)
    return json.loads(said.stdout)["per_second"]


def run_table(data, build):
    words, expected = [data / "model.keras", data / "x.npy"], np.load(data / "y.npy")
    ours, memory = [], {batch: [] for batch in BATCHES}
    for _ in range(ROUNDS):  # in turns: a machine has slow minutes
        ours.append(ROWS / predict(build, *words, expected)[0])
        for batch, rates in memory.items():
            rates.append(in_memory(build, words, batch))
    rates = {batch: statistics.median(rates) for batch, rates in memory.items()}
    best = max(rates, key=rates.get)
    yield row(f"{ROWS:,} rows", statistics.median(ours), f"computed in memory, in batches of {best}, the fastest", rates[best], "rows")


def run(folder, build, parts):
    words, images = asked(parts)
    if "images" in words:
        yield from run_images(folder / str(images), build, images)
    if "table" in words:
        yield from run_table(folder / "table", build)
