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
            elif kind in ("LSTM", "GRU", "Bidirectional"):
                value = self.recurrent(layer, value)
            else:
                raise ValueError(kind)
        return value

    def activate(self, layer, value):
        name = layer.activation.__name__
        return value if name == "linear" else self.add({"relu": "Relu", "softmax": "Softmax"}[name], [value])

    def recurrent(self, layer, value):
        import numpy as np

        cells = [layer.forward_layer, layer.backward_layer] if type(layer).__name__ == "Bidirectional" else [layer]
        kind, units, directions = type(cells[0]).__name__, cells[0].units, len(cells)
        # Keras: input, forget, cell, output and update, reset, hidden; ONNX: input, output, forget, cell and the same.
        order = {"LSTM": (0, 3, 1, 2), "GRU": (0, 1, 2)}[kind]

        def gates(matrix):
            parts = np.split(matrix, len(order), axis=-1)
            return np.concatenate([parts[i] for i in order], axis=-1)

        def biases(bias):
            both = bias if bias.ndim == 2 else np.stack([bias, np.zeros_like(bias)])
            return np.concatenate([gates(both[0]), gates(both[1])])

        kernels, recurrents, bias = zip(*(cell.get_weights() for cell in cells))
        parts = [self.constant(np.stack(part)) for part in ([gates(k).T for k in kernels], [gates(r).T for r in recurrents], [biases(b) for b in bias])]
        series = self.once("Transpose", perm=[1, 0, 2]) if value == "x" else self.add("Transpose", [value], perm=[1, 0, 2])
        every, last = f"every_{len(self.nodes)}", f"last_{len(self.nodes)}"
        options = {"direction": "bidirectional"} if directions == 2 else {}
        if kind == "GRU":
            options["linear_before_reset"] = 1
        self.add(kind, [series, *parts], output=[every, last], hidden_size=units, **options)
        if directions == 1 and not layer.return_sequences:
            return self.add("Squeeze", [last, self.constant(np.array([0]))])
        shape = self.constant(np.array([0, -1, directions * units]) if layer.return_sequences else np.array([-1, directions * units]))
        # every: [time, direction, sample, unit]; last: [direction, sample, unit]
        turned = self.add("Transpose", [every], perm=[2, 0, 1, 3]) if layer.return_sequences else self.add("Transpose", [last], perm=[1, 0, 2])
        return self.add("Reshape", [turned, shape])

    def save(self, file):
        import onnx
        from onnx import TensorProto, helper, numpy_helper

        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)]
        outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, self.result)]
        initializers = [numpy_helper.from_array(value, name) for name, value in self.weights.items()]
        graph = helper.make_graph(self.nodes, "ensemble", inputs, outputs, initializers)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), str(file))


def replace_erfc(graph):
    """What the converter makes of gelu has an operator that ONNX lacks: erfc(x) is 1 - erf(x)."""
    import numpy as np
    from onnx import helper, numpy_helper

    nodes = []
    for node in graph.node:
        if node.op_type != "Erfc":
            nodes.append(node)
            continue
        nodes.append(helper.make_node("Erf", node.input, [f"{node.output[0]}_erf"]))
        nodes.append(helper.make_node("Sub", ["erfc_one", f"{node.output[0]}_erf"], node.output))
    if len(nodes) != len(graph.node):
        graph.initializer.append(numpy_helper.from_array(np.float32(1), "erfc_one"))
        del graph.node[:]
        graph.node.extend(nodes)
