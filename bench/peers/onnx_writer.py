"""Keras models as ONNX graphs written by hand, for what the converters do badly."""


class OnnxWriter:
    """Sequential models side by side, then their mean. Images are turned to ONNX's order once; the converters unroll Keras 3's LSTM, which would be no fair peer."""

    def __init__(self, members, shape):
        from onnx import helper

        self.nodes, self.weights, self.helper, self.shared = [], {}, helper, {}
        self.shape = shape
        results = [self.member(model) for model in members]
        self.add("Mean" if len(results) > 1 else "Identity", results, output="y")
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
