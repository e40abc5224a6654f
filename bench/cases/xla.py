"""The xla device on the processor against jax.jit: the median time of a batch, from an array of the host to one. With one small sample it is what a call costs, with large batches what XLA computes.

jax.jit runs twice: by the plugin that ours uses, which makes both the same XLA and the ratio what each adds to it, and by the XLA inside of jaxlib, which is another version."""

import contextlib
import os
import statistics

import compare
import jit_models

OURS, SAME, PEER = "tutti on xla:cpu", "jax.jit, same plugin", "jax.jit"


def setup(folder, wanted):
    compare.make("jit_models.py", folder, compare.chosen(jit_models.NAMES, wanted))


def plugin_of(build):
    found = sorted(build.glob("plugins/lib/python*/site-packages/xla_plugins/xla_cpu_pjrt/*.so"))
    if not found:
        raise SystemExit("bench: there is no plugin for xla:cpu; ./x build installs it")
    return str(found[0])


def run(folder, build, wanted):
    os.environ["BENCH_PLUGIN"] = plugin_of(build)
    for name in compare.chosen(jit_models.NAMES, wanted):
        own = folder / name
        command = [build / "tutti", "predict", own / "model.keras", own / "x.npy", "--batch", str(jit_models.BATCHES[name][1]), "--device", "xla:cpu"]
        compare.check_ours(own, command)
        with contextlib.ExitStack() as ends:
            turns = {OURS: ends.enter_context(compare.Peer(own, OURS, 2, command=[build / "bench" / "turns", own, "xla:cpu"]))}
            turns |= {peer: ends.enter_context(compare.Peer(own, peer, 2)) for peer in (SAME, PEER)}
            orders = (list(turns), list(turns)[::-1])  # whoever comes first comes last in the next round
            rounds = [{engine: turns[engine](compare.SECONDS) for engine in orders[i % 2]} for i in range(2 * compare.ROUNDS)]
        times = {engine: compare.middle([one[engine] for one in rounds]) for engine in turns}
        ratios = {f"of {peer}": f"**{ratio(rounds, peer, 'p50_us')}**" for peer in (SAME, PEER)}
        yield {"model": name, **ratios, f"CPU time, of {SAME}": ratio(rounds, SAME, "cpu_us"), **{engine: compare.shown(times[engine]) for engine in turns}}


def ratio(rounds, peer, what):
    """The median of the rounds' ratios: what runs close together sees the same machine."""
    found = [one[OURS][what] / one[peer][what] for one in rounds if what in one[OURS] and what in one[peer]]
    return f"{statistics.median(found):.2f}" if found else "—"
