"""Makes the training cases: make_cases.py OUT writes, per case, OUT/NAME/start.keras (compiled: its loss and optimizer are the case's), data.npz (x0 ...,
y0 ..., w0 ... for sample weights), end.keras (after the steps) and case.json (steps, batch, losses). --only REGEX makes some."""

import argparse
import json
import os
import pathlib
import re
import sys

os.environ.update(
    KERAS_BACKEND="jax",
    JAX_PLATFORMS="cpu",
    XLA_FLAGS="--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false",
)

import keras  # noqa: E402
import numpy as np  # noqa: E402

from cases import cases  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    names = set()
    for make in cases():
        if make["name"] in names:
            sys.exit(f"two cases are called {make['name']}")
        names.add(make["name"])
        if re.search(args.only, make["name"]):
            write(args.out / make["name"], **make)


def write(folder, name, model, data, loss, optimizer="sgd", batch=16, steps=50, weights=None, loss_weights=None, named=None, tolerance=None, as_built=False):
    keras.utils.clear_session(free_memory=False)
    keras.utils.set_random_seed(sum(map(ord, name)))
    folder.mkdir(parents=True, exist_ok=True)
    net = model()
    # No two weights alike, none zero: ties and zeros hide mistakes, unless they are what the case is about.
    random = np.random.default_rng(7)
    if not as_built:
        net.set_weights([w + 0.1 * random.standard_normal(w.shape).astype(w.dtype) if keep(v) else w for v, w in zip(net.weights, net.get_weights())])
    net.compile(loss=loss() if callable(loss) and not isinstance(loss, keras.losses.Loss) else loss,
                optimizer=optimizer() if callable(optimizer) else optimizer, loss_weights=loss_weights, jit_compile=True)
    xs, ys = data(random)
    xs, ys = aslist(xs), aslist(ys)
    ws = aslist(weights(random)) if weights else []
    net.save(folder / "start.keras")
    losses = []
    count = len(xs[0])
    for step in range(steps):
        start = step * batch % count
        part = slice(start, min(start + batch, count))
        net.reset_metrics()
        pick = lambda arrays: [a[part] for a in arrays] if len(arrays) > 1 else arrays[0][part]  # noqa: E731
        logs = net.train_on_batch(pick(xs), pick(ys), sample_weight=pick(ws) if ws else None, return_dict=True)
        losses.append(float(logs["loss"]))
    net.save(folder / "end.keras")
    np.savez(folder / "data.npz", **{f"{k}{i}": a for k, arrays in (("x", xs), ("y", ys), ("w", ws)) for i, a in enumerate(arrays)})
    (folder / "case.json").write_text(json.dumps({"batch": batch, "steps": steps, "losses": losses, **({"loss": named} if named else {}), **({"tolerance": tolerance} if tolerance else {})}) + "\n")
    if not np.all(np.isfinite(losses)):
        sys.exit(f"{name}: losses are not finite: {losses}")


def keep(variable):
    return variable.trainable and variable.dtype.startswith("float")


def aslist(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


if __name__ == "__main__":
    main()
