"""serve with local clients: answers against Keras's, from many processes, through everything that clients, files and signals may do."""

import concurrent.futures
import multiprocessing
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import program
import serving
import tutti_client

DENSE = program.DATA / "dense.keras"
GIVEN, EXPECTED = serving.arrays("dense")
X, Y = next(iter(GIVEN.values())), next(iter(EXPECTED.values()))
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def work(client, seed, count, model=None):
    """In a worker: how many of so many answers are right."""
    choose = np.random.default_rng(seed)
    right = 0
    for _ in range(count):
        rows = choose.integers(0, len(X), size=choose.integers(1, 4))
        right += np.allclose(client.predict(X[rows], model=model), Y[rows], **CLOSE)
    return right


def work_for_ever(client, seed, wrong):
    while True:
        if work(client, seed, 20) != 20:
            wrong.value += 1


def scribble(path, seconds, seed):
    """A client that writes anything anywhere in its region, again and again."""
    choose = random.Random(seed)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        client = tutti_client.Client(path, model="dense")
        try:
            client.predict(X[:1])
            region = client.connection.region
            for _ in range(200):
                for _ in range(choose.randrange(1, 30)):
                    at = choose.choice((choose.randrange(320), choose.randrange(region.slots_at), choose.randrange(len(region.bytes))))
                    region.bytes[at] = choose.randrange(256)
                region.ring()
            client.predict(X[:1], timeout=0.05)
        except (tutti_client.RemoteError, ConnectionError, ValueError, TypeError, IndexError, OverflowError):
            pass
        client.close()


