"""`tutti serve` over HTTP: the Open Inference Protocol and TF Serving's, as urllib and raw sockets ask it. Every answer is compared with Keras's."""

import gzip
import json
import re
import select
import socket
import time
import urllib.error
import urllib.request
import zlib

import numpy as np
from network import MODELS, Server, ServeTest, close, saved
from program import DATA, main


class V2Test(ServeTest):
    def test_health_and_metadata(self):
        self.assertEqual(self.get_json("/v2/health/live"), {"live": True})
        self.assertEqual(self.get_json("/v2/health/ready"), {"ready": True})
        self.assertEqual(self.get_json("/v2")["name"], "tutti")
        self.assertEqual(self.get_json("/v2/models/dense/ready")["ready"], True)
        meta = self.get_json("/v2/models/two_by_two/versions/1")
        self.assertEqual([(t["name"], t["datatype"], t["shape"]) for t in meta["inputs"]], [("a", "FP32", [-1, 3]), ("b", "FP32", [-1, 2])])
        self.assertEqual(meta["versions"], ["1"])
        self.assertEqual(self.get_json("/v2/models/open_time")["inputs"][0]["shape"], [-1, -1, 2])
        config = self.get_json("/v2/models/dense/config")
        self.assertEqual((config["max_batch_size"], config["input"][0]["dims"]), (64, [4]))

    def test_json_nested_and_flat(self):
        x, expected = saved("dense", "in")["features"][:3], saved("dense", "out")["scores"][:3]
        for data in (x.tolist(), x.ravel().tolist()):
            answer = self.get_json(
                "/v2/models/dense/infer", {"id": "seven", "inputs": [{"name": "features", "shape": [3, 4], "datatype": "FP32", "data": data}]}
            )
            self.assertEqual((answer["id"], answer["model_name"], answer["model_version"]), ("seven", "dense", "1"))
            self.assertEqual(answer["outputs"][0]["shape"], [3, 3])
            close(self, np.reshape(answer["outputs"][0]["data"], (3, 3)), expected)

    def test_binary_and_json_in_one_request(self):
        inputs, expected = saved("two_by_two", "in"), saved("two_by_two", "out")
        a, b = inputs["a"][:4], inputs["b"][:4]
        names = list(expected)
        head = json.dumps(
            {
                "inputs": [
                    {"name": "b", "shape": [4, 2], "datatype": "FP32", "data": b.tolist()},
                    {"name": "a", "shape": [4, 3], "datatype": "FP32", "parameters": {"binary_data_size": a.nbytes}},
                ],
                "outputs": [{"name": names[1], "parameters": {"binary_data": True}}, {"name": names[0]}],
            }
        ).encode()
        status, headers, text = self.ask("/v2/models/two_by_two/infer", head + a.tobytes(), {"Inference-Header-Content-Length": str(len(head))})
        self.assertEqual(status, 200, text)
        size = int(headers["Inference-Header-Content-Length"])
        outputs = json.loads(text[:size])["outputs"]
        self.assertEqual([o["name"] for o in outputs], [names[1], names[0]])
        self.assertEqual(outputs[0]["parameters"]["binary_data_size"], len(text) - size)
        close(self, np.frombuffer(text[size:], "float32").reshape(outputs[0]["shape"]), expected[names[1]][:4])
        close(self, np.reshape(outputs[1]["data"], outputs[1]["shape"]), expected[names[0]][:4])

    def test_what_may_be_left_out_may_be_null(self):
        given = {"name": "features", "shape": [1, 4], "datatype": "FP32", "parameters": None, "data": [1, 2, 3, 4]}
        whole = self.get_json("/v2/models/dense/infer", {"id": None, "parameters": {"sequence_id": 0, "timeout": None}, "inputs": [given], "outputs": None})
        self.assertEqual(whole["outputs"][0]["shape"], [1, 3])
        self.get_json("/v1/models/dense:predict", {"signature_name": None, "instances": [[1, 2, 3, 4]]})

    def test_integers_and_open_extents(self):
        x, expected = saved("ids", "in")["ids"], saved("ids", "out")
        answer = self.get_json("/v2/models/ids/infer", {"inputs": [{"name": "ids", "shape": list(x.shape), "datatype": "INT32", "data": x.ravel().tolist()}]})
        close(self, np.reshape(answer["outputs"][0]["data"], answer["outputs"][0]["shape"]), next(iter(expected.values())))
        x, expected = saved("open_time", "in")["series"], saved("open_time", "out")
        for length in (1, x.shape[1]):
            part = x[:, :length]
            answer = self.get_json(
                "/v2/models/open_time/infer", {"inputs": [{"name": "series", "shape": list(part.shape), "datatype": "FP32", "data": part.ravel().tolist()}]}
            )
            close(self, np.reshape(answer["outputs"][0]["data"], answer["outputs"][0]["shape"]), next(iter(expected.values()))[:, :length])

    def test_compressed_requests(self):
        x, expected = saved("dense", "in")["features"][:1], saved("dense", "out")["scores"][:1]
        body = json.dumps({"instances": x.tolist()}).encode()
        raw = zlib.compressobj(wbits=-15)
        for encoding, packed in (("gzip", gzip.compress(body)), ("GZip", gzip.compress(body)), ("deflate", zlib.compress(body)), ("deflate", raw.compress(body) + raw.flush())):
            answer = self.get_json("/v1/models/dense:predict", packed, headers={"Content-Encoding": encoding})
            close(self, answer["predictions"], expected)
        bomb = gzip.compress(b" " * (5 << 20))
        self.assertLess(len(bomb), 10_000)
        self.refused(400, "larger than 4194304 bytes when decompressed", "/v1/models/dense:predict", bomb, headers={"Content-Encoding": "gzip"})
        self.refused(400, "is cut short", "/v1/models/dense:predict", gzip.compress(body)[:-9], headers={"Content-Encoding": "gzip"})
        self.refused(400, "Content-Encoding is gzip", "/v1/models/dense:predict", body, headers={"Content-Encoding": "br"})

    def test_repository(self):
        index = self.get_json("/v2/repository/index", b"")
        self.assertEqual(sorted(m["name"] for m in index), sorted(MODELS))
        self.assertEqual({m["state"] for m in index}, {"READY"})
        self.get_json("/v2/repository/models/ids/unload", {})
        self.assertNotEqual(self.ask("/v2/models/ids/ready")[0], 200)
        self.refused(404, "ids", "/v2/models/ids/infer", {"inputs": []})
        self.get_json("/v2/repository/models/ids/load", {})
        self.assertEqual(self.ask("/v2/models/ids/ready")[0], 200)
        self.refused(404, "nothing", "/v2/repository/models/nothing/load", {})
        self.refused(400, "server's own files", "/v2/repository/models/ids/load", {"parameters": {"file:1/model.keras": "UEsDBA=="}})
        self.refused(400, "shared memory", "/v2/systemsharedmemory/region/a/register", {"key": "/a", "offset": 0, "byte_size": 4})

    def test_malformed_requests_get_their_error_and_the_server_goes_on(self):
        path = "/v2/models/dense/infer"
        good = {"name": "features", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}
        deep = "[" * 5000 + "]" * 5000
        for message, body in (
            ("json", b"{"),
            ("must be an object", b"[]"),
            ("has no 'inputs'", {}),
            ("nested deeper", b'{"inputs": [{"name": "features", "shape": [1, 4], "datatype": "FP32", "data": ' + deep.encode() + b"}]}"),
            ("takes 1 input", {"inputs": []}),
            ("takes 1 input", {"inputs": [good, good]}),
            ("at most 256", {"inputs": [good] * 300}),
            ("no input 'feature'", {"inputs": [good | {"name": "feature"}]}),
            ("did you mean 'features'", {"inputs": [good | {"name": "feature"}]}),
            ("name of", {"inputs": [good | {"name": "x" * 1000}]}),
            ("unknown datatype 'FLOAT'", {"inputs": [good | {"datatype": "FLOAT"}]}),
            ("BYTES", {"inputs": [good | {"datatype": "BYTES"}]}),
            ("has 8 elements; got 4", {"inputs": [good | {"shape": [2, 4]}]}),
            ("extent -1", {"inputs": [good | {"shape": [-1, 4]}]}),
            ("more than 2^40", {"inputs": [good | {"shape": [1 << 40, 1 << 40]}]}),
            ("at most 16", {"inputs": [good | {"shape": [1] * 17}]}),
            ("[1, 5]", {"inputs": [good | {"shape": [1, 5], "data": [1] * 5}]}),
            ("elements of type f32", {"inputs": [good | {"data": [1, 2, "3", 4]}]}),
            ("elements of type f32", {"inputs": [good | {"data": [1, 2, None, 4]}]}),
            ("f64", {"inputs": [good | {"datatype": "FP64"}]}),
            ("neither data nor", {"inputs": [{"name": "features", "shape": [1, 4], "datatype": "FP32"}]}),
            ("0 bytes are left", {"inputs": [{"name": "features", "shape": [1, 4], "datatype": "FP32", "parameters": {"binary_data_size": 16}}]}),
            ("binary_data_size is -1", {"inputs": [{"name": "features", "shape": [1, 4], "datatype": "FP32", "parameters": {"binary_data_size": -1}}]}),
            ("no output 'score'", {"inputs": [good], "outputs": [{"name": "score"}]}),
            ("asked for twice", {"inputs": [good], "outputs": [{"name": "scores"}, {"name": "scores"}]}),
            ("classification", {"inputs": [good], "outputs": [{"name": "scores", "parameters": {"classification": 2}}]}),
            ("sequence", {"inputs": [good], "parameters": {"sequence_id": 7}}),
            ("shared memory", {"inputs": [good | {"parameters": {"shared_memory_region": "a"}}]}),
            ("priority", {"inputs": [good], "parameters": {"priority": "high"}}),
        ):
            with self.subTest(message):
                self.refused(400, message, path, body)
        self.refused(400, "the body has", path, b"{}", headers={"Inference-Header-Content-Length": "99"})
        self.refused(400, "is a number", path, b"{}", headers={"Inference-Header-Content-Length": "-1"})
        self.refused(400, "left behind the last", path, json.dumps({"inputs": [good]}).encode() + b"1234",
                     headers={"Inference-Header-Content-Length": str(len(json.dumps({"inputs": [good]})))})
        self.refused(404, "no such path", "/v3")
        self.refused(404, "no such path", "/v2/models/%zz/infer", {})
        self.refused(404, "dens", "/v2/models/dens/infer", {"inputs": [good]})
        self.refused(404, "version", "/v2/models/dense/versions/2/infer", {"inputs": [good]})
        self.refused(404, "version", "/v2/models/dense/versions/x/infer", {"inputs": [good]})
        self.refused(405, "answers POST", path)
        self.refused(403, "other sites", path, {"inputs": [good]}, headers={"Origin": "http://elsewhere.example"})
        self.refused(403, "this machine only", path, {"inputs": [good]}, headers={"Host": "elsewhere.example"})
        self.assertEqual(self.ask(path, {"inputs": [good]}, headers={"Host": "LocalHost:80"})[0], 200)
        late = {"inputs": [good], "parameters": {"timeout": 1}}
        self.assertIn(504, (self.ask(path, late)[0] for _ in range(1000)))  # a microsecond is short, but one may be begun within
        self.assertEqual(self.ask(path, {"inputs": [good]})[0], 200)

    def test_metrics(self):
        self.get_json("/v1/models/dense:predict", {"instances": [[1, 2, 3, 4]]})
        status, headers, text = self.ask("/metrics")
        self.assertEqual(status, 200)
        self.assertTrue(headers["Content-Type"].startswith("text/plain; version=0.0.4"))
        values, kinds = {}, {}
        for line in text.decode().splitlines():
            if found := re.fullmatch(r"# TYPE (\w+) (counter|gauge|histogram)", line):
                kinds[found[1]] = found[2]
            elif not line.startswith("# HELP "):
                name, value = re.fullmatch(r"(\w+(?:\{(?:\w+=\"[^\"]*\",?)+\})?) ([-+\d.eInf]+)", line).groups()
                self.assertNotIn(name, values)
                values[name] = float(value)
        self.assertGreaterEqual(values['tutti_requests_total{model="dense",version="1",outcome="ok"}'], 1)
        for name, kind in kinds.items():
            if kind == "histogram":
                label = 'model="dense",version="1"'
                buckets = [v for n, v in values.items() if n.startswith(f"{name}_bucket{{{label}")]
                self.assertEqual(buckets, sorted(buckets), name)
                self.assertEqual(buckets[-1], values[f"{name}_count{{{label}}}"])
                self.assertGreater(values[f"{name}_sum{{{label}}}"], 0)
        self.assertEqual(sum(kind == "histogram" for kind in kinds.values()), 4)
        stats = self.get_json("/v2/models/dense/stats")["model_stats"][0]
        self.assertGreaterEqual(stats["inference_stats"]["success"]["count"], 1)
        self.assertEqual(sum(b["compute_infer"]["count"] for b in stats["batch_stats"]), stats["execution_count"])
        self.assertEqual({s["name"] for s in self.get_json("/v2/models/stats")["model_stats"]}, set(MODELS))


