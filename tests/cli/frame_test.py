"""What holds for every verb: usage, exit codes, one-line errors, colours, signals, and nothing half-written."""

import os
import pty
import signal
import subprocess
import threading
import time

import numpy as np
import program

DENSE = program.DATA / "dense.keras"


class Usage(program.ProgramTest):
    def test_help_lists_the_verbs_and_each_verb_helps(self):
        run = self.succeed("--help")
        for verb in ("bench", "compile", "devices", "ensemble", "explain", "fit", "forecast", "inspect", "predict", "scale", "serve"):
            self.assertIn(f"\n  {verb} ", run.out)
            help = self.succeed(verb, "--help").out
            self.assertIn(f"tutti {verb}", help)
            self.assertIn("--json", help)
        self.assertIn("--batch", self.succeed("predict", "--help").out)

    def test_version(self):
        self.assertRegex(self.succeed("--version").out, r"^tutti \d+\.\d+\.\d+\n$")

    def test_wrong_usage_is_exit_code_2(self):
        self.refuse(2, "hint: tutti --help")
        self.refuse(2, "unknown verb 'pedict' (did you mean 'predict'?)", "pedict")
        self.refuse(2, "devices has no option '--frobnicate'", "devices", "--frobnicate")
        self.refuse(2, "predict has no option '--bacth' (did you mean '--batch'?); hint: tutti predict --help", "predict", DENSE, "x.npy", "--bacth", 3)
        self.refuse(2, "predict has no option '--jsn' (did you mean '--json'?)", "predict", DENSE, "x.npy", "--jsn=3")
        self.refuse(2, "predict has no option '--bacth' (did you mean '--batch'?)", "--cache", "off", "predict", DENSE, "x.npy", "--bacth", 3)
        self.refuse(2, "predict has no option '--hlp' (did you mean '--help'?)", "predict", "--hlp")
        self.refuse(2, "unknown verb 'pedict'", "--cache", "off", "pedict")
        self.refuse(2, "not expected", "predict", DENSE, "--", "x.npy", "-o", "y.npy")
        self.refuse(2, "MODEL", "inspect")
        self.refuse(2, "hint: tutti predict --help", "predict", DENSE)
        self.refuse(2, "--batch", "predict", DENSE, "x.npy", "--batch", "0")
        self.refuse(2, "--batch", "predict", DENSE, "x.npy", "--batch", "many")
        self.refuse(2, "--header", "predict", DENSE, "x.npy", "--header", "perhaps")
        self.refuse(2, "--repeat needs --latency", "predict", DENSE, "x.npy", "--repeat", "3")
        self.refuse(2, "unknown device 'referense' (did you mean 'reference'?)", "predict", DENSE, "x.npy", "--device", "referense")
        self.refuse(2, "'y.txt': the name says the format; expected .npy, .npz or .csv", "predict", DENSE, "x.npy", "-o", "y.txt")

    def test_flags_of_the_program_stand_before_or_after_the_verb(self):
        self.assertEqual(self.succeed("--json", "devices").json, self.succeed("devices", "--json").json)

    def test_a_missing_file_is_exit_code_1_and_named(self):
        self.refuse(1, "nowhere.keras", "inspect", "nowhere.keras")
        self.refuse(1, "nowhere.npy", "predict", DENSE, "nowhere.npy")

    def test_control_characters_never_reach_the_terminal(self):
        self.refuse(1, r"a\x1b[31m\nb.keras", "inspect", "a\x1b[31m\nb.keras")

    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "wb") as full:
            self.refuse(1, "cannot write to stdout: No space left", "devices", stdout=full)

    def test_an_output_that_cannot_be_made_is_an_error(self):
        np.save(self.folder / "x.npy", np.zeros((2, 4), "float32"))
        self.refuse(1, "no_folder/y.npy", "predict", DENSE, "x.npy", "-o", "no_folder/y.npy")

    def test_verbose_talks_on_stderr_only(self):
        run = self.run_program("-v", "inspect", DENSE)
        self.assertEqual((run.code, run.out), (0, self.succeed("inspect", DENSE).out))
        self.assertRegex(run.err, r"^tutti: read '.*' in ")


