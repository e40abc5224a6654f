"""Two devices of one thread each against one of one thread, with TensorFlow's MirroredStrategy in the same run.

Arms take turns, each a short run; the fastest of each counts, because other programs on the machine only ever make a turn longer. The ceiling is what two processes
that know nothing of each other reach at the same time, each with half of the batch: what the machine's two cores have to give. Parts: dense, cnn, 128, 1024, 64."""

import json
import os
import subprocess
import sys

import numpy as np

TURNS = 6
CASES = {
    "Dense 784-512-512-10, batch 1024": ("dense 512 relu; dense 512 relu; dense 10 softmax", (784,), 1024, 12),
    "Dense 784-512-512-10, batch 128": ("dense 512 relu; dense 512 relu; dense 10 softmax", (784,), 128, 80),
    "CNN 28x28, batch 64": ("conv2d 32 3 relu; max_pool 2; conv2d 64 3 relu; max_pool 2; flatten; dense 10 softmax", (28, 28, 1), 64, 30),
}
JOB = """[[job]]
name = "a"
build = "{layers}"
input = {input}
x = "x{axes}.npy"
y = "y.npy"
loss = "sparse_categorical_crossentropy"
optimizer = "sgd"
batch_size = {batch}
epochs = 1
steps_per_epoch = {steps}
"""


def setup(folder, _):
    random = np.random.default_rng(0)
    x = random.random((4096, 784), np.float32)
    np.save(folder / "x1.npy", x)
    np.save(folder / "x3.npy", x.reshape(-1, 28, 28, 1))
    np.save(folder / "y.npy", random.integers(0, 10, 4096).astype("int32"))


def write_job(folder, name, layers, shape, batch, steps):
    text = JOB.format(layers=layers, input=list(shape), axes=len(shape), batch=batch, steps=steps)
    (folder / name).write_text(text)


def step_us(child):
    out, _ = child.communicate()
    if child.returncode != 0:
        raise SystemExit("bench: tutti fit failed")
    return json.loads(out)["parallel"][0]["undisturbed_us_per_step"]


def start(folder, build, job, *arguments, launcher=(), out="out"):
    command = [*launcher, build / "tutti", "fit", folder / job, "--out", folder / out, "--threads", "1", "--json", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def mirrored(folder, devices, layers, shape, batch, steps):
    """Microseconds a step of Keras on TensorFlow, in a process of its own; None where there is no TensorFlow."""
    child = subprocess.run(
        [sys.executable, __file__, str(devices), str(len(shape)), str(batch), str(steps)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
    )
    return float(child.stdout) if child.returncode == 0 and child.stdout.strip() else None


def run(folder, build, parts):
    for name, (layers, shape, batch, steps) in CASES.items():
        if parts and not any(part.lower() in name.lower().replace(",", "").split() for part in parts):
            continue
        write_job(folder, "whole.toml", layers, shape, batch, steps)
        write_job(folder, "half.toml", layers, shape, batch // 2, steps)
        one, two, half, ranks, messages, theirs = [], [], [], [], [], {1: [], 2: []}
        for turn in range(TURNS):
            one.append(step_us(start(folder, build, "whole.toml", "--devices", "1")))
            two.append(step_us(start(folder, build, "whole.toml", "--devices", "2")))
            both = [start(folder, build, "half.toml", "--devices", "1", out=out) for out in ("out", "other")]
            half.append(max(step_us(child) for child in both))
            if (build / "libtutti_mpi.so").exists():
                mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", "2"]
                ranks.append(step_us(start(folder, build, "whole.toml", launcher=mpirun)))
                messages.append(step_us(start(folder, build, "whole.toml", "--exchange", "messages", launcher=mpirun)))
            for devices in (1, 2):
                if turn < 2 and (value := mirrored(folder, devices, layers, shape, batch, steps)):
                    theirs[devices].append(value)
        yield {
            "case": name,
            "1 device, us": f"{min(one):.0f}",
            "2 devices, us": f"{min(two):.0f}",
            "speed-up": f"{min(one) / min(two):.2f}",
            "ceiling": f"{min(one) / min(half):.2f}",
            "2 ranks of MPI": f"{min(one) / min(ranks):.2f}" if ranks else "-",
            "of threads": f"{min(two) / min(ranks):.2f}" if ranks else "-",
            "by messages": f"{min(one) / min(messages):.2f}" if messages else "-",
            "MirroredStrategy": f"{min(theirs[1]) / min(theirs[2]):.2f}" if theirs[1] and theirs[2] else "-",
        }


def train_mirrored(devices, axes, batch, steps):
    import time

    import keras
    import tensorflow as tf
    from keras import layers

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * devices)
    tf.config.threading.set_intra_op_parallelism_threads(devices)
    tf.config.threading.set_inter_op_parallelism_threads(devices)
    strategy = tf.distribute.get_strategy()
    if devices > 1:
        strategy = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(devices)], cross_device_ops=tf.distribute.ReductionToOneDevice())
    dense = [keras.Input((784,)), layers.Dense(512, "relu"), layers.Dense(512, "relu")]
    convolutions = [keras.Input((28, 28, 1))]
    for filters in (32, 64):
        convolutions += [layers.Conv2D(filters, 3, activation="relu"), layers.MaxPool2D(2)]
    with strategy.scope():
        model = keras.Sequential([*(dense if axes == 1 else [*convolutions, layers.Flatten()]), layers.Dense(10, "softmax")])
        model.compile("sgd", "sparse_categorical_crossentropy")
    x, y = np.load(f"x{axes}.npy"), np.load("y.npy")
    data = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(batch).prefetch(2)
    model.fit(data, epochs=1, steps_per_epoch=steps, verbose=0)
    times = []
    for _ in range(4):
        begin = time.perf_counter()
        model.fit(data, epochs=1, steps_per_epoch=steps, verbose=0)
        times.append((time.perf_counter() - begin) / steps)
    print(min(times) * 1e6)


if __name__ == "__main__":
    train_mirrored(*map(int, sys.argv[1:]))
