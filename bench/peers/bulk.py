"""Images through MobileNetV2, as others do it: bulk.py make FOLDER COUNT, or bulk.py ENGINE FOLDER.

make: FOLDER/photos has COUNT JPEGs of 640 x 480, FOLDER/model.h5 the network, FOLDER/y.npy Keras's own answer. COUNT "table": FOLDER/x.npy has ten million rows, FOLDER/model.keras a small
network, FOLDER/y.npy its answer to the first thousand. An engine predicts them all once to warm up and compare, then again; prints
{"seconds"} of the second time, or {"error"}.
"""

import json
import os
import pathlib
import sys
import time

os.environ |= {"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
import engines  # noqa: E402
import numpy as np  # noqa: E402

SIZE = (224, 224)


def make(folder, count):
    import keras
    import models
    import tensorflow as tf

    random = np.random.default_rng(0)
    model = keras.applications.MobileNetV2(weights=None)
    models.calibrate(model, random)
    model.save(folder / "model.h5")
    (folder / "photos").mkdir(exist_ok=True)
    y, x = np.mgrid[0:480, 0:640]
    for i in range(count):
        waves = [np.sin(x / random.uniform(5, 60) + random.uniform(0, 6)) * np.cos(y / random.uniform(5, 60)) for _ in range(3)]
        pixels = (np.stack(waves, -1) * 100 + 128 + random.normal(0, 12, (480, 640, 3))).clip(0, 255).astype("uint8")
        (folder / "photos" / f"{i:05}.jpg").write_bytes(tf.io.encode_jpeg(pixels, quality=90).numpy())
    np.save(folder / "y.npy", data_function(folder, 32)())


def make_table(folder):
    import keras

    random, rows = np.random.default_rng(0), 10_000_000
    model = keras.Sequential([keras.Input((32,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(10)])
    model.save(folder / "model.keras")
    x = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, (rows, 32))
    for begin in range(0, rows, 1_000_000):
        x[begin : begin + 1_000_000] = random.standard_normal((1_000_000, 32), np.float32)
    x.flush()
    np.save(folder / "y.npy", np.asarray(model(x[:1000])))


def read(path):
    import tensorflow as tf

    pixels = tf.io.decode_jpeg(tf.io.read_file(path), channels=3, dct_method="INTEGER_ACCURATE")
    return tf.image.resize(pixels, SIZE) / 127.5 - 1


def paths(folder):
    return [str(path) for path in sorted((folder / "photos").glob("*.jpg"))]


def load(folder):
    import keras

    return keras.saving.load_model(folder / "model.h5", compile=False)


def data_function(folder, batch):
    import tensorflow as tf

    model = load(folder)
    function = tf.function(lambda samples: model(samples, training=False))

    def run():
        samples = tf.data.Dataset.from_tensor_slices(paths(folder)).map(read, num_parallel_calls=tf.data.AUTOTUNE).batch(batch).prefetch(tf.data.AUTOTUNE)
        return np.concatenate([function(one).numpy() for one in samples])

    return run


def keras_predict(folder, batch):
    model, files = load(folder), paths(folder)

    def run():
        chunks = [np.stack([read(path).numpy() for path in files[i : i + batch]]) for i in range(0, len(files), batch)]
        return np.concatenate([model.predict_on_batch(chunk) for chunk in chunks])

    return run


def decode_into(files, queue):
    """A worker: what people do with OpenCV or Pillow, here with TensorFlow's own decoder so that the answers are comparable."""
    for index, path in files:
        queue.put((index, read(path).numpy()))
    queue.put(None)


def process_queue(folder, batch):
    """A process per core decodes and passes arrays through a multiprocessing queue; the owner of the model calls model.predict."""
    import multiprocessing

    model, files = load(folder), paths(folder)
    context = multiprocessing.get_context("spawn")
    cores = len(os.sched_getaffinity(0))

    def run():
        queue = context.Queue(4 * batch)
        workers = [context.Process(target=decode_into, args=(list(enumerate(files))[i::cores], queue)) for i in range(cores)]
        for worker in workers:
            worker.start()
        first = queue.get()  # starting Python and TensorFlow in the workers is not counted
        run.began = time.perf_counter()
        out, waiting, ended = [None] * len(files), [first], 0
        while waiting or ended < cores:
            while ended < cores and len(waiting) < batch:
                found = queue.get()
                ended += found is None
                waiting += [found] if found else []
            if waiting:
                for (index, _), row in zip(waiting, model.predict(np.stack([sample for _, sample in waiting]), verbose=0)):
                    out[index] = row
            waiting = []
        for worker in workers:
            worker.join()
        return np.stack(out)

    return run


ENGINES = {
    "processes + queue + keras.predict 32": lambda folder: process_queue(folder, 32),
    "tf.data + tf.function 32": lambda folder: data_function(folder, 32),
    "tf.data + tf.function 1": lambda folder: data_function(folder, 1),
    "keras.predict 32": lambda folder: keras_predict(folder, 32),
    "keras.predict 1": lambda folder: keras_predict(folder, 1),
}


def main():
    if sys.argv[1] == "make":
        folder, what = pathlib.Path(sys.argv[2]), sys.argv[3]
        return make_table(folder) if what == "table" else make(folder, int(what))
    engine, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    run = ENGINES[engine](folder)
    difference = engines.differs(run(), np.load(folder / "y.npy"))
    start = time.perf_counter()
    run()
    start = getattr(run, "began", start)
    print(json.dumps({"error": difference} if difference else {"seconds": time.perf_counter() - start}))


if __name__ == "__main__":
    main()
