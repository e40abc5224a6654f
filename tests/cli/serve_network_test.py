"""How `tutti serve` lives on a network: tokens, TLS, addresses, a full queue, clients that go, its end; and its page in a browser."""

import asyncio
import concurrent.futures
import contextlib
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

import numpy as np
from network import MODELS, LifeTest, close, saved
from program import DATA, main


class NetworkTest(LifeTest):
    def test_a_token_is_asked_for(self):
        (self.folder / "token").write_text("secret-token-1\n")
        server = self.start("--http", ":0", "--grpc", ":0", "--token-file", self.folder / "token")
        x, expected = saved("dense", "in")["features"][:1], saved("dense", "out")["scores"][:1]
        good = {"Authorization": "Bearer secret-token-1"}
        close(self, self.post(server, "/v1/models/dense:predict", {"instances": x.tolist()}, good)["predictions"], expected)
        for path, body in (("/v1/models/dense:predict", {"instances": x.tolist()}), ("/metrics", None), ("/v2", None)):
            for headers in ({}, {"Authorization": "Bearer secret-token-2"}, {"Authorization": "Bearer "}, {"Authorization": "Basic c2VjcmV0LXRva2VuLTE="}):
                with self.assertRaises(urllib.error.HTTPError) as caught:
                    self.post(server, path, body, headers)
                caught.exception.close()
                self.assertEqual(caught.exception.code, 401)
        self.assertEqual(self.post(server, "/v2/health/ready", None), {"ready": True})
        # Who has no token is told so before a body is taken.
        host, port = server.http.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            connection.sendall(b"POST /v1/models/dense:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n")
            self.assertTrue(connection.recv(65536).startswith(b"HTTP/1.1 401 "))
        import tritonclient.grpc as kind

        with kind.InferenceServerClient(server.grpc) as client:
            given = kind.InferInput("features", [1, 4], "FP32")
            given.set_data_from_numpy(x)
            close(self, client.infer("dense", [given], headers={"authorization": "Bearer secret-token-1"}).as_numpy("scores"), expected)
            for headers in (None, {"authorization": "Bearer secret-token-2"}):
                with self.assertRaisesRegex(Exception, "UNAUTHENTICATED"):
                    client.infer("dense", [given], headers=headers)
        (self.folder / "token").write_text("short\n")
        self.refuse(1, "--token-file must hold", "serve", DATA / "dense.keras", "--http", ":0", "--token-file", "token")

    def test_tls(self):
        import ssl

        key, certificate = self.folder / "key.pem", self.folder / "cert.pem"
        made = subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", certificate, "-days", "2",
             "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
            capture_output=True, check=False)  # fmt: skip
        if made.returncode:
            self.skipTest("no openssl to make a certificate")
        server = self.start("--http", ":0", "--grpc", ":0", "--tls-cert", certificate, "--tls-key", key)
        x, expected = saved("dense", "in")["features"][:1], saved("dense", "out")["scores"][:1]
        trusted = ssl.create_default_context(cafile=certificate)
        close(self, self.post(server, "/v1/models/dense:predict", {"instances": x.tolist()}, scheme="https", context=trusted)["predictions"], expected)
        with self.assertRaises(OSError):
            self.post(server, "/v2", None)
        import tritonclient.grpc as kind

        with kind.InferenceServerClient(server.grpc, ssl=True, root_certificates=str(certificate)) as client:
            given = kind.InferInput("features", [1, 4], "FP32")
            given.set_data_from_numpy(x)
            close(self, client.infer("dense", [given]).as_numpy("scores"), expected)
        other, locked = self.folder / "other.pem", self.folder / "locked.pem"
        subprocess.run(["openssl", "genpkey", "-algorithm", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-out", other], capture_output=True, check=True)
        subprocess.run(["openssl", "pkey", "-aes128", "-passout", "pass:word", "-in", key, "-out", locked], capture_output=True, check=True)
        for option in ("--http", "--grpc"):
            words = ["serve", DATA / "dense.keras", option, ":0", "--tls-cert"]
            self.refuse(1, "--tls-key", *words, certificate)
            self.refuse(1, "--tls-cert: no certificate in PEM can be read: No such file or directory", *words, "nothing.pem", "--tls-key", key)
            self.refuse(1, "--tls-cert", *words, key, "--tls-key", key)
            for wrong in (other, locked, self.folder / "nowhere"):
                self.refuse(1, "--tls-key: no key in PEM", *words, certificate, "--tls-key", wrong)

    def test_wrong_addresses(self):
        for option in ("--http", "--grpc"):
            for address, message in (("8000", "[HOST]:PORT"), (":x", "[HOST]:PORT"), (":70000", "[HOST]:PORT")):
                self.refuse(1, message, "serve", DATA / "dense.keras", option, address)
            with socket.socket() as taken:
                taken.bind(("127.0.0.1", 0))
                taken.listen()
                self.refuse(1, "cannot listen on 127.0.0.1", "serve", DATA / "dense.keras", option, f":{taken.getsockname()[1]}")
        self.refuse(1, "is an address", "serve", DATA / "dense.keras", "--http", "nowhere.example:80")
        self.refuse(2, "--http", "serve", DATA / "dense.keras")

    def test_a_full_queue_refuses_at_once_and_gone_clients_are_not_computed(self):
        import tritonclient.grpc as kind

        # A batch waits for more for a while, so that requests are queued at will.
        server = self.start("--http", ":0", "--grpc", ":0", "--queue", "4", "--max-wait", "5000000")
        host, port = server.http.rsplit(":", 1)
        body = json.dumps({"instances": [[1, 2, 3, 4]]}).encode()
        text = f"POST /v1/models/dense:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        waiting = [socket.create_connection((host, int(port)), timeout=30) for _ in range(4)]
        for connection in waiting:
            connection.sendall(text)
        time.sleep(0.3)
        begin = time.monotonic()
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.post(server, "/v1/models/dense:predict", {"instances": [[1, 2, 3, 4]]})
        with caught.exception as error:
            self.assertEqual((error.code, error.headers["Retry-After"]), (503, "1"))
        self.assertLess(time.monotonic() - begin, 4)
        with kind.InferenceServerClient(server.grpc) as client:
            given = kind.InferInput("features", [1, 4], "FP32")
            given.set_data_from_numpy(np.ones((1, 4), "float32"))
            with self.assertRaisesRegex(Exception, "RESOURCE_EXHAUSTED"):
                client.infer("dense", [given])
        for connection in waiting[:2]:
            connection.close()
        for connection in waiting[2:]:
            self.assertTrue(connection.recv(65536).startswith(b"HTTP/1.1 200"))
            connection.close()
        with urllib.request.urlopen(f"http://{server.http}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        got = dict(re.findall(r'tutti_requests_total\{model="dense",version="1",outcome="(\w+)"\} (\d+)', text))
        self.assertEqual((got["ok"], got["cancelled"], got["queue_full"]), ("2", "2", "2"), got)
        self.assertIn('tutti_samples_total{model="dense",version="1"} 2\n', text)

    def test_too_many_connections_of_grpc_are_refused_at_once(self):
        import tritonclient.grpc as kind

        server = self.start("--http", ":0", "--grpc", ":0", "--grpc-connections", "2")

        def metric(name):
            with urllib.request.urlopen(f"http://{server.http}/metrics", timeout=30) as answer:
                return int(re.search(rf"^{name} (\d+)$", answer.read().decode(), re.MULTILINE)[1])

        def wait_for(condition):
            for _ in range(3000):
                if condition():
                    return
                time.sleep(0.01)
            self.fail("it does not come")

        host, port = server.grpc.rsplit(":", 1)
        held = [socket.create_connection((host, int(port)), timeout=30) for _ in range(2)]
        for connection in held:
            connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
        wait_for(lambda: metric("tutti_grpc_connections") == 2)
        x, expected = saved("dense", "in")["features"][:1], saved("dense", "out")["scores"][:1]
        given = kind.InferInput("features", [1, 4], "FP32")
        given.set_data_from_numpy(x)

        def answered():
            try:
                close(self, client.infer("dense", [given]).as_numpy("scores"), expected)
                return True
            except kind.InferenceServerException as error:
                self.assertIn("UNAVAILABLE", str(error))
                return False

        with kind.InferenceServerClient(server.grpc) as client:
            self.assertFalse(answered())
            self.assertGreaterEqual(metric("tutti_grpc_connections_refused_total"), 1)
            held.pop().close()
            wait_for(answered)
        held.pop().close()

    def test_more_connections_than_a_process_has_descriptors_at_first(self):
        few, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, most))  # what the server is born with
        try:
            server = self.start("--http", ":0")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (few, most))
        host, port = server.http.rsplit(":", 1)
        with contextlib.ExitStack() as ends:
            many = [ends.enter_context(socket.create_connection((host, int(port)), timeout=30)) for _ in range(100)]
            for connection in many:
                connection.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            for connection in many:
                self.assertTrue(connection.recv(65536).startswith(b"HTTP/1.1 200"))

    def test_it_ends_when_told_with_requests_under_way(self):
        server = self.start("--http", ":0", "--grpc", ":0", "--max-wait", "700000")
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            answers = [pool.submit(self.post, server, "/v1/models/dense:predict", {"instances": [[1, 2, 3, 4]]}) for _ in range(4)]
            time.sleep(0.3)
            self.assertEqual(server.stop(), 143)
            for answer in answers:
                self.assertEqual(len(answer.result()["predictions"]), 1)


