"""Every header compiles alone: headers.py BUILD_FOLDER.

The build proves it for a header that its own .cc includes first; the others are given to the compiler here. A header without #pragma once is a list meant to
be included several times, and left out.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    compiler = compiler_of(pathlib.Path(sys.argv[1]))
    headers = [path for path in sorted((ROOT / "tutti").rglob("*.h")) if "#pragma once" in path.read_text()]
    unproven = [path.relative_to(ROOT) for path in headers if not included_first(path)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda header: compile_alone(compiler, header), unproven))
    failures = [(header, result.stderr) for header, result in zip(unproven, results) if result.returncode]
    for header, error in failures:
        print(f"{header} does not compile alone:\n{error}")
    sys.exit(1 if failures or not headers else 0)


def included_first(header):
    source = header.with_suffix(".cc")
    if not source.exists():
        return False
    first = re.search(r'^#include (.*)$', source.read_text(), re.M)
    return first is not None and first[1] == f'"{header.relative_to(ROOT)}"'


def compile_alone(compiler, header):
    return subprocess.run([*compiler, "-fsyntax-only", "-x", "c++", "-"], input=f'#include "{header}"\n', capture_output=True, text=True)


def compiler_of(build):
    """The command of some source of ours, without the launcher, the input and the output."""
    commands = json.loads((build / "compile_commands.json").read_text())
    words = shlex.split(next(c["command"] for c in commands if "/tutti/base/" in c["file"]))
    words = words[1:] if words[0].endswith("ccache") else words
    return words[: words.index("-o")]


if __name__ == "__main__":
    main()