class LocalTest(serving.ServeTest):
    def test_workers_by_spawn_and_fork_get_the_answers_of_keras(self):
        self.serve(DENSE)
        client = self.client()
        np.testing.assert_allclose(client.predict(X), Y, **CLOSE)  # connected before the fork
        self.succeed("predict", DENSE, program.DATA / "dense_in.npz", "-o", "y.npy")
        np.testing.assert_array_equal(client.predict(X), np.load(self.folder / "y.npy"))  # the same program gives the same bits
        for method in ("fork", "spawn"):
            with multiprocessing.get_context(method).Pool(3) as pool:
                self.assertEqual(pool.starmap(work, [(client, seed, 50) for seed in range(6)]), [50] * 6)
        self.assertEqual(work(client, 9, 50), 50)

    def test_threads_share_a_client(self):
        self.serve(DENSE)
        client = self.client(slots=2)
        with concurrent.futures.ThreadPoolExecutor(5) as pool:
            self.assertEqual(list(pool.map(lambda seed: work(client, seed, 60), range(5))), [60] * 5)

    def test_models_of_all_kinds_side_by_side(self):
        names = ("dense", "ids", "image", "legacy", "nested", "open_time", "recurrent", "repeated", "two_by_two", "wide", "bfloat16")
        files = {name: program.DATA / f"{name}{'.h5' if name == 'legacy' else '.keras'}" for name in names}
        self.serve(*files.values())
        client = self.client()
        self.assertEqual(sorted(client.models()), sorted(names))
        for name in names:
            given, expected = serving.arrays(name)
            model = client.model(name)
            self.succeed("predict", files[name], program.DATA / f"{name}_in.npz", "-o", "y.npz")
            ours = np.load(self.folder / "y.npz")
            found = client.predict(given if set(given) == set(model.input_names) else list(given.values()), model=name)
            found = found if isinstance(found, list) else [found]
            self.assertEqual(len(found), len(expected), name)
            for output, array in zip(model.output_names, found):
                np.testing.assert_allclose(array, ours[output], err_msg=name, **CLOSE)

    def test_futures(self):
        self.serve(DENSE)
        client = self.client(slots=4)
        futures = [client.submit(X[i : i + 1]) for i in range(len(X))]  # more than there are slots
        for i, future in enumerate(concurrent.futures.as_completed(futures, timeout=30)):
            self.assertIsNone(future.exception())
        for i, future in enumerate(futures):
            np.testing.assert_allclose(future.result(), Y[i : i + 1], **CLOSE)
        called = threading.Event()
        client.submit(X).add_done_callback(lambda future: (client.predict(X), called.set()))  # a callback may ask again
        self.assertTrue(called.wait(10))
        bad = client.submit(np.zeros((2, 9), "f"))
        self.assertEqual(bad.exception(timeout=10).kind, "bad_request")
        one = client.submit(X)
        if one.cancel():
            self.assertTrue(one.cancelled())
        np.testing.assert_allclose(client.predict(X), Y, **CLOSE)

    def test_futures_alone_find_a_server_that_was_started_again(self):
        server = self.serve(DENSE)
        client = self.client()
        client.submit(X).result(timeout=10)
        server.end()
        with self.assertRaisesRegex(ConnectionError, "the server is gone"):
            client.submit(X).result(timeout=10)
        with self.assertRaisesRegex(ConnectionError, "nobody serves"):
            client.submit(X)
        self.serve(DENSE)
        np.testing.assert_allclose(client.submit(X).result(timeout=10), Y, **CLOSE)

    def test_errors_say_what_is_wrong(self):
        self.serve(DENSE, program.DATA / "two_by_two.keras")
        client = self.client()
        with self.assertRaisesRegex(tutti_client.RemoteError, "which model\\? There are dense, two_by_two"):
            client.predict(X)
        with self.assertRaisesRegex(tutti_client.RemoteError, "no model 'dens' \\(did you mean 'dense'\\?\\)"):
            client.predict(X, model="dens")
        with self.assertRaisesRegex(tutti_client.RemoteError, "input 'features' is f32\\[-1, 4\\]; got f32\\[1, 3\\]") as raised:
            client.predict(np.zeros((1, 3)), model="dense")
        self.assertEqual(pickle.loads(pickle.dumps(raised.exception)).kind, "bad_request")
        with self.assertRaisesRegex(tutti_client.RemoteError, "takes 2 inputs; got 1"):
            client.predict([X[:1]], model="two_by_two")
        with self.assertRaisesRegex(tutti_client.RemoteError, "no input \\['q'\\]"):
            client.predict({"q": X}, model="dense")
        with self.assertRaisesRegex(ConnectionError, "nobody serves at"):
            tutti_client.Client(self.folder / "nowhere").predict(X)
        for priority in (1.5, "high", None, 2**31):
            with self.assertRaisesRegex(tutti_client.RemoteError, f"a priority is a whole number of 32 bits; got {priority!r}"):
                client.predict(X, model="dense", priority=priority)
        for timeout in ("1", float("nan")):
            with self.assertRaisesRegex(tutti_client.RemoteError, f"a timeout is a number of seconds; got {timeout!r}"):
                client.submit(X, model="dense", timeout=timeout)
        np.testing.assert_allclose(client.predict(X, model="dense", priority=np.int64(-3), timeout=float("inf")), Y, **CLOSE)
        with self.assertRaises(tutti_client.RemoteTimeout):
            client.predict(X, model="dense", timeout=-1e30)
        np.testing.assert_allclose(client.predict(X, model="dense"), Y, **CLOSE)

    def test_arrays_that_need_more_room_get_it(self):
        self.serve(DENSE)
        client = self.client(slot_bytes=4096)
        for count in (1, 5_000, 3, 100_000):
            rows = np.arange(count) % len(X)
            np.testing.assert_allclose(client.predict(X[rows]), Y[rows], **CLOSE)

    def test_open_extents_take_the_room_that_the_inputs_hint_at(self):
        given, expected = serving.arrays("open_time")
        (x,), (y,) = given.values(), expected.values()
        self.serve(program.DATA / "open_time.keras", "--region-limit", 1)
        rows = np.arange(40) % len(x)
        np.testing.assert_allclose(self.client().predict(x[rows]), y[rows], **CLOSE)
        self.assertEqual(self.client().submit(x[rows]).result(timeout=10).shape, y[rows].shape)

    def test_a_request_that_is_too_large_does_not_keep_a_client_from_connecting_again(self):
        self.serve(DENSE, "--region-limit", 1)
        client = self.client()
        with self.assertRaisesRegex(tutti_client.RemoteError, "a region has"):
            client.predict(np.zeros((100_000, 4), "float32"))
        np.testing.assert_allclose(client.predict(X), Y, **CLOSE)
        client.close()
        np.testing.assert_allclose(client.predict(X), Y, **CLOSE)

    def test_threads_that_outgrow_a_client_get_the_answers_of_their_models(self):
        # The handle of a model is the connection's own, and threads that need more room make a new one under the others.
        self.serve(program.DATA / "two_by_two.keras", DENSE)
        given, expected = serving.arrays("two_by_two")
        descriptors = len(os.listdir("/proc/self/fd"))
        client = self.client(slot_bytes=4096)

        def ask(number):
            for step in range(40):
                count = 1 + step * step
                if number % 2:
                    np.testing.assert_allclose(client.predict(np.repeat(X[:1], count, 0), model="dense"), np.repeat(Y[:1], count, 0), **CLOSE)
                else:
                    found = client.predict({name: np.repeat(array[:1], count, 0) for name, array in given.items()}, model="two_by_two")
                    np.testing.assert_allclose(found[0], np.repeat(expected["total"][:1], count, 0), **CLOSE)
            return True

        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            self.assertTrue(all(pool.map(ask, range(6))))
        client.close()
        self.assertEqual(len(os.listdir("/proc/self/fd")), descriptors)

    def test_values_of_bfloat16_are_numbers(self):
        import ml_dtypes
        from tutti_client import connection

        x = np.random.default_rng(1).integers(0, 1 << 32, 100_000, np.uint32).view(np.float32)
        x = np.concatenate([x[~np.isnan(x)], np.array([0.0, -0.0, np.inf, -np.inf, 3.4e38, 1e-45], "f")])
        np.testing.assert_array_equal(connection.bfloat16_bits(x), x.astype(ml_dtypes.bfloat16).view(np.uint16))
        self.assertEqual(connection.bfloat16_bits(np.array([np.nan], "f"))[0] & 0x7FFF, 0x7FC0)

    def test_clients_that_are_killed_or_scribble_harm_nobody(self):
        server = self.serve(DENSE)
        context = multiprocessing.get_context("fork")
        scribbler = context.Process(target=scribble, args=(self.socket, 2, 5))
        scribbler.start()
        wrong = context.Value("i", 0)
        for seed in range(12):
            worker = context.Process(target=work_for_ever, args=(tutti_client.Client(self.socket, model="dense"), seed, wrong))
            worker.start()
            time.sleep(0.05 + 0.01 * seed)
            os.kill(worker.pid, signal.SIGKILL)
            worker.join()
            self.assertEqual(work(self.client(model="dense"), seed, 10), 10)
        scribbler.join()
        self.assertEqual(scribbler.exitcode, 0)
        self.assertEqual(wrong.value, 0)
        self.assertIsNone(server.process.poll())
        self.assertEqual(server.end(signal.SIGTERM)[0], 143)

    def test_a_stopped_client_keeps_nobody_waiting(self):
        self.serve(DENSE)
        context = multiprocessing.get_context("fork")
        wrong = context.Value("i", 0)
        worker = context.Process(target=work_for_ever, args=(tutti_client.Client(self.socket), 0, wrong))
        worker.start()
        time.sleep(0.2)
        os.kill(worker.pid, signal.SIGSTOP)
        self.assertEqual(work(self.client(), 1, 200), 200)
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()

    def test_signals_end_it_when_what_is_under_way_is_answered(self):
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            server = self.serve(DENSE, "--max-wait", 200_000)
            client = self.client()
            client.predict(X[:1])
            future = client.submit(X[:2])
            time.sleep(0.05)
            found, said = server.end(number)
            self.assertEqual(found, code)
            np.testing.assert_allclose(future.result(timeout=10), Y[:2], **CLOSE)
            self.assertEqual(said[-1], "tutti: error: [interrupted] all requests were answered")
            self.assertFalse(self.socket.exists())
            with self.assertRaises(ConnectionError):
                client.predict(X)

    def test_a_changed_file_is_served_once_it_is_whole(self):
        model = self.folder / "m.keras"
        shutil.copy(DENSE, model)
        server = self.serve(model, "--poll", 50)
        client = self.client()
        np.testing.assert_allclose(client.predict(X), Y, **CLOSE)
        model.write_bytes(DENSE.read_bytes()[:1000])
        server.wait_for("tutti: warning: model 'm' version 1 goes on with what it had")
        np.testing.assert_allclose(client.predict(X), Y, **CLOSE)
        shutil.copy(program.DATA / "batch_mean.keras", self.folder / "next")
        os.replace(self.folder / "next", model)
        server.wait_for("each request alone: it mixes the samples of a batch")

    def test_the_example_of_the_docs(self):
        self.serve(DENSE)
        run = subprocess.run([sys.executable, program.ROOT / "examples" / "serve_workers.py", self.socket], capture_output=True, text=True, timeout=120)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout, "^1000 predictions of shape \\(3,\\) by 4 workers")

    def test_a_model_that_cannot_be_loaded_ends_it_before_it_listens(self):
        (self.folder / "broken.keras").write_bytes(DENSE.read_bytes()[:1000])
        for model, reason in {"typo.keras": "cannot open 'typo.keras': No such file", "m=broken.keras": "not a zip archive", "m=.": "it is a directory"}.items():
            run = self.refuse(1, reason, "serve", DENSE, model, "--socket", "socket", "--quiet")
            self.assertIn(f"[serve] model '{model.replace('=', '.').split('.')[0]}' could not be loaded: ", run.err)
            self.assertFalse((self.folder / "socket").exists())

    def test_wrong_usage(self):
        self.refuse(2, "MODEL or --repository is needed", "serve", "--socket", "s")
        self.refuse(2, "[usage]", "serve", DENSE)
        self.refuse(2, "--queue", "serve", DENSE, "--socket", "s", "--queue", "0")
        self.refuse(1, "a model's name is", "serve", f"a b={DENSE}", "--socket", "s")
        self.refuse(1, "two models are called 'dense'", "serve", DENSE, DENSE, "--socket", "s")
        self.refuse(1, "the repository", "serve", "--repository", "nowhere", "--socket", "s")
        self.serve(DENSE)
        run = subprocess.run([self.program, "serve", DENSE, "--socket", self.socket], capture_output=True, text=True, timeout=60)
        self.assertEqual(run.returncode, 1)
        self.assertIn("another server listens at", run.stderr.splitlines()[-1])


if __name__ == "__main__":
    program.main()
