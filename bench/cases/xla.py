"""The xla device on the processor against jax.jit: the median time of a batch, from an array of the host to one. Ratio: ours over jax.jit's. With one small sample it is what a call costs, with large batches what XLA computes."""

import contextlib

import compare
import jit_models

PEER = "jax.jit"


def setup(folder, wanted):
    compare.make("jit_models.py", folder, compare.chosen(jit_models.NAMES, wanted))


def run(folder, build, wanted):
    for name in compare.chosen(jit_models.NAMES, wanted):
        own = folder / name
        command = [build / "tutti", "predict", own / "model.keras", own / "x.npy", "--batch", str(jit_models.BATCHES[name][1]), "--device", "xla:cpu"]
        compare.check_ours(own, command)
        with contextlib.ExitStack() as ends:
            turns = {"tutti on xla:cpu": compare.Ours(command, "tutti"), PEER: ends.enter_context(compare.Peer(own, PEER, 2))}
            rounds = [{engine: turn(compare.SECONDS) for engine, turn in turns.items()} for _ in range(compare.ROUNDS)]
        times = {engine: compare.middle([one[engine] for one in rounds]) for engine in turns}
        ratio = times["tutti on xla:cpu"]["p50_us"] / times[PEER]["p50_us"] if "p50_us" in times[PEER] else float("nan")
        yield {"model": name, "ratio": f"**{ratio:.2f}**", **{engine: compare.shown(times[engine]) for engine in turns}}
