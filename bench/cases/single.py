"""One sample at a time: the median time of a prediction, ours and the peers'. Ratio: ours (threads as we choose) over the best peer's (its best of 1 and 2 threads)."""

import contextlib
import json
import math
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile

import chart
import numpy as np

PEERS = pathlib.Path(__file__).resolve().parents[1] / "peers"
sys.path.insert(0, str(PEERS))
import engines  # noqa: E402
import models  # noqa: E402

SECONDS, ROUNDS = 0.25, 12
PYTHON = ("keras.predict", "keras call", "tf.function", "tf.function XLA")  # far behind: one round
NATIVE = tuple(f"{engine} {threads}" for engine in ("ONNX Runtime", "OpenVINO", "LiteRT") for threads in (1, 2))
OURS = ("tutti", "tutti 1")


def setup(folder, wanted):
    for name in chosen(wanted):
        if not (folder / name / "y.npy").exists():
            print(f"bench: making {name}", file=sys.stderr)
            made = subprocess.run([sys.executable, PEERS / "models.py", folder, name], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if made.returncode:
                raise SystemExit(f"bench: cannot make {name}:\n{made.stderr[-2000:]}")


def run(folder, build, wanted):
    table = {name: measure(folder / name, build) for name in chosen(wanted)}
    for name, times in table.items():
        peers = {engine: t["p50_us"] for engine, t in times.items() if engine not in OURS and "p50_us" in t}
        best = min(peers, key=peers.get)
        times["ratio"] = times["tutti"]["p50_us"] / peers[best]
        yield {
            "model": name,
            "ratio": f"**{times['ratio']:.2f}** of {best}",
            "p99 / p50": f"{times['tutti']['p99_us'] / times['tutti']['p50_us']:.1f}",
            **{engine: shown(times[engine]) for engine in (*OURS, *NATIVE, *PYTHON)},
        }
    if len(table) > 1:
        mean = math.exp(statistics.mean(math.log(times["ratio"]) for times in table.values()))
        yield {"model": "geometric mean", "ratio": f"**{mean:.2f}**"} | {key: "" for key in ("p99 / p50", *OURS, *NATIVE, *PYTHON)}
    bars = {name: {engine: t["p50_us"] for engine, t in times.items() if engine in ("tutti", *NATIVE) and "p50_us" in t} for name, times in table.items()}
    (folder / "single.svg").write_text(chart.bars(bars, "time of one prediction, µs (log scale)"))
    print(f"bench: bars in {folder / 'single.svg'}", file=sys.stderr)


def chosen(wanted):
    names = [name for name in models.NAMES if not wanted or any(word.lower() in name.lower() for word in wanted)]
    if not names:
        raise SystemExit(f"bench: no model of single has {' or '.join(wanted)} in its name; there are {', '.join(models.NAMES)}")
    return names


def measure(folder, build):
    """The times of every engine, {engine: {p50_us, p99_us} or {error}}. They take turns, many short ones, so that all see the same noise; the median counts."""
    print(f"bench: {folder.name}", file=sys.stderr)
    check_ours(folder, build)
    with contextlib.ExitStack() as ends:
        turns = {engine: Ours(folder, build, engine) for engine in OURS}
        turns |= {engine: ends.enter_context(Peer(folder, *engine.rsplit(" ", 1))) for engine in NATIVE}
        rounds = [{engine: turn(SECONDS) for engine, turn in turns.items()} for _ in range(ROUNDS)]
    times = {engine: middle([one[engine] for one in rounds]) for engine in turns}
    for engine in PYTHON:
        with Peer(folder, engine, 2) as alone:
            times[engine] = alone(4 * SECONDS)
    return times


def middle(results):
    errors = [one for one in results if "error" in one]
    return errors[0] if errors else {key: statistics.median(one[key] for one in results) for key in ("p50_us", "p99_us")}


def check_ours(folder, build):
    with tempfile.TemporaryDirectory() as scratch:
        answer = pathlib.Path(scratch) / "y.npy"
        subprocess.run([build / "tutti", "predict", folder / "model.keras", folder / "x.npy", "-o", answer], check=True)
        difference = engines.differs(np.load(answer), np.load(folder / "y.npy"))
    if difference:
        raise SystemExit(f"bench: our answer to {folder.name} {difference}")


class Ours:
    """Predicts for some seconds when it is called, in a process of its own each time: ours starts quickly."""

    def __init__(self, folder, build, engine):
        self.command = [build / "tutti", "predict", folder / "model.keras", folder / "x.npy", "--latency", "--json"]
        self.command += ["--threads", "1"] if engine.endswith(" 1") else []
        self.guess = self.latency(5)["p50_us"]

    def __call__(self, seconds):
        result = self.latency(max(5, int(seconds * 1e6 / self.guess)))
        self.guess = result["p50_us"]
        return result

    def latency(self, repeat):
        return json.loads(subprocess.run([*self.command, "--repeat", str(repeat)], check=True, stdout=subprocess.PIPE).stdout)


class Peer:
    """The same in a process that stays, because a peer and its Python take seconds to start; stopped between its turns, because some spin."""

    def __init__(self, folder, engine, threads):
        self.process = subprocess.Popen(
            [sys.executable, PEERS / "engines.py", engine, folder, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.result = self.answer()
        self.process.send_signal(signal.SIGSTOP)
        if "error" in self.result:
            print(f"bench: {engine} on {folder.name}: {self.result['error']}", file=sys.stderr)

    def __call__(self, seconds):
        if "error" not in self.result:
            self.process.send_signal(signal.SIGCONT)
            print(seconds, file=self.process.stdin, flush=True)
            self.result = self.answer()
            self.process.send_signal(signal.SIGSTOP)
        return self.result

    def answer(self):
        for line in self.process.stdout:
            if line.startswith("{"):  # what the engines themselves print is not for us
                return json.loads(line)
        return {"error": f"ended with {self.process.wait()}"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.close()
        self.process.wait()


def shown(times):
    if "error" in times:
        return "—"
    us = times["p50_us"]
    return f"{us:.2f}" if us < 10 else f"{us:.1f}" if us < 100 else f"{us:,.0f}"