class PageTest(LifeTest):
    def test_the_page_in_a_browser(self):
        browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        if browser is None:
            self.skipTest("no chromium in PATH; hint: apt-get install chromium")
        names = [*MODELS, "wide"]  # the last has more values than a form shows
        server = self.start("--http", ":0", "--warm", models=[DATA / f"{name}.keras" for name in names])
        with urllib.request.urlopen(f"http://{server.http}/", timeout=30) as answer:
            page = answer.read().decode()
            self.assertIn("default-src 'none'", answer.headers["Content-Security-Policy"])
        self.assertNotRegex(page, r"(src|href)=|url\(|@import|https?://(?!www\.w3\.org/2000/svg)")
        words = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-port=0", f"--user-data-dir={self.folder}/profile"]
        child = subprocess.Popen([*words, f"http://{server.http}/"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            seen = asyncio.run(self.visit())
        finally:
            child.kill()
            child.wait()
        self.assertEqual(seen["models"], sorted(names))
        self.assertEqual({name: bad for name, (bad, _) in seen["answers"].items()}, dict.fromkeys(names, ""))
        self.assertEqual(seen["answers"]["two_by_two"][1].count("FP32 [1, 2]"), 2)
        self.assertEqual(seen["state"], "ready")
        self.assertIn("features FP32 [any, 4]", seen["form"])
        lines = seen["result"].splitlines()
        self.assertEqual(lines[0], "scores  FP32 [2, 3]")
        expected = self.post(server, "/v1/models/dense:predict", {"instances": [[1, 2, 3, 4], [-1, 0, 1, 0.5]]})["predictions"]
        close(self, np.reshape(json.loads(lines[1]), (2, 3)), np.array(expected, "float32"))
        self.assertRegex(lines[2], r"^[\d.]+ ms, browser and all$")
        self.assertIn("[1, 3]", seen["wrong"])
        self.assertEqual((seen["answered"], seen["batches"]), ("1", ["2"]))
        self.assertRegex(seen["latency"], r"^[\d.]+ (µs|ms|s)$")
        self.assertEqual(seen["papers"], ["rgb(246, 248, 250)", "rgb(15, 22, 32)"])
        self.assertEqual([max(0, pixels) for pixels in seen["wide"]], [0, 0])

    async def visit(self):
        """Does what a visitor would, by the browser's own protocol, and tells what there was to see."""
        import aiohttp

        port_file = self.folder / "profile" / "DevToolsActivePort"
        for _ in range(600):
            if port_file.exists() and port_file.read_text().count("\n"):
                break
            await asyncio.sleep(0.1)
        port = int(port_file.read_text().split()[0])
        script = """(async () => {
          const until = async (f) => { for (let i = 0; i < 300; ++i) { const found = f(); if (found) return found; await new Promise((done) => setTimeout(done, 100)); } throw new Error("not seen: " + f); };
          const article = await until(() => document.querySelector("article[data-model=dense]"));
          const button = await until(() => article.querySelector("button")), area = article.querySelector("textarea"), pre = article.querySelector("pre");
          const cell = (name) => [...article.querySelectorAll("tr")].find((tr) => tr.cells[0].textContent === name).cells[1].textContent;
          const seen = { form: article.querySelector("form").innerText };
          area.value = "[[1, 2, 3, 4], [-1, 0, 1, 0.5]]";
          button.click();
          await until(() => pre.textContent);
          seen.result = pre.textContent;
          await until(() => cell("answered") === "1");
          seen.answered = cell("answered"); seen.latency = cell("median latency");
          seen.batches = [...article.querySelectorAll(".bar span:first-child")].map((span) => span.textContent);
          area.value = "[[1, 2, 3]]"; pre.textContent = "";
          button.click();
          await until(() => pre.textContent);
          seen.wrong = pre.textContent;
          await until(() => document.querySelectorAll("article button").length === 5);
          seen.answers = {};
          for (const one of document.querySelectorAll("article")) {
            const told = one.querySelector("pre");
            if (one === article) area.value = "[[1, 2, 3, 4]]";
            told.textContent = "";
            one.querySelector("button").click();
            await until(() => told.textContent);
            seen.answers[one.dataset.model] = [told.className, told.textContent];
          }
          seen.models = [...document.querySelectorAll("article h2")].map((h) => h.textContent).sort();
          seen.state = document.getElementById("state").textContent;
          return JSON.stringify(seen);
        })()"""
        async with aiohttp.ClientSession() as session:
            pages = []
            for _ in range(300):
                async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                    pages = [p for p in json.loads(await answer.text()) if p["type"] == "page" and p["url"].startswith("http")]
                if pages:
                    break
                await asyncio.sleep(0.1)
            async with session.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0) as socket_:
                number = 0

                async def call(method, **parameters):
                    nonlocal number
                    number += 1
                    await socket_.send_str(json.dumps({"id": number, "method": method, "params": parameters}))
                    while True:
                        answer = json.loads((await asyncio.wait_for(socket_.receive(), 60)).data)
                        if answer.get("id") == number:
                            self.assertIn("result", answer, answer)
                            return answer["result"]

                for _ in range(300):
                    loaded = await call("Runtime.evaluate", expression="document.readyState === 'complete' && location.protocol === 'http:'")
                    if loaded["result"].get("value"):
                        break
                    await asyncio.sleep(0.1)
                result = await call("Runtime.evaluate", expression=script, awaitPromise=True)
                self.assertNotIn("exceptionDetails", result, result)
                seen = json.loads(result["result"]["value"])
                seen["papers"], seen["wide"] = [], []
                for width in (1200, 390):  # a desk and a phone
                    await call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500)
                    over = await call("Runtime.evaluate", expression="document.documentElement.scrollWidth - innerWidth")
                    seen["wide"].append(over["result"]["value"])
                for scheme in ("light", "dark"):
                    await call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
                    color = await call("Runtime.evaluate", expression="getComputedStyle(document.body).backgroundColor")
                    seen["papers"].append(color["result"]["value"])
                    if pictures := os.environ.get("TUTTI_PICTURES"):  # to look at it oneself
                        import base64

                        shot = await call("Page.captureScreenshot", captureBeyondViewport=True)
                        with open(f"{pictures}/page_{scheme}.png", "wb") as file:
                            file.write(base64.b64decode(shot["data"]))
                return seen


if __name__ == "__main__":
    main()
