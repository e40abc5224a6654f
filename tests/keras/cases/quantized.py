"""Models after model.quantize(): int8 and int4 kernels, inputs quantized on the fly or not."""

import tempfile

import keras
import numpy as np
from harness import case
from keras import layers
from keras.quantizers import AbsMaxQuantizer, Int4QuantizationConfig, Int8QuantizationConfig

TOKENS = np.array([[1, 4, 2, 0, 0, 0], [3, 0, 6, 5, 1, 2], [0, 6, 6, 1, 2, 3]], "int32")
CONFIGS = {
    "int8": lambda: Int8QuantizationConfig(),
    "int8_weights_only": lambda: Int8QuantizationConfig(activation_quantizer=None),
    "int8_range": lambda: Int8QuantizationConfig(activation_quantizer=AbsMaxQuantizer(value_range=(-100, 100), epsilon=1e-3)),
    "int4": lambda: Int4QuantizationConfig(),
    "int4_blocks": lambda: Int4QuantizationConfig(block_size=2),
    "int4_channels": lambda: Int4QuantizationConfig(block_size=-1),
    "int4_inputs": lambda: Int4QuantizationConfig(block_size=-1, activation_quantizer=AbsMaxQuantizer()),
}


def cases():
    for name, config in CONFIGS.items():
        # Quantization happens once, on random weights: nothing may replace them afterwards.
        options = {"keep_weights": True}
        yield case(f"dense_{name}", quantized(dense, config), **options)
        yield case(f"dense_series_{name}", quantized(dense_series, config), **options)
        yield case(f"einsum_dense_{name}", quantized(einsum_dense, config), **options)
        yield case(f"embedding_{name}", quantized(embedding, config), TOKENS, **options)
        for tie in (True, False):
            model = quantized(lambda tie=tie: reversible(tie), config)
            yield case(f"reversible_{'tied' if tie else 'untied'}_{name}", model, TOKENS, formats=("keras",), **options)
    yield case("int8_from_bfloat16", quantized(lambda: dense("mixed_bfloat16"), CONFIGS["int8"]), keep_weights=True)
    yield case("int8_zero_input", quantized(dense, CONFIGS["int8"]), np.zeros((2, 6), "float32"), keep_weights=True)
    for name in ("int8", "int4"):
        for part in (dense, einsum_series, embedding):
            inputs = TOKENS if part is embedding else None
            yield case(f"{part.__name__}_{name}_lora", read_back(with_lora(part, CONFIGS[name])), inputs, formats=("keras",), keep_weights=True)
    yield case("int8_lora_in_h5", with_lora(dense, CONFIGS["int8"]), formats=("h5",), keep_weights=True, refused="LoRA on a quantized layer in .h5")
    yield case("float8", quantized(dense, lambda: keras.quantizers.Float8QuantizationConfig()), keep_weights=True, refused="float8")


def quantized(build, config):
    def model():
        made = build()
        random = np.random.default_rng(1)
        for variable in made.weights:
            variable.assign(random.standard_normal(variable.shape) * 0.5)
        made.quantize(config().mode, config=config())
        return made

    return model


def with_lora(build, config):
    def model():
        made = quantized(build, config)()
        random = np.random.default_rng(2)
        for one in made.layers:
            if hasattr(one, "enable_lora"):
                one.enable_lora(2)
                for variable in one.trainable_variables:
                    if "lora" in variable.name:
                        variable.assign(random.standard_normal(variable.shape) * 0.3)
        return made

    return model


def read_back(build):
    """The factors are merged into the kernels when a file is written, which rounds them."""

    def model():
        with tempfile.TemporaryDirectory() as folder:
            build().save(f"{folder}/model.keras")
            return keras.saving.load_model(f"{folder}/model.keras")

    return model


def dense(dtype="float32"):
    stack = [layers.Dense(5, activation="relu", dtype=dtype), layers.Dense(4, use_bias=False, dtype=dtype), layers.Dense(3, dtype="float32")]
    return keras.Sequential([keras.Input((6,)), *stack])


def dense_series():
    return keras.Sequential([keras.Input((4, 6)), layers.Dense(5), layers.LSTM(3), layers.Dense(2)])


def einsum_dense():
    x = keras.Input((4, 6))
    y = layers.EinsumDense("abc,cde->abde", (4, 2, 3), bias_axes="de")(x)
    z = layers.EinsumDense("abcd,cde->abe", (4, 5), bias_axes="e", activation="tanh")(y)
    return keras.Model(x, [y, z, layers.EinsumDense("abc,bd->adc", (3, 6))(x)])


def einsum_series():
    return keras.Sequential([keras.Input((4, 6)), layers.EinsumDense("abc,cd->abd", (None, 5), bias_axes="d", activation="relu")])


def embedding():
    x = keras.Input((6,), dtype="int32")
    return keras.Model(x, layers.Dense(2)(layers.Embedding(7, 5, mask_zero=True)(x)))


def reversible(tie):
    x = keras.Input((6,), dtype="int32")
    shared = layers.ReversibleEmbedding(7, 4, tie_weights=tie, logit_soft_cap=None if tie else 2.0)
    y = shared(x)
    return keras.Model(x, [y, shared(y * 1.5, reverse=True)])
