"""`tutti serve` asked by tritonclient: HTTP and gRPC, sync, asyncio and streams, binary and JSON. Every answer is compared with Keras's."""

import asyncio
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import threading

import numpy as np
from network import LifeTest, ServeTest, close, saved
from program import DATA, ROOT, main

sys.path.insert(0, str(ROOT / "python"))


def memory_peak(process):
    """Bytes that it ever had in memory."""
    with open(f"/proc/{process}/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


class TritonClientTest(ServeTest):
    """The clients themselves, of both protocols; their interfaces are nearly the same."""

    def check(self, client, kind):
        inputs, expected = saved("two_by_two", "in"), saved("two_by_two", "out")
        self.assertTrue(client.is_server_live() and client.is_server_ready() and client.is_model_ready("dense"))
        self.assertFalse(client.is_model_ready("nothing"))
        for json_too in (False, True) if kind.__name__.endswith("http") else (False,):
            given = []
            for name, value in inputs.items():
                given.append(kind.InferInput(name, value.shape, "FP32"))
                given[-1].set_data_from_numpy(value, **({"binary_data": False} if json_too else {}))
            options = {"binary_data": False} if json_too else {}
            wanted = [kind.InferRequestedOutput(name, **options) for name in reversed(expected)]
            for outputs in (None, wanted):
                answer = client.infer("two_by_two", given, outputs=outputs, request_id="r1", priority=1, timeout=10_000_000)
                for name, value in expected.items():
                    close(self, answer.as_numpy(name), value)
        with self.assertRaisesRegex(Exception, "no input|takes 1 input"):
            client.infer("dense", given)
        with self.assertRaisesRegex(Exception, "nothing"):
            client.infer("nothing", given)

    def test_http(self):
        import tritonclient.http as kind

        with kind.InferenceServerClient(self.server.http, concurrency=8) as client:
            self.check(client, kind)
            self.assertEqual(client.get_server_metadata()["name"], "tutti")
            self.assertEqual(client.get_model_metadata("dense")["inputs"][0]["name"], "features")
            self.assertEqual(client.get_model_config("dense")["input"][0]["data_type"], "TYPE_FP32")
            self.assertGreater(client.get_inference_statistics("two_by_two")["model_stats"][0]["inference_count"], 0)
            client.unload_model("open_time")
            self.assertFalse(client.is_model_ready("open_time"))
            client.load_model("open_time")
            self.assertTrue(client.is_model_ready("open_time"))
            self.assertIn("dense", {m["name"] for m in client.get_model_repository_index()})
            x, expected = saved("dense", "in")["features"], saved("dense", "out")["scores"]
            given = kind.InferInput("features", [1, 4], "FP32")
            pending = []
            for row in x:
                given = kind.InferInput("features", [1, 4], "FP32")
                given.set_data_from_numpy(row[None])
                pending.append(client.async_infer("dense", [given], request_compression_algorithm="gzip" if len(pending) % 2 else None))
            close(self, np.concatenate([p.get_result().as_numpy("scores") for p in pending]), expected)

    def test_asyncio(self):
        import tritonclient.grpc.aio as over_grpc
        import tritonclient.http.aio as over_http

        x, expected = saved("dense", "in")["features"], saved("dense", "out")["scores"]

        async def run(kind, address):
            async def one(client, row):
                given = kind.InferInput("features", [1, 4], "FP32")
                given.set_data_from_numpy(row[None])
                return (await client.infer("dense", [given])).as_numpy("scores")

            async with kind.InferenceServerClient(address) as client:
                self.assertTrue(await client.is_server_ready())
                return await asyncio.gather(*(one(client, row) for row in x))

        for kind, address in ((over_http, self.server.http), (over_grpc, self.server.grpc)):
            close(self, np.concatenate(asyncio.run(run(kind, address))), expected)

    def test_grpc(self):
        import tritonclient.grpc as kind

        with kind.InferenceServerClient(self.server.grpc) as client:
            self.check(client, kind)
            self.assertEqual(client.get_server_metadata().name, "tutti")
            self.assertEqual(client.get_model_metadata("dense").inputs[0].name, "features")
            config = client.get_model_config("dense").config
            self.assertEqual((config.max_batch_size, list(config.input[0].dims)), (64, [4]))
            self.assertGreater(client.get_inference_statistics("two_by_two").model_stats[0].inference_count, 0)
            client.unload_model("open_time")
            self.assertFalse(client.is_model_ready("open_time"))
            client.load_model("open_time")
            self.assertIn("dense", {m.name for m in client.get_model_repository_index().models})
            with self.assertRaisesRegex(Exception, "UNIMPLEMENTED.*shared memory"):
                client.register_system_shared_memory("a", "/a", 4)
            x, expected = saved("dense", "in")["features"], saved("dense", "out")["scores"]
            answers = [None] * len(x)
            done = threading.Semaphore(0)

            def keep(i, result, error):
                answers[i] = error or result.as_numpy("scores")
                done.release()

            for i, row in enumerate(x):
                given = kind.InferInput("features", [1, 4], "FP32")
                given.set_data_from_numpy(row[None])
                client.async_infer("dense", [given], lambda result, error, i=i: keep(i, result, error))
            for _ in x:
                self.assertTrue(done.acquire(timeout=30))
            close(self, np.concatenate(answers), expected)
            with self.assertRaisesRegex(Exception, "DEADLINE"):
                for _ in range(1000):  # a microsecond is short, but one may be begun within
                    client.infer("dense", [given], timeout=1)

    def test_compressed_messages_of_grpc_are_read_within_the_bound(self):
        import grpc
        from tritonclient.grpc import service_pb2 as messages
        from tritonclient.grpc import service_pb2_grpc

        x, expected = saved("dense", "in")["features"], saved("dense", "out")["scores"]
        x, expected = np.tile(x, (20, 1)), np.tile(expected, (20, 1))
        before = memory_peak(self.server.child.pid)

        def request(contents):
            tensor = messages.ModelInferRequest.InferInputTensor(name="features", datatype="FP32", shape=x.shape)
            return messages.ModelInferRequest(model_name="dense", inputs=[tensor], raw_input_contents=[contents])

        with grpc.insecure_channel(self.server.grpc, options=[("grpc.max_send_message_length", -1)]) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            for kind in (grpc.Compression.Gzip, grpc.Compression.Deflate):
                answer = stub.ModelInfer(request(x.tobytes()), compression=kind)
                close(self, np.frombuffer(answer.raw_output_contents[0], "float32").reshape(expected.shape), expected)
                answer = next(stub.ModelStreamInfer(iter([request(x.tobytes())]), compression=kind)).infer_response
                close(self, np.frombuffer(answer.raw_output_contents[0], "float32").reshape(expected.shape), expected)
                with self.assertRaisesRegex(grpc.RpcError, "larger than 4194304 bytes when decompressed"):
                    stub.ModelInfer(request(bytes(150 << 20)), compression=kind)
        if not self.sanitized:
            self.assertLess(memory_peak(self.server.child.pid) - before, 64 << 20)

    def test_grpc_stream(self):
        import tritonclient.grpc as kind

        x, expected = saved("dense", "in")["features"], saved("dense", "out")["scores"]
        answers, done = [], threading.Semaphore(0)

        def keep(result, error):
            answers.append(error or result)
            done.release()

        with kind.InferenceServerClient(self.server.grpc) as client:
            client.start_stream(keep)
            for i, row in enumerate(x):
                given = kind.InferInput("features", [1, 4], "FP32")
                given.set_data_from_numpy(row[None])
                client.async_stream_infer("dense" if i != 5 else "nothing", [given], request_id=str(i))
            for _ in x:
                self.assertTrue(done.acquire(timeout=30))
            client.stop_stream()
        wrong = [a for a in answers if isinstance(a, Exception)]
        self.assertEqual(len(wrong), 1)
        self.assertIn("nothing", str(wrong[0]))
        good = {int(a.get_response().id): a.as_numpy("scores") for a in answers if not isinstance(a, Exception)}
        self.assertEqual(list(good), [i for i in range(len(x)) if i != 5])
        for i, value in good.items():
            close(self, value, expected[i : i + 1])

    def test_a_grpc_stream_is_answered_in_its_order_whatever_becomes_of_its_requests(self):
        import grpc
        from tritonclient.grpc import service_pb2 as messages
        from tritonclient.grpc import service_pb2_grpc

        def request(i):
            model, name, shape = ("open_time", "series", [1, 7, 2]) if i % 3 == 0 else ("dense", "features", [1, 4])
            tensor = messages.ModelInferRequest.InferInputTensor(name=name if i % 7 else "other", datatype="FP32", shape=shape)
            out = messages.ModelInferRequest(model_name=model, id=str(i), inputs=[tensor], raw_input_contents=[bytes(4 * int(np.prod(shape)))])
            out.parameters["priority"].int64_param = 301 - i  # the later, the sooner
            return out

        with grpc.insecure_channel(self.server.grpc) as channel:
            answers = list(service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelStreamInfer(request(i) for i in range(300)))
        self.assertEqual([int(answer.infer_response.id) for answer in answers], list(range(300)))
        self.assertEqual([i for i, answer in enumerate(answers) if answer.error_message], list(range(0, 300, 7)))

    def test_grpc_typed_contents_and_wrong_messages(self):
        import grpc
        from tritonclient.grpc import service_pb2 as messages
        from tritonclient.grpc import service_pb2_grpc

        x, expected = saved("ids", "in")["ids"], next(iter(saved("ids", "out").values()))
        with grpc.insecure_channel(self.server.grpc) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)

            def infer(code=None, message="", **fields):
                tensor = {"name": "ids", "datatype": "INT32", "shape": list(x.shape)} | fields.pop("tensor", {})
                contents = fields.pop("contents", {"int_contents": x.ravel().tolist()})
                request = messages.ModelInferRequest(
                    model_name="ids", inputs=[messages.ModelInferRequest.InferInputTensor(contents=messages.InferTensorContents(**contents) if contents else None, **tensor)], **fields
                )
                if code is None:
                    return stub.ModelInfer(request)
                with self.assertRaises(grpc.RpcError) as caught:
                    stub.ModelInfer(request)
                self.assertEqual((caught.exception.code().name, message in caught.exception.details()), (code, True), caught.exception.details())

            answer = infer(id="one")
            self.assertEqual((answer.id, answer.model_version), ("one", "1"))
            close(self, np.frombuffer(answer.raw_output_contents[0], "float32").reshape(list(answer.outputs[0].shape)), expected)
            infer("INVALID_ARGUMENT", "of that type", contents={"fp32_contents": [1.0]})
            infer("INVALID_ARGUMENT", "elements of type i8", tensor={"datatype": "INT8"}, contents={"int_contents": [1000] * x.size})
            infer("INVALID_ARGUMENT", "no typed contents", tensor={"datatype": "FP16"})
            infer("INVALID_ARGUMENT", "unknown datatype", tensor={"datatype": "int"})
            infer("INVALID_ARGUMENT", "2^40", tensor={"shape": [1 << 40, 1 << 40]})
            infer("INVALID_ARGUMENT", "both typed and raw", raw_input_contents=[x.tobytes()])
            infer("INVALID_ARGUMENT", "all of them are raw", raw_input_contents=[x.tobytes()] * 2)
            infer("INVALID_ARGUMENT", "bytes; got 3", contents=None, raw_input_contents=[b"abc"])
            infer("NOT_FOUND", "version", model_version="7")
            raw = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
            for junk in (b"\xff" * 100, os.urandom(2000)):
                with self.assertRaises(grpc.RpcError):
                    raw(junk)
            with self.assertRaises(grpc.RpcError) as caught:
                raw(b"\0" * (5 << 20))
            self.assertEqual(caught.exception.code().name, "RESOURCE_EXHAUSTED")
            infer()

    def test_many_clients_of_both_protocols_at_once_get_their_own_answers(self):
        import tritonclient.grpc as over_grpc
        import tritonclient.http as over_http

        x, expected = saved("dense", "in")["features"], saved("dense", "out")["scores"]

        def work(number):
            kind = over_http if number % 2 else over_grpc
            with kind.InferenceServerClient(self.server.http if number % 2 else self.server.grpc) as client:
                for step in range(25):
                    at = (number * 31 + step * 7) % (len(x) - 3)
                    samples = 1 + (number + step) % 3
                    given = kind.InferInput("features", [samples, 4], "FP32")
                    given.set_data_from_numpy(x[at : at + samples])
                    close(self, client.infer("dense", [given]).as_numpy("scores"), expected[at : at + samples])
            return True

        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            self.assertTrue(all(pool.map(work, range(12))))

    def example(self, *words):
        run = subprocess.run([*words], cwd=ROOT / "examples", capture_output=True, text=True, timeout=120)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout.splitlines()

    def test_the_examples(self):
        for protocol, address in (("http", self.server.http), ("grpc", self.server.grpc)):
            said = self.example(sys.executable, "serve_triton.py", address, protocol)
            self.assertEqual(sorted(said), ["dense: scores (3, 3)", "ids: dense_6 (3, 2)", "open_time: steps (3, 1, 3)", "two_by_two: shared (3, 2)", "two_by_two: total (3, 2)"])
        said = self.example("./serve_curl.sh", self.server.http, "dense", "features")
        flat, rows, columns = (json.loads(line) for line in said[2:5])
        close(self, flat["outputs"][0]["data"], np.ravel(rows["predictions"]))
        self.assertEqual(rows["predictions"], columns["outputs"])
        np.testing.assert_allclose(np.array(said[5].split(), "float32"), rows["predictions"][0], rtol=1e-4)

    def test_perf_analyzer(self):
        """NVIDIA's load generator, where it is installed: it reads metadata, configuration and statistics, and counts what fails."""
        if shutil.which("perf_analyzer") is None:
            self.skipTest("no perf_analyzer in PATH; hint: wheels of tritonclient up to 2.46 have it")
        for protocol in ("http", "grpc"):
            words = ["perf_analyzer", "-m", "dense", "-i", protocol, "-u", getattr(self.server, protocol), "--concurrency-range", "8", "--measurement-interval", "500", "-s", "999", "-r", "20"]
            run = subprocess.run(words, capture_output=True, text=True, timeout=120)
            self.assertRegex(run.stdout, r"Throughput: [1-9]", run.stdout + run.stderr)


