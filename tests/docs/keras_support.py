"""Checks docs/keras_support.md: keras_support.py PROGRAM. It is what the program prints, and it has every layer and every argument of keras.layers."""

import inspect
import os
import pathlib
import re
import subprocess
import sys

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs/keras_support.md"
# Arguments that say how a layer is made or trained, not what it computes; they are in no config, or go without saying.
SILENT = {"self", "name", "dtype", "trainable", "seed", "kwargs", "args", "weights", "autocast", "activity_regularizer", "input_shape", "input_tensor", "batch_size"}


def main():
    printed = subprocess.run([sys.argv[1]], check=True, capture_output=True, text=True).stdout
    problems = []
    if printed != DOCUMENT.read_text():
        problems.append(f"docs/keras_support.md is not what {sys.argv[1]} prints: write it again")
    rows = {match[1]: match[0] for match in re.finditer(r"^\| (\w+) \|.*$", printed.partition("# Operations")[0], re.MULTILINE)}
    problems += missing(rows)
    operations = set(re.findall(r"`(\w+)`(?: |$| is refused)", printed.partition("# Operations")[2], re.MULTILINE))
    problems += wrong_operations(operations)
    print("\n".join(problems) if problems else f"{len(rows)} layers and {len(operations)} operations are in the table")
    sys.exit(1 if problems else 0)


def missing(rows):
    import keras
    from keras.src.api_export import get_name_from_symbol

    public = [value for value in vars(keras.layers).values() if inspect.isclass(value) and issubclass(value, keras.layers.Layer)]
    layers = {get_name_from_symbol(layer).rpartition(".")[2]: layer for layer in public}  # as files name them: aliases become one
    if len(layers) < 100:
        yield f"keras.layers has only {len(layers)} layers: the list is broken"
    for name, layer in sorted(layers.items()):
        if name not in rows:
            yield f"{name} of keras.layers is not in the table"
        elif "| refused |" not in rows[name] and "| same: all options |" not in rows[name]:
            known = set(re.findall(r"\w+", rows[name]))
            for argument in inspect.signature(layer.__init__).parameters:
                if argument not in known | SILENT and not argument.endswith(("_initializer", "_regularizer", "_constraint")):
                    yield f"{name}: the argument '{argument}' is neither same nor refused"


def wrong_operations(listed):
    import keras
    from keras.src.ops.operation import Operation

    def below(kind):
        for child in kind.__subclasses__():
            yield child
            yield from below(child)

    known = {kind.__name__ for kind in below(Operation) if not issubclass(kind, keras.layers.Layer)}
    if len(known) < 300:
        yield f"keras.ops has only {len(known)} operations: the list is broken"
    for name in sorted(known - listed):
        yield f"the operation {name} is not in the table"
    for name in sorted(listed - known):
        yield f"the table has an operation {name}, which Keras has not"


if __name__ == "__main__":
    main()
