"""What the tests of `tutti serve` share: a server process, and models as arrays."""

import os
import queue
import subprocess
import sys
import threading
import time

import numpy as np
import program

sys.path.insert(0, str(program.ROOT / "python"))
import tutti_client  # noqa: E402


class Server:
    """A process of `tutti serve`; the lines that it says come in `said`."""

    def __init__(self, tutti, *arguments, wait="tutti: ready"):
        self.process = subprocess.Popen([tutti, "serve", *map(str, arguments)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=os.environ | {"TUTTI_CACHE": "off"})
        self.said, self.lines = [], queue.Queue()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        if wait:
            self.wait_for(wait)

    def read(self):
        for line in self.process.stderr:
            self.said.append(line.rstrip("\n"))
            self.lines.put(line)
        self.lines.put(None)

    def wait_for(self, text, seconds=60):
        end = time.monotonic() + seconds
        while not any(text in line for line in self.said):
            try:
                if self.lines.get(timeout=max(0.01, end - time.monotonic())) is None and not any(text in line for line in self.said):
                    raise AssertionError(f"it ended without saying '{text}': {self.said}")
            except queue.Empty:
                raise AssertionError(f"it did not say '{text}' in {seconds} s: {self.said}") from None

    def memory(self):
        """Bytes of it that are in memory and not shared with its clients."""
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon:"))

    def end(self, signal=None):
        """Its exit code, and what it said."""
        if signal is None:
            self.process.kill()
        else:
            self.process.send_signal(signal)
        code = self.process.wait(timeout=60)
        self.reader.join(timeout=10)
        self.process.stderr.close()
        return code, self.said


class ServeTest(program.ProgramTest):
    def serve(self, *arguments, **options):
        self.socket = self.folder / "socket"
        server = Server(self.program, *arguments, "--socket", self.socket, **options)
        self.addCleanup(lambda: server.process.poll() is None and server.end())
        return server

    def client(self, **options):
        client = tutti_client.Client(self.socket, **options)
        self.addCleanup(client.close)
        return client


def arrays(name):
    """Inputs and Keras's outputs of a model of make_models.py, in the model's order."""
    given, expected = np.load(program.DATA / f"{name}_in.npz"), np.load(program.DATA / f"{name}_out.npz")
    return {key: given[key] for key in given.files}, {key: expected[key] for key in expected.files}
