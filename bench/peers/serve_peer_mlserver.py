"""MLServer's model of serve_peer.py, in a module of its own because MLServer imports it by name."""

from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse

predict = None


class Dense(MLModel):
    async def load(self):
        return True

    async def predict(self, payload):
        x = NumpyCodec.decode_input(payload.inputs[0])
        return InferenceResponse(model_name=self.name, outputs=[NumpyCodec.encode_output("y", predict(x))])
