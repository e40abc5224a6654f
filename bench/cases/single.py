"""One sample at a time: the median time of a prediction, ours and the peers'. Ratio: ours (threads as we choose) over the best peer's (its best of 1 and 2 threads)."""

import json
import math
import pathlib
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

SECONDS, ROUNDS = 1.0, 3
PYTHON = ("keras.predict", "keras call", "tf.function", "tf.function XLA")  # a process of these takes long to start and they are far behind: one round
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
    """The times of every engine, {engine: {p50_us, p99_us} or {error}}; the rounds of the fast ones take turns, so that all see the same noise."""
    print(f"bench: {folder.name}", file=sys.stderr)
    check_ours(folder, build)
    rounds = {engine: [] for engine in (*OURS, *NATIVE)}
    for _ in range(ROUNDS):
        for engine, results in rounds.items():
            results.append(tutti(folder, build, engine) if engine in OURS else peer(folder, *engine.rsplit(" ", 1)))
    times = {engine: min(results, key=lambda r: abs(r.get("p50_us", 0) - middle(results))) for engine, results in rounds.items()}
    return times | {engine: peer(folder, engine, 2) for engine in PYTHON}


def middle(results):
    return statistics.median(r.get("p50_us", 0) for r in results)


def check_ours(folder, build):
    with tempfile.TemporaryDirectory() as scratch:
        answer = pathlib.Path(scratch) / "y.npy"
        subprocess.run([build / "tutti", "predict", folder / "model.keras", folder / "x.npy", "-o", answer], check=True)
        difference = engines.differs(np.load(answer), np.load(folder / "y.npy"))
    if difference:
        raise SystemExit(f"bench: our answer to {folder.name} {difference}")


def tutti(folder, build, engine):
    command = [build / "tutti", "predict", folder / "model.keras", folder / "x.npy", "--latency", "--json"]
    command += ["--threads", "1"] if engine.endswith(" 1") else []

    def latency(repeat):
        return json.loads(subprocess.run([*command, "--repeat", str(repeat)], check=True, stdout=subprocess.PIPE).stdout)

    guess = latency(5)["p50_us"]
    return latency(max(5, int(SECONDS * 1e6 / guess)))


def peer(folder, engine, threads):
    done = subprocess.run([sys.executable, PEERS / "engines.py", engine, folder, str(threads), str(SECONDS)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if done.returncode:
        return {"error": f"ended with {done.returncode}"}
    result = json.loads(done.stdout.splitlines()[-1])
    if "error" in result:
        print(f"bench: {engine} on {folder.name}: {result['error']}", file=sys.stderr)
    return result


def shown(times):
    if "error" in times:
        return "—"
    us = times["p50_us"]
    return f"{us:.2f}" if us < 10 else f"{us:.1f}" if us < 100 else f"{us:,.0f}"
