"""What the benchmarks against peers share: every engine in a process of its own, in turns, its answer compared with Keras's before it is timed."""

import contextlib
import json
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile

import numpy as np

PEERS = pathlib.Path(__file__).resolve().parent / "peers"
sys.path.insert(0, str(PEERS))
import engines  # noqa: E402

SECONDS, ROUNDS = 0.25, 12
OURS = ("tutti", "tutti 1")  # threads as we choose, and one


def make(script, folder, names):
    """Runs a script of peers/ for each name whose folder has no answer yet."""
    for name in names:
        if not (folder / name / "y.npy").exists():
            print(f"bench: making {name}", file=sys.stderr)
            made = subprocess.run([sys.executable, PEERS / script, folder, name], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if made.returncode:
                raise SystemExit(f"bench: cannot make {name}:\n{made.stderr[-2000:]}")


def chosen(names, wanted):
    """The names that have one of the wanted words in them."""
    found = [name for name in names if not wanted or any(word.lower() in name.lower() for word in wanted)]
    if not found:
        raise SystemExit(f"bench: nothing has {' or '.join(wanted)} in its name; there are {', '.join(names)}")
    return found


def measure(folder, program, model, native, python, batch=1):
    """The times of every engine, {engine: {p50_us, p99_us} or {error}}. They take turns, many short ones, so that all see the same noise; the median counts.

    native: "ENGINE THREADS"; python: engines that are far behind, which get one turn.
    """
    print(f"bench: {folder.name}", file=sys.stderr)
    command = [program, "predict", folder / model, folder / "x.npy", "--batch", str(batch)]
    check_ours(folder, command)
    with contextlib.ExitStack() as ends:
        turns = {engine: Ours(command, engine) for engine in OURS}
        turns |= {engine: ends.enter_context(Peer(folder, *engine.rsplit(" ", 1))) for engine in native}
        rounds = [{engine: turn(SECONDS) for engine, turn in turns.items()} for _ in range(ROUNDS)]
    times = {engine: middle([one[engine] for one in rounds]) for engine in turns}
    for engine in python:
        with Peer(folder, engine, 2) as alone:
            times[engine] = alone(4 * SECONDS)
    return times


def best_peer(times):
    peers = {engine: t["p50_us"] for engine, t in times.items() if engine not in OURS and "p50_us" in t}
    best = min(peers, key=peers.get)
    return best, times["tutti"]["p50_us"] / peers[best]


def middle(results):
    errors = [one for one in results if "error" in one]
    return errors[0] if errors else {key: statistics.median(one[key] for one in results) for key in ("p50_us", "p99_us")}


def check_ours(folder, command):
    with tempfile.TemporaryDirectory() as scratch:
        answer = pathlib.Path(scratch) / "y.npy"
        subprocess.run([*command, "-o", answer], check=True)
        difference = engines.differs(np.load(answer), np.load(folder / "y.npy"))
    if difference:
        raise SystemExit(f"bench: our answer to {folder.name} {difference}")


class Ours:
    """Predicts for some seconds when it is called, in a process of its own each time: ours starts quickly."""

    def __init__(self, command, engine):
        self.command = [*command, "--latency", "--json"] + (["--threads", "1"] if engine.endswith(" 1") else [])
        self.guess = self.latency(5)["p50_us"]

    def __call__(self, seconds):
        result = self.latency(max(5, int(seconds * 1e6 / self.guess)))
        self.guess = result["p50_us"]
        return result

    def latency(self, repeat):
        return json.loads(subprocess.run([*self.command, "--repeat", str(repeat)], check=True, stdout=subprocess.PIPE).stdout)


class Peer:
    """The same in a process that stays, because a peer and its Python take seconds to start; stopped between its turns, because some spin."""

    def __init__(self, folder, engine, threads, script="engines.py", command=None):
        self.said = tempfile.TemporaryFile()
        command = command or [sys.executable, PEERS / script, engine, folder, str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said, text=True)
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
        code = self.process.wait()
        self.said.seek(0)
        return {"error": f"ended with {code}; it said last: {self.said.read().decode(errors='replace').strip().rpartition(chr(10))[2][:400]}"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.close()
        self.process.wait()
        self.said.close()


def shown(times):
    if "error" in times:
        return "—"
    us = times["p50_us"]
    return f"{us:.2f}" if us < 10 else f"{us:.1f}" if us < 100 else f"{us:,.0f}"
