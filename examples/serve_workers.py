"""Many processes, one owner of the device: each worker prepares its samples its own way and asks the server, which computes them together.

    tutti serve model.keras --socket /tmp/tutti.sock &
    python examples/serve_workers.py /tmp/tutti.sock
"""

import multiprocessing
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import tutti_client  # noqa: E402

client = None


def begin(path):
    """Once in each worker, spawned or forked."""
    global client
    client = tutti_client.Client(path)


def work(seed):
    shape = client.model().shapes[0][1:]  # of a sample
    sample = np.random.default_rng(seed).normal(size=(1, *shape))  # here a worker would read and prepare its own data
    return client.predict(sample)[0]


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(4, begin, (sys.argv[1],)) as pool:
        rows = np.array(pool.map(work, range(1000)))
    print(f"{len(rows)} predictions of shape {rows.shape[1:]} by 4 workers; mean {rows.mean():.4f}")
