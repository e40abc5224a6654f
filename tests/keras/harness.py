"""What a file of cases imports: a case is a model that Keras saves and runs, and that Tutti must read and run the same way.

    from harness import case, layer

    def cases():
        yield layer("dense_relu", layers.Dense(4, activation="relu"), (5,))
        yield case("two_branches", two_branches())

README.md beside this file has the whole story.
"""

from dataclasses import dataclass
from typing import Any, Callable

FORMATS = ("keras", "h5")
ORACLES = ("jax", "tensorflow", "tf_keras")


@dataclass
class Case:
    name: str  # lower_snake, unique in its family
    model: Any  # a built model, or a function without arguments that builds it
    inputs: Any = None  # an array, or a list of them in the order of model.inputs; None: random ones
    formats: tuple = FORMATS
    oracle: str = "jax"
    batch: int = 3
    length: int = 5  # of every other axis that the model leaves open, in random inputs
    atol: float | None = None  # None: by the model's lowest precision
    rtol: float | None = None
    scaled: bool = False  # True: atol is for outputs of up to 1, and grows with the largest one
    keep_weights: bool = False  # True: the model's own weights instead of random ones
    eager: bool = False  # True: called without jit, for layers that cannot be traced
    single: bool = True  # also run the first sample alone; False where samples of a batch depend on each other
    refused: str | None = None  # Tutti must refuse the file, with a message that contains this


def case(name, model, inputs=None, **options):
    return Case(name, model, inputs, **options)


def layer(name, make, *shapes, dtype="float32", **options):
    """A Functional model of one layer (or a function without arguments that makes it); several shapes are given to it as a list.

    Shapes are without the batch axis; `dtype` is that of the inputs, one for all or a list.
    """
    dtypes = [dtype] * len(shapes) if isinstance(dtype, str) else dtype

    def model():
        import keras

        instance = make if isinstance(make, keras.layers.Layer) else make()
        inputs = [keras.Input(shape, dtype=d) for shape, d in zip(shapes, dtypes, strict=True)]
        return keras.Model(inputs, instance(inputs if len(inputs) > 1 else inputs[0]))

    return case(name, model, **options)


def padded(*shape, value=0.0):
    """Random series [batch, time, ...] of different lengths: what stands after each one's end, and one step in the middle, is `value`."""
    import numpy as np

    random = np.random.default_rng(sum(shape))
    series = random.standard_normal(shape).astype("float32")
    for row, length in zip(series, random.integers(1, shape[1], shape[0])):
        row[length:] = value
    series[0, shape[1] // 2] = value
    return series


def is_builder(model: Any) -> bool:
    """Functions build; models can be called too, but have a config."""
    return isinstance(model, Callable) and not hasattr(model, "get_config")
