"""The benchmarks, one file each: `run.py` runs all, `run.py NAME...` some. Each prints its own table and names its peers."""
import os
import pathlib
import platform
import subprocess
import sys

here = pathlib.Path(__file__).parent
names = sorted(p.stem for p in here.glob("*.py") if p.stem != "run")


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.processor())
    return f"{model}, {os.cpu_count()} cores"


def main(wanted):
    unknown = [n for n in wanted if n not in names]
    if unknown:
        sys.exit(f"bench: no benchmark '{unknown[0]}'; there are: {', '.join(names)}")
    for name in wanted or names:
        print(f"== {name} on {machine()}", flush=True)
        subprocess.run([sys.executable, here / f"{name}.py", here.parent / "build" / "bench" / name], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
