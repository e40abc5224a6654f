"""What the tests of `tutti serve` over HTTP and gRPC share: the server, its models, and asking it."""

import json
import os
import re
import signal
import socket
import subprocess
import threading
import urllib.error
import urllib.request

import numpy as np
from program import DATA, ProgramTest

MODELS = ["dense", "two_by_two", "ids", "open_time"]


class Server:
    """The program, serving until stop(). What it says on stderr is in `said`."""

    def __init__(self, program, *arguments, models=None):
        models = [DATA / f"{name}.keras" for name in MODELS] if models is None else models
        self.child = subprocess.Popen(
            [program, "serve", *map(str, models), *map(str, arguments)], stderr=subprocess.PIPE, text=True, env=os.environ | {"TUTTI_CACHE": "off"}
        )
        self.said = []
        self.http = self.grpc = None
        self.changed = threading.Condition()
        self.listener = threading.Thread(target=self.listen, daemon=True)
        self.listener.start()
        try:
            self.wait_for(lambda line: line.endswith("ready") and "model" not in line)
        except AssertionError:
            self.child.kill()  # it would hold this process's pipes open
            raise

    def listen(self):
        for line in self.child.stderr:
            with self.changed:
                self.said.append(line.strip())
                for protocol in ("http", "grpc"):
                    if found := re.search(rf"\b{protocol}s?: (\S+)$", line):
                        setattr(self, protocol, found[1])
                self.changed.notify_all()

    def wait_for(self, wanted):
        with self.changed:
            if not self.changed.wait_for(lambda: any(map(wanted, self.said)) or self.child.poll() is not None, timeout=60):
                raise AssertionError(f"not said: {self.said}")
        if self.child.poll() is not None:
            raise AssertionError(f"ended: {self.said}")

    def stop(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
        code = self.child.wait(timeout=60)
        self.listener.join()
        self.child.stderr.close()
        return code


def saved(name, kind):
    with np.load(DATA / f"{name}_{kind}.npz") as arrays:
        return {key: arrays[key] for key in arrays.files}


def close(test, got, expected):
    np.testing.assert_allclose(np.asarray(got, "float32"), expected, rtol=2e-5, atol=2e-6)


class ServeTest(ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(cls.program, "--http", ":0", "--grpc", ":0", "--body-limit", "4", "--http-connections", "100", "--request-time", "3")
        cls.url = f"http://{cls.server.http}"

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        assert code == 143, (code, cls.server.said)

    def ask(self, path, body=None, headers=None, method=None):
        """(status, headers, bytes) of an answer, whatever it is."""
        if isinstance(body, dict | list):
            body = json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=body, headers=headers or {}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, error.read()

    def get_json(self, path, body=None, **options):
        status, _, text = self.ask(path, body, **options)
        self.assertEqual(status, 200, text)
        return json.loads(text)

    def refused(self, status, message, path, body=None, **options):
        got, _, text = self.ask(path, body, **options)
        self.assertEqual(got, status, text)
        self.assertIn(message, json.loads(text)["error"])

    def raw(self, text, until_closed=True):
        """What comes back for these bytes."""
        host, port = self.server.http.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(text)
            out = b""
            while piece := connection.recv(65536):
                out += piece
                if not until_closed:
                    break
            return out


class LifeTest(ProgramTest):
    def start(self, *arguments, **options):
        server = Server(self.program, *arguments, **options)
        self.addCleanup(server.stop)
        return server

    def post(self, server, path, body, headers=None, scheme="http", **options):
        request = urllib.request.Request(f"{scheme}://{server.http}{path}", data=json.dumps(body).encode() if body is not None else None, headers=headers or {})
        with urllib.request.urlopen(request, timeout=60, **options) as answer:
            return json.loads(answer.read())
