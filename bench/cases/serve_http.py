"""Requests a second of 64 clients over HTTP (binary tensors) and gRPC, one sample each, ours and the best peer's (pytriton, that is NVIDIA Triton, and MLServer); and what batching does. The load is a program of ours, the same for all."""

import contextlib
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import time
import urllib.request

import compare
import numpy as np

PEERS = ("pytriton", "MLServer")
SERVED = ("Dense 32-64-10", "MobileNetV2")
SECONDS, CLIENTS, TURNS = 2, 64, 3


def setup(folder, wanted):
    compare.make("models.py", folder, SERVED)
    dense = folder / SERVED[0]
    if not (dense / "weights.npz").exists():
        code = "import sys, keras, numpy; numpy.savez(sys.argv[2], *keras.models.load_model(sys.argv[1]).get_weights())"
        subprocess.run([sys.executable, "-c", code, dense / "model.keras", dense / "weights.npz"], check=True, env=os.environ | {"KERAS_BACKEND": "jax"})
    for name in SERVED:
        (folder / name / "x.raw").write_bytes(np.load(folder / name / "x.npy").tobytes())


@contextlib.contextmanager
def ours(build, model, *options):
    words = [build / "tutti", "serve", f"dense={model}", "--http", ":0", "--grpc", ":0", "--warm", *options]
    child = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    try:
        places = {}
        for line in child.stderr:
            if found := re.search(r"(http|grpc): (\S+)$", line.strip()):
                places[found[1]] = found[2]
            if line.strip().endswith("ready") and "model" not in line:
                break
        yield places
    finally:
        child.terminate()
        child.wait()


def free_ports():
    with contextlib.ExitStack() as ends:
        sockets = [ends.enter_context(socket.socket()) for _ in range(3)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@contextlib.contextmanager
def peer(kind, folder):
    """The peer in the environment that has it, TUTTI_SERVE_PEERS or this one; None when it does not start.

    Such an environment: /usr/bin/python3 -m venv FOLDER; FOLDER/bin/pip install nvidia-pytriton==0.7.0 mlserver==1.7.1. They want an older NumPy than Keras's.
    """
    ready = False
    http, grpc, _ = free_ports()
    python = pathlib.Path(os.environ.get("TUTTI_SERVE_PEERS", sys.prefix)) / "bin" / "python"
    child = subprocess.Popen([python, compare.PEERS / "serve_peer.py", kind.lower(), folder, str(http), str(grpc)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            with contextlib.suppress(OSError):
                ready = urllib.request.urlopen(f"http://127.0.0.1:{http}/v2/models/dense/ready", timeout=5).status == 200
            if ready or child.poll() is not None:
                break
            time.sleep(0.2)
        yield {"http": f"127.0.0.1:{http}", "grpc": f"127.0.0.1:{grpc}"} if ready else None
    finally:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=20)
        child.kill()


def load(build, protocol, place, folder, name, clients=CLIENTS):
    x, y = np.load(folder / "x.npy"), np.load(folder / "y.npy")
    program = build / "bench" / ("serve_load" if protocol == "http" else "serve_load_grpc")
    words = [program, place[protocol], "dense", name, ",".join(map(str, x.shape[1:])), folder / "x.raw", str(clients), str(SECONDS)]
    run = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=120)
    if run.returncode:
        return {"error": run.stderr.strip()[-300:]}
    result = json.loads(run.stdout)
    np.testing.assert_allclose(np.reshape(result.pop("answer"), y.shape), y, rtol=1e-3, atol=1e-5)
    return result


def input_name(place):
    with urllib.request.urlopen(f"http://{place['http']}/v2/models/dense", timeout=30) as answer:
        inputs = json.load(answer).get("inputs")
    return inputs[0]["name"] if inputs else "x"  # of our peers, of which not all tell


def middle(results):
    good = sorted((r for r in results if "error" not in r), key=lambda r: r["per_second"])
    return good[len(good) // 2] if good else results[0]


def shown(result):
    return f"{result['per_second']:,.0f}/s, p99 {result['p99_us'] / 1000:.2f} ms" if "error" not in result else f"— ({result['error'][:60]})"


def run(folder, build, wanted):
    dense, photo = (folder / name for name in SERVED)
    # In turns, so that all see the same noise; one server runs at a time.
    rounds = {(kind, protocol): [] for kind in ("tutti", *PEERS) for protocol in ("http", "grpc")}
    for _ in range(TURNS):
        for kind in ("tutti", *PEERS):
            with ours(build, dense / "model.keras") if kind == "tutti" else peer(kind, dense) as place:
                for protocol in ("http", "grpc"):
                    failed = {"error": "does not start here"}
                    rounds[kind, protocol].append(load(build, protocol, place, dense, input_name(place)) if place else failed)
    for protocol in ("http", "grpc"):
        results = {kind: middle(rounds[kind, protocol]) for kind in ("tutti", *PEERS)}
        best = max((r["per_second"] for kind, r in results.items() if kind != "tutti" and "error" not in r), default=None)
        ratio = f"**{results['tutti']['per_second'] / best:.1f}** x the best peer" if best else "no peer"
        yield {"what": f"{SERVED[0]}, {protocol}, {CLIENTS} clients", "ratio": ratio, **{kind: shown(result) for kind, result in results.items()}}
    single, batched = [], []
    for _ in range(TURNS):
        for options, into in ((("--batch", "1"), single), ((), batched)):
            with ours(build, photo / "model.keras", *options) as place:
                into.append(load(build, "http", place, photo, input_name(place), 16))
    single, batched = middle(single), middle(batched)
    yield {"what": f"{SERVED[1]}, http, 16 clients: batching over one at a time", "ratio": f"**{batched['per_second'] / single['per_second']:.2f}** x",
           "tutti": f"{shown(batched)}; one at a time {shown(single)}", **{kind: "" for kind in PEERS}}  # fmt: skip
