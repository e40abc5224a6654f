"""Runs the generators of test data: make_test_data.py OUT [NAME...].

Every tests/FOLDER/make_NAME.py is called with the folder OUT/FOLDER_NAME (with what it wrote there last time), two at a time. It is skipped when
nothing changed since: the Python and text files of its folder, the pinned packages.
"""

import concurrent.futures
import hashlib
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    out, only = pathlib.Path(sys.argv[1]), sys.argv[2:]
    scripts = {name_of(script): script for script in sorted((ROOT / "tests").rglob("make_*.py"))}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda name: make(name, scripts[name], out), only or scripts))
    sys.exit(0 if all(results) else 1)


def name_of(script):
    return "_".join(script.relative_to(ROOT / "tests").with_name(script.stem.removeprefix("make_")).parts)


def make(name, script, out):
    folder, stamp = out / name, out / f"{name}.stamp"
    key = fingerprint(script)
    if stamp.exists() and stamp.read_text() == key:
        return True
    folder.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    start = time.monotonic()
    done = subprocess.run([sys.executable, str(script), str(folder)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    sys.stderr.write(done.stdout)
    print(f"{name}: {'made' if done.returncode == 0 else 'FAILED'} in {time.monotonic() - start:.0f} s", file=sys.stderr)
    if done.returncode == 0:
        stamp.write_text(key)
    return done.returncode == 0


def fingerprint(script):
    together = hashlib.sha256()
    for path in (*sorted(script.parent.rglob("*.py")), *sorted(script.parent.rglob("*.txt")), *sorted((ROOT / "tools").glob("requirements*.txt"))):
        together.update(path.read_bytes())
    return together.hexdigest()


if __name__ == "__main__":
    main()
