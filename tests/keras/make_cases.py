"""Makes the Keras comparison cases: make_cases.py OUT [--only REGEX] [--jobs N] [--force].

Every cases/FAMILY.py has a function cases() that yields them. OUT/FAMILY/NAME/ gets the saved models, data.npz (in_0 ..., out_0 ...) and case.json.
A family is made again when its file, the files beside this one or the pinned packages change. A case that Keras itself fails on gets a case.json with
the error, so that its test fails and the others go on.
"""

import argparse
import contextlib
import hashlib
import importlib.util
import json
import multiprocessing
import os
import pathlib
import re
import shutil
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from harness import FORMATS, ORACLES, Case  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", default="", metavar="REGEX", help="only cases whose FAMILY/NAME has a match; what else is there stays")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--force", action="store_true", help="also what is up to date")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()

    sources = {path.stem: path for path in sorted((HERE / "cases").glob("*.py"))}
    for stale in [folder for folder in args.out.iterdir() if folder.name not in sources]:
        shutil.rmtree(stale)
    wanted = {name: stamp(path) for name, path in sources.items()}
    if not args.only and not args.force:
        wanted = {name: key for name, key in wanted.items() if read(args.out / name / "stamp") != key}
    if not wanted:
        return

    if not args.only:
        for name in wanted:
            shutil.rmtree(args.out / name, ignore_errors=True)
    done, failed = 0, set()
    families = {oracle: set() for oracle in ORACLES} | {ORACLES[0]: set(wanted)}
    for oracle in ORACLES:  # a process has one backend; the first oracle's processes find out which families need the others
        if not families[oracle]:
            continue
        tasks = [(oracle, name, part, args.jobs, str(args.out), args.only) for name in sorted(families[oracle]) for part in range(args.jobs)]
        os.environ.update(environment(oracle))
        with multiprocessing.get_context("spawn").Pool(args.jobs, initializer=prepare, initargs=(oracle,)) as pool:
            for name, written, failures, others in pool.imap_unordered(make_part, tasks):
                done += written
                failed.update(failures)
                for other in others:
                    families[other].add(name)
    if not args.only:
        for name in wanted:
            if not any(f.startswith(name + "/") for f in failed):
                (args.out / name / "stamp").write_text(wanted[name])
    print(f"make_cases: {done} cases of {len(wanted)} families in {time.monotonic() - start:.0f} s")
    for name in sorted(failed):
        print(f"make_cases: Keras failed on {name}; its test will fail and say why", file=sys.stderr)


def stamp(source):
    together = hashlib.sha256()
    for path in (source, *sorted(HERE.glob("*.py")), *sorted((HERE / "../../tools").glob("requirements*.txt"))):
        together.update(path.read_bytes())
    return together.hexdigest()


def read(path):
    return path.read_text() if path.exists() else None


def environment(oracle):
    # XLA's optimisations cost several times the run itself on models this small.
    return {
        "KERAS_BACKEND": "jax" if oracle == "jax" else "tensorflow",
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true --xla_cpu_parallel_codegen_split_count=1 --xla_cpu_use_fusion_emitters=false",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TF_USE_LEGACY_KERAS": "1" if oracle == "tf_keras" else "0",
        "CUDA_VISIBLE_DEVICES": "-1",
    }


def prepare(oracle):
    import logging
    import warnings

    import absl.logging

    absl.logging.set_verbosity(absl.logging.ERROR)
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    if oracle == "jax":
        from oracle import make_initializers_cheap

        make_initializers_cheap()


def make_part(task):
    """Every `parts`-th case of a family, from `part` on. Returns its name, how many were written, which failed, which oracles it also needs."""
    import gc

    oracle, family, part, parts, out, only = task
    gc.collect()
    gc.freeze()  # Keras collects whenever a variable is deleted, which gets slow when every module and compiled program is looked at
    written, failed, others, seen = 0, [], set(), set()
    folder = pathlib.Path(out) / family
    try:
        cases = enumerate(load(family).cases())
        while (item := next_case(cases, oracle)) is not None:
            index, case = item
            label = f"{family}/{case.name}"
            if case.name in seen:
                raise ValueError(f"two cases of the family '{family}' have the name '{case.name}'")
            seen.add(case.name)
            if index % parts != part or (only and not re.search(only, label)):
                continue
            if case.oracle != oracle:
                others.add(case.oracle)
                continue
            written += 1
            if not write(case, folder / case.name):
                failed.append(label)
    except Exception:
        fail(folder / "_cases", traceback.format_exc())
        failed.append(f"{family}/_cases")
    return family, written, failed, others if oracle == ORACLES[0] else set()


def load(family):
    spec = importlib.util.spec_from_file_location(f"cases_{family}", HERE / "cases" / f"{family}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write(case, folder):
    from oracle import write_case

    try:
        check(case)
        partial = folder.with_name("." + folder.name)
        for old in (folder, partial):
            shutil.rmtree(old, ignore_errors=True)
        write_case(case, partial)
        partial.rename(folder)
        return True
    except Exception:
        fail(folder, traceback.format_exc())
        return False


def check(case: Case):
    if not re.fullmatch("[a-z0-9_]+", case.name):
        raise ValueError(f"a case's name is lower_snake; got {case.name!r}")
    if not case.formats or not set(case.formats) <= set(FORMATS):
        raise ValueError(f"formats are some of {FORMATS}; got {case.formats!r}")


def fail(folder, error):
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    (folder / "case.json").write_text(json.dumps({"error": error}) + "\n")
    print(error, file=sys.stderr)


def next_case(cases, oracle):
    """Names start again from dense, dense_1, ... with each case, so that it does not depend on those before it."""
    if oracle == "tf_keras":
        import tf_keras

        tf_keras.backend.clear_session()
    else:
        import keras

        keras.utils.clear_session(free_memory=False)
    return next(cases, None)


if __name__ == "__main__":
    main()
