"""Runs one engine on one model: engines.py ENGINE FOLDER THREADS.

FOLDER is one that models.py made. The answer is compared with Keras's first; prints {} or {"error"}. Then, for each line of stdin, a number of seconds,
the same sample is predicted over and over for that long; prints {"p50_us", "p99_us", "cpu_us" (of a run, all threads), "runs"}.
"""

import json
import os
import pathlib
import sys
import time

import numpy as np

WARM_UP = 0.2  # part of the time


def keras_model(folder, threads):
    os.environ |= {"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    import keras
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    return keras.saving.load_model(folder / "model.keras", compile=False)


def keras_predict(folder, x, threads):
    model = keras_model(folder, threads)
    return lambda: model.predict(x, verbose=0), np.asarray


def keras_call(folder, x, threads):
    model = keras_model(folder, threads)
    return lambda: model(x, training=False), np.asarray


def keras_loop(folder, x, threads):
    """Every member's own predict, then the mean: how it is usually done."""
    keras_model(folder, threads)
    import keras

    members = [keras.saving.load_model(file, compile=False) for file in sorted((folder / "members").glob("*.keras"))]
    return lambda: np.mean([member.predict(x, batch_size=len(x), verbose=0) for member in members], axis=0), np.asarray


def jax_vmap(folder, x, threads):
    """Members of one structure with their weights stacked, all in one jitted function."""
    os.environ |= {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    import jax
    import jax.numpy as jnp
    import keras

    groups = {}
    for file in sorted((folder / "members").glob("*.keras")):
        member = keras.saving.load_model(file, compile=False)
        groups.setdefault(str([(type(layer).__name__, *(w.shape for w in layer.weights)) for layer in member.layers]), []).append(member)
    stacked = [[jnp.stack([jnp.asarray(w.value) for w in same]) for same in zip(*(m.trainable_variables for m in group))] for group in groups.values()]

    def mean(weights, sample):
        results = []
        for own, group in zip(weights, groups.values()):
            model = group[0]
            rest = [jnp.asarray(v.value) for v in model.non_trainable_variables]  # seeds
            results.append(jax.vmap(lambda one, model=model, rest=rest: model.stateless_call(one, rest, sample)[0])(own))
        return jnp.mean(jnp.concatenate(results), axis=0)

    function, sample = jax.jit(mean), jnp.asarray(x)
    return lambda: function(stacked, sample).block_until_ready(), np.asarray


def jax_jit(folder, x, threads):
    """The model in one jitted function, its weights on the device; arrays of the host go in and out."""
    os.environ |= {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    return jitted(folder, x)


def jax_plugin(folder, x, threads):
    """The same by the PJRT plugin that ours uses, BENCH_PLUGIN, and not by the XLA inside of jaxlib."""
    os.environ |= {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu,bench_plugin"}  # the first makes the model
    from jax._src import xla_bridge

    xla_bridge.register_plugin("bench_plugin", library_path=os.environ["BENCH_PLUGIN"])
    return jitted(folder, x, "bench_plugin")


def jitted(folder, x, platform="cpu"):
    import jax
    import jax.numpy as jnp
    import keras

    model = keras.saving.load_model(folder / "model.keras", compile=False)
    device = jax.devices(platform)[0]
    weights, rest = ([jax.device_put(jnp.asarray(v.value), device) for v in group] for group in (model.trainable_variables, model.non_trainable_variables))
    function = jax.jit(lambda weights, rest, sample: model.stateless_call(weights, rest, sample)[0])
    return lambda: np.asarray(function(weights, rest, x)), np.asarray


def tf_function(folder, x, threads, jit_compile=False):
    model = keras_model(folder, threads)
    import tensorflow as tf

    function = tf.function(lambda sample: model(sample, training=False), jit_compile=jit_compile)
    sample = tf.constant(x)
    return lambda: function(sample), np.asarray


def tf_xla(folder, x, threads):
    return tf_function(folder, x, threads, jit_compile=True)


def onnx_runtime(folder, x, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    output = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros_like(np.load(folder / "y.npy")))
    binding.bind_cpu_input(session.get_inputs()[0].name, x)
    binding.bind_ortvalue_output(session.get_outputs()[0].name, output)
    return lambda: session.run_with_iobinding(binding), lambda _: output.numpy()


def openvino(folder, x, threads):
    import openvino

    core = openvino.Core()
    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
    request = core.compile_model(core.read_model(folder / "model.onnx"), "CPU", settings).create_infer_request()
    request.set_input_tensor(openvino.Tensor(x, shared_memory=True))
    return request.infer, lambda _: request.get_output_tensor().data


def litert(folder, x, threads):
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(folder / "model.tflite"), num_threads=threads)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    output = interpreter.get_output_details()[0]["index"]
    return interpreter.invoke, lambda _: interpreter.get_tensor(output)


ENGINES = {
    "keras.predict": keras_predict,
    "keras.predict loop": keras_loop,
    "JAX vmap": jax_vmap,
    "jax.jit": jax_jit,
    "jax.jit, same plugin": jax_plugin,
    "keras call": keras_call,
    "tf.function": tf_function,
    "tf.function XLA": tf_xla,
    "ONNX Runtime": onnx_runtime,
    "OpenVINO": openvino,
    "LiteRT": litert,
}


def main():
    engine, folder, threads = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    x, wanted = np.load(folder / "x.npy"), np.load(folder / "y.npy")
    run, fetch = ENGINES[engine](folder, x, threads)
    difference = differs(fetch(run()), wanted)
    yield {"error": difference} if difference else {}
    for line in sys.stdin:
        repeat(run, float(line) * WARM_UP)
        before = time.process_time()
        times = repeat(run, float(line))
        computed = (time.process_time() - before) / len(times)
        yield {"p50_us": float(np.percentile(times, 50)) / 1e3, "p99_us": float(np.percentile(times, 99)) / 1e3, "cpu_us": computed * 1e6, "runs": len(times)}


def differs(got, wanted):
    """What is wrong with an answer, or nothing. Engines may sum in another order, through a hundred layers."""
    if got.shape != wanted.shape:
        return f"shape {got.shape}, Keras has {wanted.shape}"
    worst = float(np.max(np.abs(got - wanted) - 1e-3 * np.abs(wanted)))
    limit = 1e-4 * max(1e-3, float(np.abs(wanted).max()))
    return "" if worst <= limit else f"differs from Keras by {worst:.2g}"


def repeat(run, seconds):
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter_ns()
        run()
        times.append(time.perf_counter_ns() - start)
    return times


if __name__ == "__main__":
    try:
        for result in main():
            print(json.dumps(result), flush=True)
    except Exception as problem:  # an engine that cannot run a model is a row of the table, not the end of the benchmark
        print(json.dumps({"error": f"{type(problem).__name__}: {problem}".splitlines()[0][:200]}))