class TypesTest(LifeTest):
    """A model with an input of each type, which it gives back turned around, by every way in."""

    NAMES = {"bool": "BOOL", "bfloat16": "BF16"}
    FLOATS = ("float16", "bfloat16", "float32", "float64")

    def values(self):
        out = {"bool": np.array([[True, False, False]])}
        for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
            out[name] = np.array([[np.iinfo(name).min, np.iinfo(name).max, 1]], name)
        for name in self.FLOATS:
            out[name] = np.array([[-0.5, np.inf, 1.5]], "float32" if name == "bfloat16" else name)
        return out

    def datatype(self, name):
        return self.NAMES.get(name) or name.upper().replace("FLOAT", "FP")

    def same(self, outputs, values):
        for got, (name, value) in zip(outputs, values.items(), strict=True):
            np.testing.assert_array_equal(np.asarray(got).astype(value.dtype).ravel(), value.ravel()[::-1], err_msg=name)

    def test_every_type_by_every_protocol(self):
        import ml_dtypes
        import tritonclient.grpc as over_grpc
        import tritonclient.http as over_http
        import tutti_client

        path = self.folder / "socket"
        server = self.start("--http", ":0", "--grpc", ":0", "--socket", path, models=[DATA / "types.keras"])
        values = self.values()
        for kind, address in ((over_http, server.http), (over_grpc, server.grpc)):
            with kind.InferenceServerClient(address) as client:
                given = [kind.InferInput(name, value.shape, self.datatype(name)) for name, value in values.items()]
                for tensor, (name, value) in zip(given, values.items()):
                    tensor.set_data_from_numpy(value.astype(ml_dtypes.bfloat16) if name == "bfloat16" else value)
                answer = client.infer("types", given)
                self.same([answer.as_numpy("flip" if i == 0 else f"flip_{i}") for i in range(len(values))], values)
        tensors = [{"name": name, "shape": [1, 3], "datatype": self.datatype(name), "data": value.tolist()} for name, value in values.items()]
        answer = self.post(server, "/v2/models/types/infer", {"inputs": tensors})
        self.assertEqual([output["datatype"] for output in answer["outputs"]], [tensor["datatype"] for tensor in tensors])
        for output, value in zip(answer["outputs"], values.values()):
            self.assertEqual(output["data"], value.ravel()[::-1].tolist())
        answer = self.post(server, "/v1/models/types:predict", {"inputs": {name: value.tolist() for name, value in values.items()}})["outputs"]
        self.assertEqual(list(answer.values()), [value[:, ::-1].tolist() for value in values.values()])
        with tutti_client.Client(path) as client:
            self.same(client.predict(values), values)


if __name__ == "__main__":
    main()