class Limits(program.ProgramTest):
    def test_a_thread_that_is_not_to_be_had_is_an_error(self):
        if self.sanitized:
            self.skipTest("a sanitized program's memory cannot be limited")
        (self.folder / "photos").mkdir()
        (self.folder / "photos/empty.png").touch()
        np.save(self.folder / "x.npy", np.zeros((4, 4), "float32"))
        (self.folder / "jobs.toml").write_text('[[job]]\nname = "a"\nbuild = "dense 2"\ninput = [4]\nx = "x.npy"\ny = "y.npy"\nloss = "mse"\nepochs = 1\n')
        np.save(self.folder / "y.npy", np.zeros((4, 2), "float32"))
        image = program.DATA / "image.keras"
        fit = ["fit", "jobs.toml", "--out", "trained", "--threads", 1, "--devices", 4]
        for words in (fit, ["predict", image, "photos", "-o", "y.csv", "--workers", 3], ["predict", DENSE, "x.npy"], ["serve", DENSE, "--socket", "socket", "--http", "nowhere"]):
            ends = [self.run_program("--quiet", *words, memory_mib=memory, stack_mib=100, environment={"TUTTI_THREADS": "3"}).err for memory in range(100, 1500, 100)]
            self.assertIn("[threads] the system starts no more threads", ends[0])
            self.assertGreater(len(set(ends)), 1, "with enough it does something")

    def test_grpc_does_not_wait_for_threads_that_are_not_to_be_had(self):
        if self.sanitized:
            self.skipTest("a sanitized program's memory cannot be limited")
        ends = set()
        for memory in range(500, 4000, 250):
            limited = ["sh", "-c", f'ulimit -s 102400; ulimit -v {memory << 10}; exec "$@"', "sh", self.program, "serve", str(DENSE), "--grpc", ":0"]
            child = subprocess.Popen(limited, stderr=subprocess.PIPE, text=True, env=os.environ | {"TUTTI_CACHE": "off", "TUTTI_THREADS": "2"})
            end = threading.Timer(20, child.kill)
            end.start()
            ends.add(next((line for line in child.stderr if " error: " in line or line == "tutti: ready\n"), "it hangs")[:60])
            end.cancel()
            child.kill()
            child.wait()
            child.stderr.close()
        self.assertEqual(ends, {"tutti: error: [threads] the system starts no more threads: Resource"[:60], "tutti: ready\n"})

    def test_jobs_are_trained_by_the_threads_that_are_to_be_had(self):
        if self.sanitized:
            self.skipTest("a sanitized program's memory cannot be limited")
        np.save(self.folder / "x.npy", np.zeros((4, 4), "float32"))
        np.save(self.folder / "y.npy", np.zeros((4, 2), "float32"))
        job = 'build = "dense 2"\ninput = [4]\nx = "x.npy"\ny = "y.npy"\nloss = "mse"\nepochs = 1\n'
        (self.folder / "jobs.toml").write_text("".join(f'[[job]]\nname = "{name}"\n{job}' for name in "abc"))
        run = self.run_program("--json", "fit", "jobs.toml", "--out", "trained", memory_mib=120, stack_mib=100, environment={"TUTTI_THREADS": "3"})
        self.assertEqual((run.code, run.err), (0, ""))
        self.assertEqual([job["steps"] for job in run.json["jobs"]], [1, 1, 1])

    def test_what_is_said_to_closed_streams_stands_in_no_output(self):
        (self.folder / "photos").mkdir()
        for name in ("a.png", "b.png"):
            (self.folder / "photos" / name).touch()
        words = [self.program, "predict", program.DATA / "image.keras", "photos", "-o"]
        for output, closed in {"y.csv": "", "out.csv": ">&-", "err.csv": "2>&-", "both.csv": ">&- 2>&-", "all.csv": "<&- >&- 2>&-"}.items():
            run = subprocess.run(["sh", "-c", f'"$@" {closed}', "sh", *map(str, words), output], cwd=self.folder, capture_output=True, timeout=60)
            self.assertEqual(run.returncode, 1)
            self.assertEqual((self.folder / output).read_text(), (self.folder / "y.csv").read_text(), closed)
        run = subprocess.run(["sh", "-c", '"$@" <&-', "sh", *map(str, words[:3]), "--files", "-", "-o", "z.csv"], cwd=self.folder, capture_output=True, timeout=60)
        self.assertEqual((run.returncode, run.stderr), (1, b"tutti: error: [input] cannot read '-': Bad file descriptor\n"))


class Devices(program.ProgramTest):
    def test_lists_what_is_there(self):
        self.assertRegex(self.succeed("devices").out, r"(?m)^reference +host ")
        listed = {device["name"]: device for device in self.succeed("devices", "--json").json["devices"]}
        self.assertTrue(listed["reference"]["usable"])
        self.assertGreater(listed["reference"]["memory_bytes"], 2**28)
        self.assertEqual(set(listed["null"]), {"name", "kind", "usable", "memory_bytes", "found", "description"})


