"""A peer that serves Dense 32-64-10 over the Open Inference Protocol: serve_peer.py mlserver|pytriton FOLDER HTTP_PORT GRPC_PORT, until it is killed.

FOLDER has weights.npz. The function is NumPy's on a whole batch, a few microseconds, so that what is measured is the server. Each has batching on, as its documentation advises.
"""

import pathlib
import sys

import numpy as np


def load(folder):
    with np.load(folder / "weights.npz") as arrays:
        a, b, c, d = (arrays[f"arr_{i}"] for i in range(4))

    def predict(x):
        scores = np.maximum(x @ a + b, 0) @ c + d
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return scores / scores.sum(axis=-1, keepdims=True)

    return predict


def serve_pytriton(folder, http, grpc):
    from pytriton.decorators import batch
    from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
    from pytriton.triton import Triton, TritonConfig

    predict = load(folder)

    @batch
    def infer(x):
        return {"y": predict(x)}

    with Triton(config=TritonConfig(http_port=http, grpc_port=grpc, metrics_port=grpc + 1, log_verbose=0)) as triton:
        triton.bind(
            model_name="dense",
            infer_func=infer,
            inputs=[Tensor(name="x", dtype=np.float32, shape=(32,))],
            outputs=[Tensor(name="y", dtype=np.float32, shape=(10,))],
            config=ModelConfig(max_batch_size=64, batcher=DynamicBatcher(max_queue_delay_microseconds=0)),
        )
        triton.serve()


def serve_mlserver(folder, http, grpc):
    import asyncio

    from mlserver import MLServer
    from mlserver.settings import ModelSettings, Settings

    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    import serve_peer_mlserver

    serve_peer_mlserver.predict = load(folder)
    settings = Settings(http_port=http, grpc_port=grpc, metrics_endpoint=None, parallel_workers=0, host="127.0.0.1", debug=False)
    model = ModelSettings(name="dense", implementation=serve_peer_mlserver.Dense, max_batch_size=64, max_batch_time=0.0005)

    async def run():
        server = MLServer(settings)
        await server.start(models_settings=[model])

    asyncio.run(run())


if __name__ == "__main__":
    kind, folder, http, grpc = sys.argv[1:]
    {"mlserver": serve_mlserver, "pytriton": serve_pytriton}[kind](pathlib.Path(folder), int(http), int(grpc))
