"""Writes one case: fills in weights and inputs, saves the model, runs it in Keras, stores what came out.

Imports Keras only inside functions: the backend is chosen by the process that imports it.
"""

import json
import zlib

import numpy as np

from harness import is_builder

# (atol, rtol) by the lowest precision that a layer of the model computes in.
TOLERANCES = {"float32": (1e-5, 1e-4), "float16": (5e-3, 5e-3), "bfloat16": (4e-2, 4e-2)}


def make_initializers_cheap():
    """Under JAX each initializer and shape costs a compilation (about a second a model), for values that are replaced anyway."""
    import jax
    import keras
    from keras.src.initializers import random_initializers

    def cheap(self, shape, dtype=None):
        values = np.random.default_rng(0).standard_normal(shape) * 0.05
        return jax.device_put(values.astype(keras.backend.standardize_dtype(dtype)))

    def constant(value):
        return lambda self, shape, dtype=None, **_: jax.device_put(np.full(shape, value, keras.backend.standardize_dtype(dtype)))

    for kind in vars(random_initializers).values():
        if isinstance(kind, type) and issubclass(kind, random_initializers.RandomInitializer):
            kind.__call__ = cheap
    keras.initializers.Zeros.__call__ = constant(0)
    keras.initializers.Ones.__call__ = constant(1)


def write_case(case, folder):
    folder.mkdir(parents=True)
    model = case.model() if is_builder(case.model) else case.model
    random = np.random.default_rng(zlib.crc32(case.name.encode()))
    facts = {"formats": list(case.formats), "oracle": case.oracle}
    if case.refused is not None:
        facts["refused"] = case.refused
    else:
        if not model.built:
            model(as_list(case.inputs)[0])
        if not case.keep_weights:
            fill_weights(model, random)
        inputs = random_inputs(case, model, random) if case.inputs is None else as_list(case.inputs)
        inputs = [np.asarray(array) for array in inputs]
        outputs = run(case, model, inputs)
        atol, rtol = TOLERANCES[lowest_precision(model)]
        atol = atol if case.atol is None else case.atol
        if case.scaled:
            atol *= max(1, *(float(np.abs(array).max()) for array in outputs))
        facts |= {
            "input_names": input_names(model),
            "output_names": output_names(model),
            "output_dtypes": [str(array.dtype) for array in outputs],
            "atol": atol,
            "rtol": rtol if case.rtol is None else case.rtol,
            "single": case.single and model.inputs[0].shape[0] is None,
        }
        arrays = {f"in_{i}": storable(a) for i, a in enumerate(inputs)} | {f"out_{i}": storable(a) for i, a in enumerate(outputs)}
        np.savez(folder / "data.npz", **arrays)
    for suffix in case.formats:
        model.save(folder / f"model.{suffix}")
    (folder / "case.json").write_text(json.dumps(facts, indent=1) + "\n")


def as_list(inputs):
    return list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]


def fill_weights(model, random):
    """Values that every sign, scale and transposition shows in: nothing zero, nothing one, variances positive."""
    for variable in model.weights:
        shape, name = tuple(variable.shape), variable.name.split("/")[-1]
        if "float" not in str(variable.dtype):
            continue
        if "variance" in name:
            values = random.uniform(0.5, 1.5, shape)
        elif "gamma" in name or "scale" in name:
            values = 1 + 0.3 * random.standard_normal(shape)
        else:
            fan_in = np.prod(shape[:-1]) if len(shape) > 1 else 4
            values = random.standard_normal(shape) * np.clip(1 / np.sqrt(fan_in), 0.05, 0.7)
        variable.assign(np.asarray(values, dtype="float32"))
    for layer in model._flatten_layers() if hasattr(model, "_flatten_layers") else ():
        if hasattr(layer, "finalize_state"):  # Normalization derives what it computes with from its weights
            layer.finalize_state()


def random_inputs(case, model, random):
    arrays = []
    for tensor in model.inputs:
        shape = list(tensor.shape)
        shape[0] = case.batch if shape[0] is None else shape[0]
        shape = [case.length if extent is None else extent for extent in shape]
        dtype = getattr(tensor.dtype, "name", tensor.dtype)
        if dtype == "bool":
            arrays.append(random.random(shape) < 0.5)
        elif "int" in dtype:
            arrays.append(random.integers(0, 4, shape).astype(dtype))
        else:
            arrays.append(random.standard_normal(shape).astype("float32"))
    return arrays


def run(case, model, inputs):
    if case.oracle == "tf_keras":
        import tensorflow

        return [np.asarray(t) for t in tensorflow.nest.flatten(model(inputs if len(inputs) > 1 else inputs[0], training=False))]
    import keras

    structure = getattr(model, "_inputs_struct", None)
    packed = inputs[0] if structure is None else keras.tree.pack_sequence_as(structure, inputs)
    outputs = model(packed, training=False) if case.eager else model.predict_on_batch(packed)
    return [np.asarray(keras.ops.convert_to_numpy(t)) for t in keras.tree.flatten(outputs)]


def lowest_precision(model):
    layers = model._flatten_layers() if hasattr(model, "_flatten_layers") else ()
    used = {getattr(layer, "compute_dtype", None) for layer in layers}
    return next((dtype for dtype in ("bfloat16", "float16") if dtype in used), "float32")


def input_names(model):
    return [tensor.name.split(":")[0] for tensor in model.inputs]


def output_names(model):
    functional = getattr(model, "_functional", None) or model
    return list(functional.output_names)


def storable(array):
    """NumPy files know no bfloat16; every one of its values is a float32, and case.json has the real dtype."""
    return array.astype("float32") if array.dtype.name == "bfloat16" else array
