"""Makes the ensembles of a benchmark in every engine's format: ensembles.py FOLDER NAME.

FOLDER/NAME/ gets members/*.keras, model.toml (ours), model.keras (Keras's Average of them), model.onnx (the same, written by hand with ONNX's own operators), x.npy
and y.npy, the mean of the members' answers.
"""

import os
import pathlib
import sys

os.environ |= {"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}


def dense_one(L):
    return [L.Dense(1)]


def mlp(L):
    return [L.Dense(64, activation="relu"), L.Dense(64, activation="relu"), L.Dense(1)]


def lstm(L):
    return [L.LSTM(150), L.Dense(20)]


def cnn(L):
    convolutions = [L.Conv2D(32, 3, activation="relu"), L.MaxPooling2D(), L.Conv2D(64, 3, activation="relu"), L.MaxPooling2D()]
    return [*convolutions, L.Flatten(), L.Dense(10, activation="softmax")]


def flat_mlp(*units):
    return lambda L: [L.Flatten(), *(L.Dense(n, activation="relu") for n in units), L.Dense(1)]


def flat_lstm(units):
    return lambda L: [L.LSTM(units), L.Dense(1)]


def flat_cnn(L):
    return [L.Conv1D(32, 3, activation="relu"), L.Conv1D(32, 3, activation="relu"), L.Flatten(), L.Dense(1)]


MIXED = [(4, flat_mlp(64)), (4, flat_mlp(128, 64)), (3, flat_mlp(256, 64, 32)), (3, flat_lstm(32)), (3, flat_lstm(64)), (3, flat_cnn)]
# name: batch, shape of a sample, members
ENSEMBLES = {
    "5 x Dense(1), 100x10x10": (100, (10, 10), [(5, dense_one)]),
    "32 x Dense 32-64-64-1, batch 1": (1, (32,), [(32, mlp)]),
    "32 x Dense 32-64-64-1, batch 256": (256, (32,), [(32, mlp)]),
    "10 x LSTM(150)+Dense(20), batch 32": (32, (20, 10), [(10, lstm)]),
    "8 x CNN 28x28, batch 16": (16, (28, 28, 1), [(8, cnn)]),
    "mixed: 3 MLPs, 2 LSTMs, 1 CNN; 20 members, batch 32": (32, (24, 8), MIXED),
}
NAMES = tuple(ENSEMBLES)


def batch(name):
    return ENSEMBLES[name][0]


def make(folder):
    import keras
    import numpy as np

    size, shape, kinds = ENSEMBLES[folder.name]
    random = np.random.default_rng(0)
    (folder / "members").mkdir(parents=True, exist_ok=True)
    members = []
    for count, layers in kinds:
        for _ in range(count):
            model = keras.Sequential([keras.Input(shape), *layers(keras.layers)], name=f"member_{len(members):02}")
            for weight in model.weights:
                weight.assign(weight + 0.05 * random.standard_normal(weight.shape))
            model.save(folder / "members" / f"{model.name}.keras")
            members.append(model)
    x = random.standard_normal((size, *shape)).astype("float32")
    np.save(folder / "x.npy", x)
    (folder / "model.toml").write_text('members = ["members"]\nreduce = "mean"\n')
    inputs = keras.Input(shape)
    keras.Model(inputs, keras.layers.Average()([member(inputs) for member in members])).save(folder / "model.keras")
    OnnxWriter(members, (size, *shape)).save(folder / "model.onnx")
    np.save(folder / "y.npy", np.mean([np.asarray(member(x, training=False)) for member in members], axis=0))


class OnnxWriter:
    """Sequential models side by side, then their mean. Images are turned to ONNX's order once; the converters unroll Keras 3's LSTM, which would be no fair peer."""

    def __init__(self, members, shape):
        from onnx import helper

        self.nodes, self.weights, self.helper, self.shared = [], {}, helper, {}
        self.shape = shape
        results = [self.member(model) for model in members]
        self.add("Mean", results, output="y")
        self.result = members[0].compute_output_shape(shape)

    def add(self, op, inputs, output=None, **attributes):
        output = output or f"value_{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(op, inputs, [output] if isinstance(output, str) else output, **attributes))
        return output

    def constant(self, value):
        import numpy as np

        name = f"weight_{len(self.weights)}"
        self.weights[name] = np.ascontiguousarray(value)
        return name

    def once(self, op, **attributes):
        """Of the input, for all members."""
        key = (op, str(attributes))
        if key not in self.shared:
            self.shared[key] = self.add(op, ["x"], **attributes)
        return self.shared[key]

    def member(self, model):
        import numpy as np

        value, channels_first = "x", None  # channels_first: the shape of what stands in ONNX's order
        for layer in model.layers:
            kind, weights = type(layer).__name__, layer.get_weights()
            if kind == "Dense":
                kernel = weights[0]
                if channels_first:  # flattened in the other order
                    kernel = kernel.reshape(*channels_first, -1)
                    kernel = np.moveaxis(kernel, -2, 0).reshape(weights[0].shape)
                    channels_first = None
                value = self.add("Add", [self.add("MatMul", [value, self.constant(kernel)]), self.constant(weights[1])])
                value = self.activate(layer, value)
            elif kind in ("Conv2D", "Conv1D"):
                rank = len(layer.kernel_size)
                if not channels_first:
                    value = self.once("Transpose", perm=[0, rank + 1, *range(1, rank + 1)])
                kernel = np.moveaxis(weights[0], (-1, -2), (0, 1))
                value = self.activate(layer, self.add("Conv", [value, self.constant(kernel), self.constant(weights[1])]))
                channels_first = layer.output.shape[1:]
            elif kind == "MaxPooling2D":
                value = self.add("MaxPool", [value], kernel_shape=[2, 2], strides=[2, 2])
                channels_first = layer.output.shape[1:]
            elif kind == "Flatten":
                value = self.once("Flatten") if value == "x" else self.add("Flatten", [value])
            elif kind == "LSTM":
                value = self.lstm(layer, weights)
            else:
                raise ValueError(kind)
        return value

    def activate(self, layer, value):
        name = layer.activation.__name__
        return value if name == "linear" else self.add({"relu": "Relu", "softmax": "Softmax"}[name], [value])

    def lstm(self, layer, weights):
        import numpy as np

        def gates(matrix):  # Keras: input, forget, cell, output; ONNX: input, output, forget, cell
            i, f, c, o = np.split(matrix, 4, axis=-1)
            return np.concatenate([i, o, f, c], axis=-1)

        kernel, recurrent, bias = (gates(w) for w in weights)
        series = self.once("Transpose", perm=[1, 0, 2])
        parts = [self.constant(part) for part in (kernel.T[None], recurrent.T[None], np.concatenate([bias, np.zeros_like(bias)])[None])]
        last = f"last_{len(self.nodes)}"
        self.add("LSTM", [series, *parts], output=["", last], hidden_size=layer.units)
        return self.add("Squeeze", [last, self.constant(np.array([0]))])

    def save(self, file):
        import onnx
        from onnx import TensorProto, helper, numpy_helper

        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)]
        outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, self.result)]
        initializers = [numpy_helper.from_array(value, name) for name, value in self.weights.items()]
        graph = helper.make_graph(self.nodes, "ensemble", inputs, outputs, initializers)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), str(file))


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1]) / sys.argv[2])