class Terminal(program.ProgramTest):
    def run_on_terminal(self, *arguments, env=None):
        """stderr is a terminal; gives the exit code and what was shown."""
        ours, theirs = pty.openpty()
        environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"} | (env or {})
        child = subprocess.Popen([self.program, *map(str, arguments)], stdout=subprocess.PIPE, stderr=theirs, cwd=self.folder, env=environment)
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:
                break
            if not piece:
                break
            shown += piece
        os.close(ours)
        child.stdout.close()
        return child.wait(), shown.decode()

    def test_errors_are_coloured_unless_no_color_is_set(self):
        code, shown = self.run_on_terminal("inspect", "nowhere.keras")
        self.assertEqual(code, 1)
        self.assertIn("\x1b[31;1merror:\x1b[0m", shown)
        _, shown = self.run_on_terminal("inspect", "nowhere.keras", env={"NO_COLOR": "1"})
        self.assertTrue(shown.startswith("tutti: error: ["), shown)
        _, shown = self.run_on_terminal("inspect", "nowhere.keras", env={"NO_COLOR": ""})
        self.assertIn("\x1b[", shown)

    def test_progress_is_shown_on_a_terminal_and_cleared(self):
        rows, took = 100_000, 0
        while took < 3:  # long enough for a summary, on every machine and in every ring, though another program has the cores for a while
            rows *= 2
            np.save(self.folder / "x.npy", np.zeros((rows, 4), "float32"))
            begin = time.monotonic()
            _, shown = self.run_on_terminal("predict", DENSE, "x.npy", "-o", "y.npy", "--batch", "1", "--device", "reference")
            took = time.monotonic() - begin
        self.assertRegex(shown, rf"predict \[#*\.*\] +\d+%  \d+/{rows}  .*/s  \d+ s left")
        self.assertRegex(shown, r"\d+%[^\r]* (device|source|writer|preprocessing) bound")
        summary = shown[shown.rindex("\r\x1b[K") :]
        self.assertIn(f"{rows:,} samples in ", summary)
        self.assertRegex(summary, r"STAGE +THREADS[^$]*device[^$]* bound: ")
        _, shown = self.run_on_terminal("--quiet", "predict", DENSE, "x.npy", "-o", "y.npy", "--batch", "4")
        self.assertEqual(shown, "")


class Signals(program.ProgramTest):
    def end_with(self, number):
        x = np.random.default_rng(0).integers(0, 9, (5_000_000, 4)).astype("uint8")
        np.save(self.folder / "x.npy", x)
        words = [self.program, "predict", str(DENSE), "x.npy", "-o", "y.npz", "--batch", "1"]
        child = subprocess.Popen(words, cwd=self.folder, stderr=subprocess.PIPE, text=True)
        rows = self.folder / "y.npz.resume.rows"
        deadline = time.monotonic() + 120
        while not (rows.exists() and rows.stat().st_size > 0):
            self.assertLess(time.monotonic(), deadline, "no output was begun")
            self.assertIsNone(child.poll(), "the program ended by itself")
            time.sleep(0.02)
        begin = time.monotonic()
        child.send_signal(number)
        _, err = child.communicate(timeout=60)
        self.assertLess(time.monotonic() - begin, 5)
        self.assertEqual(child.returncode, 128 + number)
        self.assertRegex(err, r"^tutti: error: \[interrupted\] after \d+ samples; hint: --resume goes on\n$")
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["x.npy", "y.npz.resume", "y.npz.resume.rows"])
        return x

    def test_ctrl_c_keeps_what_is_finished_and_nothing_half_written(self):
        x = self.end_with(signal.SIGINT)
        run = self.succeed("predict", DENSE, "x.npy", "-o", "y.npz", "--resume", "--json").json
        self.assertGreater(run["resumed"], 0)
        self.succeed("predict", DENSE, "x.npy", "-o", "whole.npz")
        (resumed,), (whole,) = (list(np.load(self.folder / name).values()) for name in ("y.npz", "whole.npz"))
        self.assertEqual(len(resumed), len(x))
        np.testing.assert_array_equal(resumed, whole)

    def test_sigterm_keeps_what_is_finished_and_nothing_half_written(self):
        self.end_with(signal.SIGTERM)

    def test_an_existing_output_survives_an_interrupted_run(self):
        (self.folder / "y.npy").write_bytes(b"precious")
        np.save(self.folder / "x.npy", np.zeros((4, 5), "float32"))
        self.refuse(1, "input 'features' expects float32 (samples, 4)", "predict", DENSE, "x.npy", "-o", "y.npy")
        self.assertEqual((self.folder / "y.npy").read_bytes(), b"precious")


if __name__ == "__main__":
    program.main()
