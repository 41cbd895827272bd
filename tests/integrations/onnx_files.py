"""Small networks in ONNX's format, written node by node."""

import numpy as np


def write(path, nodes, inputs, outputs, constants=None):
    """Write a network of these nodes: names of inputs and outputs with their types and shapes."""
    import onnx

    make = onnx.helper.make_tensor_value_info
    held = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(kind, given, made, **options) for kind, given, made, options in nodes],
        "network",
        [make(name, *rest) for name, rest in inputs.items()],
        [make(name, *rest) for name, rest in outputs.items()],
        held,
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return str(path)
