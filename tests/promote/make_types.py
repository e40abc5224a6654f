"""Asks Keras what it promotes dtypes to: make_types.py FOLDER. Writes types.txt, a line "left right result" each; "int" and "float" are Python's own."""

import itertools
import os
import pathlib
import sys

os.environ["KERAS_BACKEND"] = "tensorflow"  # the backend that keeps 64 bits
os.environ["CUDA_VISIBLE_DEVICES"] = ""

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64"]
PYTHON = {"int": int, "float": float}


def main():
    from keras.src import backend

    lines = []
    for count in (1, 2, 3):
        for names in itertools.combinations_with_replacement([*DTYPES, *PYTHON], count):
            result = backend.result_type(*[PYTHON.get(name, name) for name in names])
            lines.append(" ".join((*names, result)))
    (pathlib.Path(sys.argv[1]) / "types.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