class ConnectionTest(ServeTest):
    GOOD = json.dumps({"instances": [[1, 2, 3, 4]]}).encode()

    def request(self, more="", body=GOOD):
        return f"POST /v1/models/dense:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body

    def test_pipelined_requests_are_answered_in_order(self):
        bodies = [json.dumps({"instances": [[i, 2, 3, 4]]}).encode() for i in range(20)]
        out = self.raw(b"\r\n".join(self.request("" if i < 19 else "Connection: close\r\n", body) for i, body in enumerate(bodies)))
        got = [json.loads(text)["predictions"] for text in re.findall(rb"\r\n\r\n(\{.*?\})(?=HTTP/1.1|$)", out)]
        expected = self.get_json("/v1/models/dense:predict", {"instances": [[i, 2, 3, 4] for i in range(20)]})["predictions"]
        self.assertEqual(len(got), 20)
        close(self, np.concatenate(got), np.array(expected, "float32"))

    def test_chunked_bodies_and_100_continue(self):
        chunks = b"".join(b"%x\r\n%s\r\n" % (1, self.GOOD[i : i + 1]) for i in range(len(self.GOOD))) + b"0\r\n\r\n"
        head = b"POST /v1/models/dense:predict HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.assertIn(b'{"predictions":', self.raw(head + chunks))
        out = self.raw(self.request("Expect: 100-Continue\r\nConnection: close\r\n"))
        self.assertTrue(out.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"), out)
        self.assertIn(b"Connection: keep-alive", self.raw(b"GET /v2 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", until_closed=False))
        out = self.raw(b"HEAD /v2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        self.assertTrue(out.endswith(b"\r\n\r\n") and b"Content-Length: " in out, out)

    def test_what_is_no_http_is_refused(self):
        for status, text in (
            (400, b"\x16\x03\x01\x02\x00hello\r\n\r\n"),
            (400, b"GET\r\n\r\n"),
            (400, b"GET / HTTP/1.1\r\nContent-Length: -5\r\n\r\n"),
            (400, b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"),
            (400, b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
            (413, b"POST /v1/models/dense:predict HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n"),
            (413, b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n"),
            (413, b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 100_001),
            (431, b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;" + b"a" * 40000),
            (431, b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: a\r\n" * 10000),
            (417, b"POST / HTTP/1.1\r\nExpect: more\r\nContent-Length: 5\r\n\r\n"),
            (431, b"GET / HTTP/1.1\r\nX: " + b"a" * 40000),
            (408, b"GET / HTTP/1.1\r\nX: "),
            (408, self.request()[:-3]),
        ):
            with self.subTest(text[:60]):
                out = self.raw(text)
                self.assertTrue(out.startswith(f"HTTP/1.1 {status} ".encode()), out[:200])
                self.assertTrue(json.loads(out.split(b"\r\n\r\n", 1)[1])["error"].startswith("[serve] "))
        self.assertEqual(self.ask("/v2/health/live")[0], 200)

    def test_what_could_be_understood_in_two_ways_is_refused(self):
        for header in (b"Host: localhost\r\nHost: elsewhere\r\n", b"Host: localhost\r\nTransfer-Encoding: gzip, chunked\r\n", b"Host: localhost\r\nTransfer-Encoding: none\r\n"):
            with self.subTest(header):
                out = self.raw(b"POST /v1/models/dense:predict HTTP/1.1\r\n" + header + b"\r\n0\r\n\r\n")
                self.assertTrue(out.startswith(b"HTTP/1.1 400 "), out)
        out = self.raw(b"GET http://localhost/v2/health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        self.assertTrue(out.startswith(b"HTTP/1.1 200 "), out)

    def test_only_whole_methods_are_answered(self):
        for method, path in (("PO", "/v1/models/dense:predict"), ("T", "/v2"), ("OPTIONS", "/v2"), ("PUT", "/v2/models/dense/infer"), ("get", "/v2")):
            with self.subTest(method):
                out = self.raw(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                self.assertTrue(out.startswith(b"HTTP/1.1 405 "), out)
                self.assertIn(b"\r\nAllow: ", out)

    def test_slow_clients_are_cut_off_and_others_served(self):
        """Slow loris: a byte now and then never makes a request; a client that does not read its answers is not waited for either."""
        host, port = self.server.http.rsplit(":", 1)
        slow = [socket.create_connection((host, int(port))) for _ in range(40)]
        begin, open_ones = time.monotonic(), len(slow)
        for connection in slow:
            connection.sendall(b"GET / HTTP/1.1\r\n")
        while open_ones and time.monotonic() - begin < 15:
            for connection in list(slow):
                try:
                    connection.send(b"X")
                except OSError:
                    pass
            readable, _, _ = select.select(slow, [], [], 0.2)
            for connection in readable:
                try:
                    gone = connection.recv(65536) == b""
                except OSError:
                    gone = True
                if gone:
                    slow.remove(connection)
                    connection.close()
            open_ones = len(slow)
            self.assertEqual(self.ask("/v2/health/live")[0], 200)
        for connection in slow:
            connection.close()
        self.assertEqual(open_ones, 0)
        self.assertLess(time.monotonic() - begin, 10)

    def test_too_many_connections_are_refused_at_once(self):
        host, port = self.server.http.rsplit(":", 1)
        many = [socket.create_connection((host, int(port)), timeout=20) for _ in range(130)]
        try:
            refused = 0
            for connection in many[110:]:
                connection.settimeout(0.5)
                try:
                    refused += connection.recv(100).startswith(b"HTTP/1.1 503")
                except OSError:
                    pass
            self.assertGreaterEqual(refused, 15)
        finally:
            for connection in many:
                connection.close()
        for _ in range(100):
            try:
                if self.ask("/v2/health/live")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        self.fail("no connection is free again")


class TfServingTest(ServeTest):
    def test_rows_and_columns(self):
        x, expected = saved("dense", "in")["features"][:5], saved("dense", "out")["scores"][:5]
        path = "/v1/models/dense:predict"
        close(self, self.get_json(path, {"instances": x.tolist()})["predictions"], expected)
        close(self, self.get_json(path, {"instances": [{"features": row.tolist()} for row in x]})["predictions"], expected)
        close(self, self.get_json("/v1/models/dense/versions/1:predict", {"signature_name": "serving_default", "inputs": x.tolist()})["outputs"], expected)
        close(self, self.get_json(path, {"inputs": {"features": x.tolist()}})["outputs"], expected)

    def test_several_inputs_and_outputs(self):
        inputs, expected = saved("two_by_two", "in"), saved("two_by_two", "out")
        path = "/v1/models/two_by_two:predict"
        rows = self.get_json(path, {"instances": [{"a": a.tolist(), "b": b.tolist()} for a, b in zip(inputs["a"], inputs["b"], strict=True)]})["predictions"]
        columns = self.get_json(path, {"inputs": {name: value.tolist() for name, value in inputs.items()}})["outputs"]
        for name, value in expected.items():
            close(self, [row[name] for row in rows], value)
            close(self, columns[name], value)

    def test_an_output_without_a_row_for_each_instance_is_not_cut_into_rows(self):
        names = ("number", "batch_mean", "batch_transposed")
        server = Server(self.program, "--http", ":0", models=[DATA / f"{name}.keras" for name in names])
        self.addCleanup(server.stop)
        x = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]
        outputs = {"number": np.mean(x), "batch_mean": np.mean(x, 0, keepdims=True), "batch_transposed": np.transpose(x)}
        for name in names:
            with self.subTest(name):
                path = f"http://{server.http}/v1/models/{name}:predict"
                with self.assertRaises(urllib.error.HTTPError) as refused, urllib.request.urlopen(path, json.dumps({"instances": x}).encode(), timeout=20):
                    pass
                with refused.exception as answer:
                    self.assertEqual(answer.code, 400)
                    self.assertIn("not a row for each instance", json.loads(answer.read())["error"])
                with urllib.request.urlopen(path, json.dumps({"inputs": x}).encode(), timeout=20) as answer:
                    close(self, next(iter(json.loads(answer.read())["outputs"].values())), outputs[name])

    def test_status_and_metadata(self):
        self.assertEqual(
            self.get_json("/v1/models/dense"),
            {"model_version_status": [{"version": "1", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}]},
        )
        meta = self.get_json("/v1/models/dense/metadata")
        self.assertEqual(meta["model_spec"], {"name": "dense", "signature_name": "", "version": "1"})
        signature = meta["metadata"]["signature_def"]["signature_def"]["serving_default"]
        self.assertEqual(signature["inputs"]["features"]["dtype"], "DT_FLOAT")
        self.assertEqual([d["size"] for d in signature["inputs"]["features"]["tensor_shape"]["dim"]], ["-1", "4"])

    def test_wrong_requests(self):
        path, two = "/v1/models/dense:predict", "/v1/models/two_by_two:predict"
        for message, where, body in (
            ("either 'instances'", path, {}),
            ("both", path, {"instances": [], "inputs": []}),
            ("at least one", path, {"instances": []}),
            ("serving_default", path, {"instances": [[1, 2, 3, 4]], "signature_name": "other"}),
            ("same lengths", path, {"instances": [[1, 2, 3, 4], [1, 2]]}),
            ("[1, 3]", path, {"instances": [[1, 2, 3]]}),
            ("f32", path, {"instances": [["a", "b", "c", "d"]]}),
            ("takes 2 inputs", two, {"instances": [[1, 2, 3]]}),
            ("has no 'b'", two, {"instances": [{"a": [1, 2, 3]}]}),
            ("no input 'c'", two, {"instances": [{"a": [1, 2, 3], "b": [1, 2], "c": 1}]}),
            ("only :predict", "/v1/models/dense:classify", {"examples": []}),
        ):
            with self.subTest(message):
                self.refused(400, message, where, body)
        self.refused(404, "nothing", "/v1/models/nothing:predict", {"instances": [1]})
        self.refused(404, "nothing", "/v1/models/nothing")


if __name__ == "__main__":
    main()
