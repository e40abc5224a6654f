"""Clients of `tutti serve` for the soak: each asks for rows of the model `dense` in its own way and checks the answer. As a program: one that asks for ever, until it is killed or something is wrong."""

import http.client
import json
import random
import sys

import numpy as np
import serving
import tutti_client

GIVEN, EXPECTED = serving.arrays("dense")
X, Y = next(iter(GIVEN.values())), next(iter(EXPECTED.values()))


class Local:
    refusals = tutti_client.RemoteError

    def __init__(self, address):
        self.client = tutti_client.Client(address, model="dense")

    def predict(self, x):
        return self.client.predict(x)

    def close(self):
        self.client.close()


class Refused(Exception):
    pass


class Http:
    """Binary tensors and TF Serving's rows in turn, over one connection."""

    refusals = Refused

    def __init__(self, address):
        self.connection, self.turn = http.client.HTTPConnection(address, timeout=60), 0

    def predict(self, x):
        self.turn += 1
        if self.turn % 2:
            return np.array(json.loads(self.ask("/v1/models/dense:predict", json.dumps({"instances": x.tolist()}).encode(), {}))["predictions"])
        about = {"name": "features", "shape": x.shape, "datatype": "FP32", "parameters": {"binary_data_size": x.nbytes}}
        head = json.dumps({"inputs": [about], "parameters": {"binary_data_output": True}}).encode()
        text = self.ask("/v2/models/dense/infer", head + x.tobytes(), {"Inference-Header-Content-Length": str(len(head))})
        size = len(text) - 4 * Y.shape[1] * len(x)
        return np.frombuffer(text[size:], "f").reshape(json.loads(text[:size])["outputs"][0]["shape"])

    def ask(self, path, body, headers):
        self.connection.request("POST", path, body, headers)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status == 400:
            raise Refused(text)
        if answer.status != 200:
            raise AssertionError(text)
        return text

    def close(self):
        self.connection.close()


class Grpc:
    def __init__(self, address):
        import tritonclient.grpc as kind

        self.kind, self.refusals, self.client = kind, kind.InferenceServerException, kind.InferenceServerClient(address)

    def predict(self, x):
        given = self.kind.InferInput("features", x.shape, "FP32")
        given.set_data_from_numpy(x)
        return self.client.infer("dense", [given]).as_numpy("scores")

    def close(self):
        self.client.close()


KINDS = {"local": Local, "http": Http, "grpc": Grpc}


def ask_once(client, choose):
    """One request of a few rows; one in a hundred is wrong, and must be refused."""
    if choose.random() < 0.01:
        try:
            client.predict(np.zeros((1, choose.randrange(5, 9)), "f"))
        except client.refusals:
            return
        raise AssertionError("what does not fit was answered")
    rows = [choose.randrange(len(X)) for _ in range(choose.randrange(1, 5))]
    np.testing.assert_allclose(client.predict(X[rows]), Y[rows], rtol=1e-4, atol=1e-5)


def main():
    kind, address, seed = sys.argv[1:]
    choose, client = random.Random(seed), KINDS[kind](address)
    while True:
        ask_once(client, choose)
        if choose.random() < 0.002:  # comes again
            client.close()
            client = KINDS[kind](address)


if __name__ == "__main__":
    main()
