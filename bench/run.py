"""Runs the benchmarks: run.py [NAME [PART...]]. Each cases/NAME.py has setup(folder, parts) and run(folder, build, parts), which yields the rows of a table.

Parts are words that pick some of a benchmark's rows, as each defines; none: all of them.
"""

import importlib.util
import pathlib
import platform
import sys

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parent / "build"


def main():
    cases = {path.stem: path for path in sorted((HERE / "cases").glob("*.py"))}
    sys.path.insert(0, str(HERE))
    names, parts = sys.argv[1:2] or list(cases), sys.argv[2:]
    for name in names:
        if name not in cases:
            sys.exit(f"bench: unknown case '{name}'; there are {', '.join(cases)}")
        spec = importlib.util.spec_from_file_location(name, cases[name])
        case = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(case)
        folder = BUILD / "bench_data" / name
        folder.mkdir(parents=True, exist_ok=True)
        print(f"## {name}: {case.__doc__.strip()}\n\n{machine()}\n")
        case.setup(folder, parts)
        table(list(case.run(folder, BUILD, parts)))


def machine():
    models = [line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return f"{models[0] if models else platform.processor()}, {len(models)} cores, Python {platform.python_version()}"


def table(rows):
    print("| " + " | ".join(rows[0]) + " |\n|" + "---|" * len(rows[0]))
    for row in rows:
        print("| " + " | ".join(row.values()) + " |")
    print()


if __name__ == "__main__":
    main()
