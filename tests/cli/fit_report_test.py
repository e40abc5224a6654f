"""What tutti fit shows: a table while it runs in a terminal, a line a job elsewhere, and a page with curves."""

import json
import os
import pty
import re
import select
import shutil
import subprocess
import time

import numpy as np

from fit_jobs import FitTest
from program import main

SWEEP = """
[[sweep]]
name = "s"
build = "dense 2 relu; dense 1"
input = [6]
x = "x.npy"
y = "t.npy"
loss = "mse"
metrics = ["mae"]
optimizer = "sgd"
epochs = {epochs}
validation_split = 0.2
vary = {{ seed = [{seeds}] }}
"""


class FitReport(FitTest):
    def setUp(self):
        super().setUp()
        np.save(self.folder / "t.npy", self.x[:, :1])

    def write_sweep(self, jobs, epochs):
        (self.folder / "jobs.toml").write_text(SWEEP.format(epochs=epochs, seeds=", ".join(map(str, range(jobs)))))

    def test_without_a_terminal_a_line_a_job(self):
        self.write_sweep(3, 2)
        out = self.succeed("fit", "jobs.toml", "--out", "out").out
        self.assertEqual(len(out.splitlines()), 3)
        for line in out.splitlines():
            self.assertRegex(line, r"^s_\d: 4 steps in \d+\.\d+ s, loss [\d.e-]+ \(epochs\)$")
        self.assertEqual(self.succeed("fit", "jobs.toml", "--out", "out", "--quiet").out, "")

    def in_terminal(self, *options, seconds=60):
        """What a terminal of 100 columns gets."""
        master, slave = pty.openpty()
        child = subprocess.Popen([self.program, "fit", "jobs.toml", "--out", "out", *options], cwd=self.folder, stdout=slave, stderr=slave, env=os.environ | {"COLUMNS": "100"})
        os.close(slave)
        shown, end = b"", time.monotonic() + seconds
        while time.monotonic() < end:
            ready, _, _ = select.select([master], [], [], 0.1)
            try:
                shown += os.read(master, 65536) if ready else b""
            except OSError:
                break
        else:
            child.terminate()
        child.wait()
        os.close(master)
        return shown.decode()

    def test_a_terminal_shows_a_table_that_stays_readable(self):
        self.write_sweep(200, 3000)
        shown = self.in_terminal()
        tables = shown.split("\x1b[J")
        full = next((t for t in tables if "JOB" in t and "LOSS" in t), None)
        self.assertIsNotNone(full, shown[-2000:])
        lines = full.replace("\r", "").split("\n")
        self.assertLess(len(lines), 20)
        self.assertRegex(full, r"\d+ of 200 jobs done  [\d.]+ ?\w* of [\d.]+ ?\w* steps  [\d.]+ ?\w*/s  \S+")
        self.assertTrue(all(len(line) < 100 for line in lines), lines)
        self.assertRegex(full, r"s_\d+ +\d+/3000")
        # In the end nothing of it is left but what was asked for.
        self.assertTrue(shown.rstrip("\r\n").endswith("\x1b[J") or "jobs" in tables[-1] or tables[-1].strip() == "", repr(shown[-300:]))
        self.assertNotIn("JOB", self.in_terminal("--quiet"))

    def page(self, jobs, epochs=3):
        self.write_sweep(jobs, epochs)
        self.succeed("fit", "jobs.toml", "--out", "out")
        return (self.folder / "out/report.html").read_text()

    def test_the_page_holds_every_job_and_needs_nothing_from_outside(self):
        for jobs in (1, 30):
            page = self.page(jobs)
            self.assertEqual(re.findall(r"(?:src|href)\s*=|url\(|@import|https?://", page), [])
            self.assertEqual(page.count("<tr data-job="), jobs)
            self.assertEqual(page.count("<figure>"), 2)  # loss and mae
            self.assertEqual(page.count("<polyline"), 4 * jobs)  # training and validation
            self.assertIn("prefers-color-scheme: dark", page)
        # Best first, by the validation.
        losses = [float(row) for row in re.findall(r"<tr data-job=.*?</td>(?:<td>[^<]*</td>){4}<td>([^<]*)</td>", page)]
        self.assertEqual(losses, sorted(losses))
        self.assertEqual(len(losses), 30)

    def test_text_from_the_job_file_is_no_markup(self):
        name = "<script>alert(1)<"
        (self.folder / "jobs.toml").write_text(SWEEP.format(epochs=1, seeds="1").replace('"s"', json.dumps(name)))
        self.succeed("fit", "jobs.toml", "--out", "out")
        page = (self.folder / "out/report.html").read_text()
        self.assertNotIn("<script>alert", page)
        self.assertIn("&lt;script&gt;alert", page)

    def test_a_failed_job_is_told_on_the_page(self):
        x = self.x.copy()
        x[3] = np.nan
        np.save(self.folder / "bad.npy", x)
        (self.folder / "jobs.toml").write_text(SWEEP.format(epochs=2, seeds="1").replace('x = "x.npy"', "").replace("seed = [1]", 'x = ["x.npy", "bad.npy"]'))
        run = self.run_warned("fit", "jobs.toml", "--out", "out")
        self.assertEqual(run.returncode, 1)
        self.assertRegex((self.folder / "out/report.html").read_text(), r'class="failed" title="\[fit\] the loss of step 0')

    def run_warned(self, *words):
        return subprocess.run([self.program, *words], cwd=self.folder, capture_output=True, text=True)

    def test_the_page_in_a_browser(self):
        browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        if browser is None:
            self.skipTest("no chromium in PATH; hint: apt-get install chromium")
        probe = """<script>
        const rows = [...document.querySelectorAll("tr[data-job]")], box = document.querySelector("svg").viewBox.baseVal;
        rows[2].dispatchEvent(new MouseEvent("mouseenter"));
        const on = document.querySelectorAll("polyline.on").length;
        rows[2].dispatchEvent(new MouseEvent("mouseleave"));
        const after = document.querySelectorAll("svg.chosen").length;
        const outside = [...document.querySelectorAll("svg text, polyline")].filter((e) => { const b = e.getBBox(); return b.x < 0 || b.x + b.width > box.width || b.y < 0 || b.y + b.height > box.height; }).length;
        const flat = [...document.querySelectorAll("polyline")].filter((e) => !(e.getTotalLength() > 0)).length;
        document.title = JSON.stringify({ on, after, outside, flat, page: getComputedStyle(document.body).backgroundColor });
        </script></body>"""
        (self.folder / "probe.html").write_text(self.page(12, 20).replace("</body>", probe))
        words = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={self.folder}/profile"]
        for scheme, page in ((1, "rgb(245, 247, 250)"), (0, "rgb(10, 15, 22)")):
            shown = subprocess.run([*words, f"--blink-settings=preferredColorScheme={scheme}", "--dump-dom", f"file://{self.folder}/probe.html"], capture_output=True, text=True, timeout=120)
            title = re.search(r"<title>(.*?)</title>", shown.stdout)
            self.assertIsNotNone(title, shown.stderr[-2000:])
            self.assertEqual(json.loads(title[1]), {"on": 4, "after": 0, "outside": 0, "flat": 0, "page": page})


if __name__ == "__main__":
    main()
