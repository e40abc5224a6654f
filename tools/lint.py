"""Formatting, clang-tidy, headers that compile alone, and our own rules: lint.py [--all].

What compiles is slow, so by default it only looks at files that differ from main.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = (".cc", ".h")
LONGEST = 500  # lines; a file beyond 400 wants to be two, beyond this it must be

# What no file of ours may hold. Written so that this file does not.
FORBIDDEN = {
    r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b": "say it in an issue, or do it",
    r"(?<![\w.])/(wo" r"rk|ro" r"ot|ho" r"me)/\w": "a path of one machine",
    r"#\s*if\s+0\b": "code that is never compiled",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="clang-tidy and the compiler on every source")
    args = parser.parse_args()
    os.chdir(ROOT)
    tracked = git("ls-files", "--cached", "--others", "--exclude-standard")
    files = [name for name in tracked if pathlib.Path(name).is_file()]
    sources = [name for name in files if name.endswith(SOURCES)]
    changed = set(sources if args.all else changed_since_main())
    problems = [line for name in files for line in own_rules(name)]
    print("\n".join(problems), end="\n" if problems else "")
    failed = bool(problems)
    failed |= subprocess.run(["clang-format", "--dry-run", "-Werror", *sources]).returncode != 0
    failed |= not alone([name for name in sources if name in changed and name.startswith("tutti/") and name.endswith(".h")])
    failed |= not tidy([name for name in sources if name in changed and name.endswith(".cc")])
    sys.exit(1 if failed else 0)


def git(*words):
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout.split("\n")[:-1]


def changed_since_main():
    for base in ("origin/main", "main", "HEAD"):
        found = subprocess.run(["git", "merge-base", base, "HEAD"], capture_output=True, text=True)
        if found.returncode == 0:
            return git("diff", "--name-only", found.stdout.strip()) + git("ls-files", "--others", "--exclude-standard")
    return git("ls-files")


def own_rules(name):
    path = pathlib.Path(name)
    if not re.fullmatch(r"[a-z0-9_]+", path.stem) and path.suffix in (*SOURCES, ".py"):
        yield f"{name}: files are named in lower_snake"
    try:
        lines = path.read_text().splitlines()
    except UnicodeDecodeError:
        return
    if path.suffix in (*SOURCES, ".py") and len(lines) > LONGEST:
        yield f"{name}: {len(lines)} lines; {LONGEST} is the most"
    for number, line in enumerate(lines, 1):
        for pattern, why in FORBIDDEN.items():
            if re.search(pattern, line):
                yield f"{name}:{number}: {why}: {line.strip()}"


def alone(headers):
    """Sources are built with precompiled headers, which hide a missing #include. A header without #pragma once is included several times, not alone."""
    headers = [name for name in headers if "#pragma once" in pathlib.Path(name).read_text()]
    commands = {c["file"]: c["command"] for c in json.loads(pathlib.Path("build-dev/compile_commands.json").read_text())}
    any_of_ours = next(command for file, command in commands.items() if "/tutti/base/" in file)

    def check(name):
        words = shlex.split(commands.get(str(ROOT / name.replace(".h", ".cc")), any_of_ours))  # its source may see more
        return subprocess.run([*words[: words.index("-o")], "-fsyntax-only", "-x", "c++", "-"], input=f'#include "{name}"\n', capture_output=True, text=True)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(check, headers))
    for name, result in zip(headers, results):
        if result.returncode:
            print(f"{name} does not compile alone:\n{result.stderr}")
    print(f"lint: {len(headers)} headers compiled alone")
    return all(result.returncode == 0 for result in results)


def tidy(sources):
    def check(name):
        return subprocess.run(["clang-tidy", "--quiet", "-p", "build-dev", "--extra-arg=-Wno-unknown-warning-option", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(check, sources))
    for result in results:
        print(result.stdout, end="")
    print(f"lint: clang-tidy looked at {len(sources)} files")
    return all(result.returncode == 0 for result in results)


if __name__ == "__main__":
    main()
