"""The story: Python workers that send samples one at a time, to our server or through queues to an owner of their own. A module, because workers that are spawned import it."""

import multiprocessing
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import tutti_client  # noqa: E402

WORKERS, EACH = 4, 3000


def through_owner(path, seed, count, start, x):
    client = tutti_client.Client(path)
    client.predict(x)
    start.wait()
    for _ in range(count):
        client.predict(x)


def through_queues(requests, answers, index, count, start, x):
    start.wait()
    for _ in range(count):
        requests.put((index, x))
        answers.get()


def owner_rate(path, x):
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(WORKERS + 1)
    workers = [context.Process(target=through_owner, args=(path, seed, EACH, start, x)) for seed in range(WORKERS)]
    return rate(workers, start)


def queue_rate(x):
    """As people do it: one queue to the owner, one back to each worker; the owner gives back what it got."""
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(WORKERS + 1)
    requests, answers = context.Queue(64), [context.Queue() for _ in range(WORKERS)]
    workers = [context.Process(target=through_queues, args=(requests, answers[i], i, EACH, start, x)) for i in range(WORKERS)]

    def own():
        for _ in range(WORKERS * EACH):
            index, sample = requests.get()
            answers[index].put(sample)

    return rate(workers, start, own)


def rate(workers, start, own=lambda: None):
    for worker in workers:
        worker.start()
    start.wait()
    begin = time.perf_counter()
    own()
    for worker in workers:
        worker.join()
    return WORKERS * EACH / (time.perf_counter() - begin)
