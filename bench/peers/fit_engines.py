"""Peers of ./x bench fit: fit_engines.py ENGINE FOLDER THREADS trains the models of a folder. It prints the losses of the first steps, then for each number of
seconds on stdin the time of a model's step."""

import json
import os
import pathlib
import sys
import time

ENGINE, FOLDER, THREADS = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
JAX = ENGINE.startswith("jax")
os.environ.update(KERAS_BACKEND="jax" if JAX else "tensorflow", JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3")

import fit_models  # noqa: E402
import keras  # noqa: E402
import numpy as np  # noqa: E402

KINDS = fit_models.members(FOLDER.name)
NETS = [keras.models.load_model(FOLDER / f"m{i}.keras") for i in range(len(KINDS))]
XS = [np.load(FOLDER / f"x{i}.npy") for i in range(len(KINDS))]
YS = [np.load(FOLDER / f"y{i}.npy") for i in range(len(KINDS))]


def tf_loop():
    """The usual loop: a compiled step a model, in turns."""
    import tensorflow as tf

    steps = []
    for net, kind, x, y in zip(NETS, KINDS, XS, YS):
        loss_of, optimizer, size = keras.losses.get(fit_models.loss(kind)), keras.optimizers.Adam(0.001), fit_models.batch(kind)
        optimizer.build(net.trainable_variables)

        @tf.function
        def step(a, b, net=net, loss_of=loss_of, optimizer=optimizer):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(loss_of(b, net(a, training=True)))
            optimizer.apply(tape.gradient(loss, net.trainable_variables), net.trainable_variables)
            return loss

        data = [(tf.constant(x[i : i + size]), tf.constant(y[i : i + size])) for i in range(0, len(x), size)]
        steps.append((step, data))

    def run(number):
        return [float(step(*data[number % len(data)])) for step, data in steps]

    return run


def jax_loss(kind, y, prediction):
    import jax.numpy as jnp

    if fit_models.loss(kind) == "mse":
        return jnp.mean((y - prediction) ** 2)
    chosen = jnp.take_along_axis(prediction, y[:, None], -1)[:, 0]
    return jnp.mean(-jnp.log(jnp.clip(chosen / jnp.sum(prediction, -1), 1e-7, 1 - 1e-7)))


def jax_step(net, kind):
    """Adam as Keras computes it, on one model: (weights, moments, step, x, y) -> the next ones and the loss."""
    import jax
    import jax.numpy as jnp

    still = [v.value for v in net.non_trainable_variables]

    def loss(weights, x, y):
        return jax_loss(kind, y, net.stateless_call(weights, still, x, training=True)[0])

    def step(weights, m, v, count, x, y):
        value, gradients = jax.value_and_grad(loss)(weights, x, y)
        t = (count + 1).astype("float32")
        rate = 0.001 * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        m = [a + (g - a) * 0.1 for a, g in zip(m, gradients)]
        v = [a + (g * g - a) * 0.001 for a, g in zip(v, gradients)]
        weights = [w - a * rate / (jnp.sqrt(b) + 1e-7) for w, a, b in zip(weights, m, v)]
        return weights, m, v, count + 1, value

    return step


def jax_groups(together):
    """Models with the function of their step: those alike under one vmap, or each alone. Data stay on the device."""
    import jax
    import jax.numpy as jnp

    groups = []
    kinds = list(dict.fromkeys(KINDS)) if together else [None] * len(KINDS)
    for number, wanted in enumerate(kinds):
        chosen = [i for i, kind in enumerate(KINDS) if kind == wanted] if together else [number]
        net, kind = NETS[chosen[0]], KINDS[chosen[0]]
        one, size = jax_step(net, kind), fit_models.batch(kind)
        if together:
            weights = [jnp.stack(parts) for parts in zip(*[[v.value for v in NETS[i].trainable_variables] for i in chosen])]
            x, y, one = jnp.stack([XS[i] for i in chosen]), jnp.stack([YS[i] for i in chosen]), jax.vmap(one, (0, 0, 0, None, 0, 0), (0, 0, 0, None, 0))
            cut = lambda a, at: jax.lax.dynamic_slice_in_dim(a, at, size, 1)  # noqa: E731
        else:
            weights = [jnp.array(v.value) for v in net.trainable_variables]
            x, y = jnp.array(XS[number]), jnp.array(YS[number])
            cut = lambda a, at: jax.lax.dynamic_slice_in_dim(a, at, size, 0)  # noqa: E731
        batches = len(XS[chosen[0]]) // size

        def step(weights, m, v, count, x, y, one=one, cut=cut, size=size, batches=batches):
            at = count % batches * size
            return one(weights, m, v, count, cut(x, at), cut(y, at))

        zeros = [jnp.zeros_like(w) for w in weights]
        state = (weights, zeros, [jnp.zeros_like(w) for w in weights], jnp.zeros((), "int32"))
        groups.append([jax.jit(step, donate_argnums=(0, 1, 2, 3)), state, x, y])
    return groups


def jax_loop(together):
    groups = jax_groups(together)

    def run(number):
        losses = []
        for group in groups:
            step, state, x, y = group
            *state, value = step(*state, x, y)
            group[1] = state
            losses.append(value)
        return np.concatenate([np.ravel(value) for value in losses]).tolist()

    return run


def main():
    run = tf_loop() if not JAX else jax_loop(together=ENGINE == "jax vmap")
    losses = [run(i) for i in range(fit_models.CHECKED)]
    print(json.dumps({"losses": losses}), flush=True)
    number = fit_models.CHECKED
    for line in sys.stdin:
        begin, first = time.perf_counter(), number
        while time.perf_counter() < begin + float(line) or number < first + 3:
            run(number)
            number += 1
        us = (time.perf_counter() - begin) * 1e6 / (number - first) / len(KINDS)  # of a turn the mean, as ours
        print(json.dumps({"p50_us": us, "p99_us": us}), flush=True)


if __name__ == "__main__":
    main()
