"""What the tests of the command line share: running the program, and the rules that hold for every run."""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "build" / "test_data" / "cli_models"


class Run:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        return json.loads(self.out)


class ProgramTest(unittest.TestCase):
    """argv[1] is the program. Each test has a folder of its own, self.folder."""

    program = None
    sanitized = False

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="tutti_cli_")
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)

    def run_program(self, *arguments, stdout=subprocess.PIPE, memory_mib=None, stack_mib=None, environment=None):
        """Runs to the end. Whatever happens: exit codes 0, 1, 2, and an error is exactly one line of printable text on stderr, unless more was asked for.

        `environment` adds to this process's own, where nothing is kept on disk; `memory_mib` limits the address space, but not of sanitized programs, which need terabytes of it; each of its threads takes `stack_mib` of that."""

        def limit():
            if stack_mib:
                resource.setrlimit(resource.RLIMIT_STACK, (stack_mib << 20, stack_mib << 20))
            resource.setrlimit(resource.RLIMIT_AS, (memory_mib << 20, memory_mib << 20))

        child = subprocess.Popen(
            [self.program, *map(str, arguments)],
            stdout=stdout,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            env=os.environ | {"TUTTI_CACHE": "off"} | (environment or {}),
            preexec_fn=limit if memory_mib and not self.sanitized else None,
        )
        out, err = child.communicate(timeout=300)
        run = Run(child.returncode, (out or b"").decode(), err.decode())
        self.assertIn(run.code, (0, 1, 2), run.err)
        if run.code != 0 and "--verbose" not in arguments:
            self.assertTrue(run.err.startswith("tutti: error: ["), run.err)
            self.assertEqual(run.err.count("\n"), 1, run.err)
            self.assertTrue(run.err.rstrip("\n").isprintable(), repr(run.err))
        self.assertEqual([p.name for p in self.folder.iterdir() if p.name.endswith(".part")], [], "half-written files are left")
        return run

    def succeed(self, *arguments, **options):
        run = self.run_program(*arguments, **options)
        self.assertEqual(run.code, 0, run.err)
        self.assertEqual(run.err, "")
        return run

    def refuse(self, code, message, *arguments, **options):
        """The message may be cut anywhere; what is given must be in it."""
        run = self.run_program(*arguments, **options)
        self.assertEqual(run.code, code, run.err or run.out)
        self.assertIn(message, run.err)
        return run


def main():
    ProgramTest.program = os.path.realpath(sys.argv.pop(1))
    ProgramTest.sanitized = "san" in pathlib.Path(ProgramTest.program).parent.name
    unittest.main()
