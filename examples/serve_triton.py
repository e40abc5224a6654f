"""A model behind `tutti serve` asked by tritonclient (pip install tritonclient[all]), over HTTP or gRPC: random samples of whatever shape it takes.

    tutti serve model.keras --http :8000 --grpc :8001 &
    python examples/serve_triton.py localhost:8000
    python examples/serve_triton.py localhost:8001 grpc
"""

import importlib
import sys

import numpy as np


def main(address, protocol="http", samples=3):
    triton = importlib.import_module(f"tritonclient.{protocol}")
    describe = {} if protocol == "http" else {"as_json": True}
    with triton.InferenceServerClient(address) as client:
        for model in {one["name"] for one in listed(client.get_model_repository_index(**describe))}:
            about = client.get_model_metadata(model, **describe)
            given = []
            for tensor in about["inputs"]:
                shape = [samples, *(1 if int(extent) < 0 else int(extent) for extent in tensor["shape"][1:])]
                values = np.random.default_rng(0).random(shape).astype(triton.triton_to_np_dtype(tensor["datatype"]) or np.float32)
                given.append(triton.InferInput(tensor["name"], shape, tensor["datatype"]))
                given[-1].set_data_from_numpy(values)
            answer = client.infer(model, given)
            for tensor in about["outputs"]:
                print(f"{model}: {tensor['name']} {answer.as_numpy(tensor['name']).shape}")


def listed(index):
    """gRPC wraps the list."""
    return index["models"] if isinstance(index, dict) else index


if __name__ == "__main__":
    main(*sys.argv[1:3])
