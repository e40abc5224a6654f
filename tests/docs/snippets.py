"""Runs what README.md and docs/ show: snippets.py BUILD_FOLDER DATA_FOLDER.

A ```console block is a session: lines that begin with "$ " are run by a shell, in a copy of the data folder that lasts through one document, with the programs of
the build and its examples in PATH; the lines below each must be what it prints (numbers to within a ten-thousandth, or 2 in the last digit shown). A ```cpp FILE block must be that file of the repository, which the build
compiles and runs. Other blocks are only shown.
"""

import decimal
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def main():
    build, data = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    documents = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    problems, checked = [], 0
    for document in documents:
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch) / "demo"
            shutil.copytree(data, folder)
            for line, info, text in blocks(document):
                language, _, argument = info.partition(" ")
                found = session(text, folder, build) if language == "console" else listing(text, argument) if language == "cpp" and argument else None
                checked += found is not None
                problems += [f"{document.relative_to(ROOT)}:{line}: {problem}" for problem in found or []]
    print("\n".join(problems) if problems else f"{checked} snippets are as shown")
    sys.exit(1 if problems or not checked else 0)


def blocks(document):
    """(line, info string, text) of each fenced block."""
    opened = None
    for number, line in enumerate(document.read_text().splitlines(), 1):
        if opened is None and line.startswith("```"):
            opened = (number, line[3:].strip(), [])
        elif opened is not None and line == "```":
            yield opened[0], opened[1], "\n".join(opened[2])
            opened = None
        elif opened is not None:
            opened[2].append(line)


def listing(text, name):
    source = ROOT / name
    if not source.exists():
        return [f"there is no {name}"]
    return [] if source.read_text().strip() == text.strip() else [f"the block differs from {name}"]


def session(text, folder, build):
    environment = os.environ | {"PATH": f"{build}:{build}/examples:{os.environ['PATH']}", "NO_COLOR": "1"}
    problems = []
    for step in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, _, shown = step.partition("\n")
        run = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if not same(run.stdout, shown):
            problems.append(f"$ {command}\nshown:\n{shown.rstrip()}\nprinted:\n{run.stdout.rstrip()}")
    return problems


def same(printed, shown):
    """Equal up to trailing blanks, and up to the last digits of numbers: libraries round differently on other machines."""
    left, right = ("\n".join(line.rstrip() for line in text.strip().splitlines()) for text in (printed, shown))
    if NUMBER.sub("#", left) != NUMBER.sub("#", right):
        return False
    return all(close(a, b) for a, b in zip(NUMBER.findall(left), NUMBER.findall(right)))


def close(printed, shown):
    a, b = decimal.Decimal(printed), decimal.Decimal(shown)
    if "." not in shown:
        return a == b
    return abs(a - b) <= max(2 * decimal.Decimal(1).scaleb(b.as_tuple().exponent), abs(b) / 10000)


if __name__ == "__main__":
    main()
