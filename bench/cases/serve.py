"""One owner of the device for many processes. Round trip: one sample through the server and back, above the same prediction computed in the client's own process; medians. Workers: four Python processes, one
sample at a time, through the owner, and through multiprocessing queues to an owner that computes nothing at all; ratio ours over theirs. Batching: MobileNetV2, one image a request, 16 under way; ratio of what the server does with batches over one at a time. Parts: "round",
"workers", "batching"."""

import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time

import compare
import numpy as np
import serve_workers

PARTS = ("round", "workers", "batching")
TURNS, SECONDS = 5, 4


def asked(parts):
    if unknown := set(parts) - set(PARTS):
        raise SystemExit(f"bench: serve has {', '.join(PARTS)}; got {', '.join(sorted(unknown))}")
    return parts or PARTS


def setup(folder, parts):
    asked(parts)
    if not (folder / "mobilenet.npz").exists():
        print("bench: making models to serve", file=sys.stderr)
        subprocess.run([sys.executable, compare.PEERS / "serving.py", folder], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def served(build, *arguments):
    """The socket of a server."""
    with tempfile.TemporaryDirectory() as scratch:
        path = f"{scratch}/socket"
        server = subprocess.Popen([build / "tutti", "serve", *arguments, "--socket", path], stderr=subprocess.PIPE, text=True)
        try:
            while "ready\n" not in (line := server.stderr.readline()) or "model" in line:
                if not line:
                    raise SystemExit("bench: the server does not start")
            yield path
        finally:
            server.terminate()
            server.communicate()


def row(work, ours, other, its, ratio):
    return {"work": work, "tutti": ours, "against": other, "its": its, "difference or ratio": f"**{ratio}**"}


def python_round_trip(path, x, y):
    with serve_workers.tutti_client.Client(path) as client:
        if not np.allclose(client.predict(x), y, rtol=1e-4, atol=1e-5):
            raise SystemExit("bench: our answer differs")
        times = []
        end = time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            begin = time.perf_counter()
            client.predict(x)
            times.append(time.perf_counter() - begin)
        return statistics.median(times) * 1e6


def round_trips(folder, build):
    with served(build, folder / "story.keras") as path:
        told = json.loads(subprocess.run([build / "bench" / "serve_client", folder / "story.keras", path, "story", str(SECONDS)], check=True, stdout=subprocess.PIPE).stdout)
        bare, remote = told["bare_us"], told["remote_us"]
        yield row("round trip, C++", f"{remote:.1f} us", "computed in the client", f"{bare:.1f} us", f"+{remote - bare:.1f} us")
        data = np.load(folder / "story.npz")
        python = python_round_trip(path, data["x"], data["y"])
        yield row("round trip, Python", f"{python:.1f} us", "computed in C++", f"{bare:.1f} us", f"+{python - bare:.1f} us")


def worker_rates(folder, build):
    x = np.load(folder / "story.npz")["x"]
    with served(build, folder / "story.keras") as path:
        turns = [(serve_workers.owner_rate(path, x), serve_workers.queue_rate(x)) for _ in range(TURNS)]
    ours, theirs = (statistics.median(values) for values in zip(*turns))
    yield row(f"{serve_workers.WORKERS} workers, one sample at a time", f"{ours:,.0f}/s", "queues to an owner that computes nothing", f"{theirs:,.0f}/s", f"{ours / theirs:.2f}")


def images_rate(path, x, y, seconds):
    """Images a second, with 16 requests under way."""
    with serve_workers.tutti_client.Client(path, slots=16, slot_bytes=1 << 20) as client:
        if not np.allclose(client.predict(x), y, rtol=1e-3, atol=1e-5):
            raise SystemExit("bench: our answer differs")
        under_way, done = [client.submit(x) for _ in range(16)], 0
        begin = time.perf_counter()
        while time.perf_counter() - begin < seconds:
            under_way.pop(0).result()
            done += 1
            under_way.append(client.submit(x))
        seconds = time.perf_counter() - begin
        for future in under_way:
            future.result()
        return done / seconds


def batching(folder, build):
    data = np.load(folder / "mobilenet.npz")
    with served(build, folder / "mobilenet.keras", "--batch", "16", "--warm") as together, served(build, folder / "mobilenet.keras", "--batch", "1") as single:
        images_rate(together, data["x"], data["y"], SECONDS)  # sizes are measured at first
        turns = [(images_rate(together, data["x"], data["y"], SECONDS), images_rate(single, data["x"], data["y"], SECONDS)) for _ in range(TURNS)]
    ours, others = (statistics.median(values) for values in zip(*turns))
    yield row("MobileNetV2, batches", f"{ours:,.0f}/s", "--batch 1", f"{others:,.0f}/s", f"{ours / others:.2f}")


def run(folder, build, parts):
    parts = asked(parts)
    if "round" in parts:
        yield from round_trips(folder, build)
    if "workers" in parts:
        yield from worker_rates(folder, build)
    if "batching" in parts:
        yield from batching(folder, build)
