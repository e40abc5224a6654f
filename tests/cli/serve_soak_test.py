"""`tutti serve` under everything at once: clients of all protocols come, are killed and send nonsense, while the model is reloaded. TUTTI_SOAK_SECONDS makes it long."""

import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import program
import serving
import soak_clients

HERE = pathlib.Path(__file__).parent


class SoakTest(serving.ServeTest):
    def worker(self, kind, address, choose):
        words = [sys.executable, HERE / "soak_clients.py", kind, address, str(choose.randrange(1 << 30))]
        return kind, subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def end(self, worker):
        """Kills it; that it was still there says that all its answers were right."""
        kind, process = worker
        gone = process.poll()
        process.kill()
        said = process.communicate()[1]
        self.assertIsNone(gone, f"a client of {kind} ended: {said}")

    def test_every_answer_is_right_and_memory_stays(self):
        seconds = float(os.environ.get("TUTTI_SOAK_SECONDS", 5))
        model = self.folder / "dense.keras"
        shutil.copy(program.DATA / "dense.keras", model)
        server = self.serve(model, "--poll", 100, "--http", ":0", "--grpc", ":0")
        said = "\n".join(server.said)
        places = {"local": str(self.socket), **{name: re.search(rf"{name}: (\S+)", said)[1] for name in ("http", "grpc")}}
        choose = random.Random(1)
        own = {kind: make(places[kind]) for kind, make in soak_clients.KINDS.items()}
        waits = {kind: [] for kind in own}
        workers, kills, reloads, memory = [], 0, 0, []
        begin = time.monotonic()
        try:
            while (now := time.monotonic() - begin) < seconds:
                while len(workers) < 4:
                    kind = choose.choice(list(places))
                    workers.append(self.worker(kind, places[kind], choose))
                if choose.random() < min(0.1, 3 / seconds + 0.005):
                    self.end(workers.pop(choose.randrange(len(workers))))
                    kills += 1
                if choose.random() < 0.05:
                    shutil.copy(program.DATA / "dense.keras", self.folder / "next")
                    os.replace(self.folder / "next", model)
                    reloads += 1
                for kind, client in own.items():
                    for _ in range(10):
                        asked = time.perf_counter()
                        soak_clients.ask_once(client, choose)
                        waits[kind].append(time.perf_counter() - asked)
                if now >= (len(memory) + 1) * seconds / 10:
                    memory.append(server.memory())
        finally:
            for worker in workers:
                worker[1].kill()
                worker[1].communicate()
        for client in own.values():
            client.close()
        memory.append(server.memory())
        if not self.sanitized:
            self.assertLess(memory[-1] - memory[len(memory) // 2], 64 << 20, memory)
        for kind, times in waits.items():
            times.sort()
            print(f"soak, {kind}: {len(times)} requests, p50 {times[len(times) // 2] * 1e6:.0f} us, p99 {times[len(times) * 99 // 100] * 1e6:.0f} us", file=sys.stderr)
        print(f"soak: {kills} clients killed, {reloads} reloads, MiB {[round(m / 2**20, 1) for m in memory]}", file=sys.stderr)
        self.assertEqual(server.end(signal.SIGTERM)[0], 143)


if __name__ == "__main__":
    program.main()
