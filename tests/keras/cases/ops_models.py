"""Models whose authors reach for keras.ops: blocks that no layer has, written between layers."""

import keras
import numpy as np
from harness import case
from keras import layers, ops


def cases():
    for build in (
        attention_pooling, masked_mean_pooling, squeeze_and_excite, gated_residual_network, variable_selection, reversible_normalization, n_hits, n_beats,
        film, similarity, contrastive, gated_linear_unit, highway, mixture_of_experts, top_experts, temporal_differences, moving_average, fourier_features,
        spectral_block, harmonic_basis, quantile_head, distribution_head, mixture_density_head, pairwise_features, factorization_machine, deep_and_cross,
        embedding_bag, instance_normalization, pixel_shuffle, coordinate_channels, non_maximum_suppression_input, spatial_softmax, gram_matrix, channel_shuffle,
        blur_pool, weighted_ensemble, clipped_regression, physics_features, cyclical_time, log_returns, lag_features, bilinear_interaction, capsule_squash,
        graph_convolution, graph_attention, recurrent_with_context, residual_of_the_last_value, several_outputs_of_one_operation, operations_in_a_nested_model,
        shared_model_and_operations, operations_on_constants, integers_and_floats, booleans_as_weights, dictionaries, unknown_lengths, batch_in_the_shapes, vector_quantizer, rbf_network,
        monotone_head, circular_padding, depthwise_gate, state_space, autocorrelation,
    ):  # fmt: skip
        options = getattr(build, "options", {})
        yield case(build.__name__, build, **options)


def given(**options):
    def mark(build):
        build.options = options
        return build

    return mark


def attention_pooling():
    x = keras.Input((6, 5))
    scores = ops.softmax(layers.Dense(1)(ops.tanh(layers.Dense(4)(x))), axis=1)
    return keras.Model(x, [ops.sum(scores * x, axis=1), ops.squeeze(scores, -1)])


@given(inputs=np.int32([[1, 2, 0, 0], [3, 0, 0, 0], [1, 2, 3, 4]]))
def masked_mean_pooling():
    ids = keras.Input((4,), dtype="int32")
    mask = ops.expand_dims(ops.cast(ids != 0, "float32"), -1)
    x = layers.Embedding(6, 3)(ids)
    return keras.Model(ids, ops.sum(x * mask, axis=1) / ops.maximum(ops.sum(mask, axis=1), 1.0))


def squeeze_and_excite():
    x = keras.Input((5, 6, 8))
    gate = ops.mean(x, axis=(1, 2), keepdims=True)
    gate = ops.sigmoid(layers.Dense(8)(ops.relu(layers.Dense(2)(gate))))
    return keras.Model(x, x * gate)


def residual_network(x, width, context=None):
    h = layers.Dense(width)(x)
    if context is not None:
        h = h + layers.Dense(width, use_bias=False)(context)
    h = layers.Dense(2 * width)(layers.Dense(width)(ops.elu(h)))
    value, gate = ops.split(h, 2, axis=-1)
    skip = x if x.shape[-1] == width else layers.Dense(width)(x)
    return layers.LayerNormalization()(skip + value * ops.sigmoid(gate))


def gated_residual_network():
    x, context = keras.Input((7, 5)), keras.Input((3,))
    return keras.Model([x, context], residual_network(x, 6, ops.expand_dims(context, 1)))


def variable_selection():
    x = keras.Input((7, 4))
    each = [residual_network(x[..., i : i + 1], 3) for i in range(4)]
    weights = ops.softmax(residual_network(x, 4), axis=-1)
    return keras.Model(x, ops.sum(ops.stack(each, axis=-1) * weights[:, :, None, :], axis=-1))


def reversible_normalization():
    x = keras.Input((12, 3))
    mean, variance = ops.moments(x, axes=[1], keepdims=True)
    normal = (x - mean) * ops.rsqrt(variance + 1e-5) * np.float32([1, 0.5, 2]) + np.float32([0, 0.1, -0.2])
    y = ops.transpose(layers.Dense(4)(ops.transpose(normal, (0, 2, 1))), (0, 2, 1))
    return keras.Model(x, (y - np.float32([0, 0.1, -0.2])) / np.float32([1, 0.5, 2]) * ops.sqrt(variance + 1e-5) + mean)


def n_hits():
    x = keras.Input((12,))
    rest, forecast = x, 0.0
    for size in (4, 2, 1):
        pooled = ops.squeeze(ops.max_pool(ops.expand_dims(rest, -1), size, size), -1)
        theta = layers.Dense(12 // size + 3)(layers.Dense(8, activation="relu")(pooled))
        back, ahead = theta[:, : 12 // size], theta[:, 12 // size :]
        rest = rest - ops.repeat(back, size, axis=1)
        wide = ops.image.resize(ahead[:, None, :, None], (1, 6))
        forecast = forecast + ops.reshape(wide, (-1, 6))
    return keras.Model(x, [forecast, rest])


def n_beats():
    x = keras.Input((10,))
    t = np.arange(10, dtype="float32") / 10
    ahead = np.arange(4, dtype="float32") / 4
    trend, seasons = np.stack([t**i for i in range(3)]), np.stack([np.sin(2 * np.pi * t), np.cos(2 * np.pi * t)]).astype("float32")
    rest, forecast = x, None
    for basis, future in ((trend, np.stack([ahead**i for i in range(3)])), (seasons, np.stack([np.sin(2 * np.pi * ahead), np.cos(2 * np.pi * ahead)]).astype("float32"))):
        theta = layers.Dense(len(basis), use_bias=False)(layers.Dense(8, activation="relu")(rest))
        rest = rest - ops.matmul(theta, basis)
        part = theta @ future
        forecast = part if forecast is None else forecast + part
    return keras.Model(x, [forecast, rest])


def film():
    x, condition = keras.Input((6, 4)), keras.Input((3,))
    gamma, beta = ops.split(layers.Dense(8)(condition), 2, axis=-1)
    return keras.Model([x, condition], ops.expand_dims(gamma, 1) * x + beta[:, None, :])


def similarity():
    a, b = keras.Input((5,)), keras.Input((5,))
    tower = layers.Dense(4)
    left, right = ops.normalize(tower(a), axis=-1), ops.normalize(tower(b), axis=-1)
    cosine = ops.sum(left * right, axis=-1, keepdims=True)
    distance = ops.sqrt(ops.maximum(ops.sum(ops.square(left - right), axis=-1, keepdims=True), 1e-12))
    return keras.Model([a, b], [cosine, distance, ops.exp(-distance)])


@given(single=False)
def contrastive():
    a, b = keras.Input((5,)), keras.Input((5,))
    left, right = ops.normalize(layers.Dense(4)(a)), ops.normalize(layers.Dense(4)(b))
    logits = ops.matmul(left, ops.transpose(right)) / 0.07
    return keras.Model([a, b], [ops.softmax(logits, axis=1), ops.log_softmax(logits, axis=0)])


def gated_linear_unit():
    x = keras.Input((6, 4))
    y = layers.Conv1D(8, 3, padding="causal")(x)
    return keras.Model(x, [ops.glu(y), y[..., :4] * ops.sigmoid(y[..., 4:]), ops.tanh(y[..., :4]) * ops.sigmoid(y[..., 4:]) + x])


def highway():
    x = keras.Input((5,))
    gate = ops.sigmoid(layers.Dense(5)(x))
    return keras.Model(x, gate * ops.relu(layers.Dense(5)(x)) + (1 - gate) * x)


def mixture_of_experts():
    x = keras.Input((5,))
    experts = ops.stack([layers.Dense(3, activation="tanh")(x) for _ in range(4)], axis=1)
    return keras.Model(x, ops.einsum("be,bed->bd", ops.softmax(layers.Dense(4)(x)), experts))


def top_experts():
    x = keras.Input((5,))
    experts = ops.stack([layers.Dense(3)(x) for _ in range(4)], axis=1)
    values, indices = ops.top_k(layers.Dense(4)(x), 2)
    weights = ops.sum(ops.one_hot(indices, 4) * ops.softmax(values)[..., None], axis=1)
    return keras.Model(x, [ops.matmul(weights[:, None], experts)[:, 0], indices])


def temporal_differences():
    x = keras.Input((8, 2))
    change = x[:, 1:] - x[:, :-1]
    return keras.Model(x, [ops.concatenate([x[:, 1:], change], axis=-1), ops.diff(x, axis=1), ops.cumsum(change, axis=1) + x[:, :1]])


def moving_average():
    x = keras.Input((10, 2))
    padded = ops.concatenate([ops.repeat(x[:, :1], 2, axis=1), x, ops.repeat(x[:, -1:], 2, axis=1)], axis=1)
    trend = ops.average_pool(padded, 5, 1)
    season = x - trend
    return keras.Model(x, [trend, season, layers.Dense(2)(season) + layers.Dense(2)(trend)])


def fourier_features():
    x = keras.Input((2,))
    projected = 2 * np.pi * ops.matmul(x, np.random.default_rng(0).standard_normal((2, 6)).astype("float32"))
    return keras.Model(x, layers.Dense(3)(ops.concatenate([ops.sin(projected), ops.cos(projected)], axis=-1)))


def spectral_block():
    x = keras.Input((8, 12))
    real, imaginary = ops.rfft(x)
    gain = np.linspace(1, 0.1, 7).astype("float32")
    amplitude = ops.sqrt(real * real + imaginary * imaginary + 1e-12)
    return keras.Model(x, [ops.irfft((real * gain, imaginary * gain)), amplitude, ops.argmax(amplitude, axis=-1)])


def harmonic_basis():
    x = keras.Input((4,))
    t = np.arange(6, dtype="float32") / 6
    amplitude, phase = ops.unstack(ops.reshape(x, (-1, 2, 2)), axis=1)
    return keras.Model(x, ops.sum(amplitude[..., None] * ops.cos(phase[..., None] + (2 * np.pi * t * np.float32([[1], [2]])).astype("float32")), axis=1))


def quantile_head():
    x = keras.Input((5,))
    raw = layers.Dense(3)(x)
    middle, spread = raw[:, 1:2], ops.softplus(raw[:, ::2])
    return keras.Model(x, ops.concatenate([middle - spread[:, :1], middle, middle + spread[:, 1:]], axis=-1))


def distribution_head():
    x = keras.Input((5,))
    location, scale = ops.split(layers.Dense(4)(x), 2, axis=1)
    scale = ops.softplus(scale) + 1e-6
    z = (0.5 - location) / scale
    log_density = -0.5 * ops.square(z) - ops.log(scale) - 0.5 * np.log(2 * np.pi)
    return keras.Model(x, [location, scale, log_density, 0.5 * (1 + ops.erf(z / np.sqrt(2.0)))])


def mixture_density_head():
    x = keras.Input((5,))
    weight = ops.log_softmax(layers.Dense(3)(x))
    mean, log_scale = layers.Dense(3)(x), ops.clip(layers.Dense(3)(x), -3, 3)
    parts = weight - log_scale - 0.5 * ops.square((1.0 - mean) * ops.exp(-log_scale))
    return keras.Model(x, [ops.logsumexp(parts, axis=-1), ops.sum(ops.exp(weight) * mean, axis=-1)])


def pairwise_features():
    x = keras.Input((4, 3))
    gram = ops.matmul(x, ops.swapaxes(x, 1, 2))
    upper = ops.take(ops.reshape(gram, (-1, 16)), [1, 2, 3, 6, 7, 11], axis=1)
    return keras.Model(x, [upper, ops.triu(gram, 1), ops.reshape(ops.einsum("bi,bj->bij", x[:, 0], x[:, 1]), (-1, 9))])


def factorization_machine():
    x = keras.Input((5,))
    factors = np.random.default_rng(0).standard_normal((5, 3)).astype("float32")
    square_of_sum, sum_of_squares = ops.square(x @ factors), ops.matmul(x**2, factors**2)
    return keras.Model(x, layers.Dense(1)(x) + 0.5 * ops.sum(square_of_sum - sum_of_squares, axis=1, keepdims=True))


def deep_and_cross():
    first = x = keras.Input((5,))
    for _ in range(3):
        x = first * layers.Dense(1)(x) + x
    return keras.Model(first, layers.Dense(1, activation="sigmoid")(ops.concatenate([x, layers.Dense(4, activation="relu")(first)], axis=-1)))


@given(inputs=np.int32([[1, 2, 5], [3, 3, 0], [4, 0, 0]]))
def embedding_bag():
    ids = keras.Input((3,), dtype="int32")
    x = layers.Embedding(6, 4)(ids)
    return keras.Model(ids, [ops.sum(x, axis=1), ops.mean(x, axis=1), ops.max(x, axis=1), ops.multi_hot(ids, 6)])


def instance_normalization():
    x = keras.Input((5, 6, 3))
    mean, variance = ops.mean(x, axis=(1, 2), keepdims=True), ops.var(x, axis=(1, 2), keepdims=True)
    return keras.Model(x, (x - mean) / ops.sqrt(variance + 1e-3))


def pixel_shuffle():
    x = keras.Input((3, 4, 8))
    y = ops.reshape(x, (-1, 3, 4, 2, 2, 2))
    return keras.Model(x, [ops.depth_to_space(x, 2), ops.reshape(ops.transpose(y, (0, 1, 3, 2, 4, 5)), (-1, 6, 8, 2))])


def coordinate_channels():
    x = keras.Input((4, 5, 2))
    rows, columns = np.meshgrid(np.linspace(-1, 1, 4), np.linspace(-1, 1, 5), indexing="ij")
    grid = np.stack([rows, columns], -1).astype("float32")[None]
    return keras.Model(x, layers.Conv2D(3, 1)(ops.concatenate([x, ops.zeros_like(x) + grid], axis=-1)))


def non_maximum_suppression_input():
    """Boxes decoded as detectors do, and the score of each against its neighbours."""
    x = keras.Input((6, 5))
    centre, size, score = x[..., :2], ops.exp(x[..., 2:4] * 0.2), ops.sigmoid(x[..., 4])
    boxes = ops.concatenate([centre - size / 2, centre + size / 2], axis=-1)
    low, high = ops.maximum(boxes[:, :, None, :2], boxes[:, None, :, :2]), ops.minimum(boxes[:, :, None, 2:], boxes[:, None, :, 2:])
    overlap = ops.prod(ops.maximum(high - low, 0), axis=-1)
    area = ops.prod(boxes[..., 2:] - boxes[..., :2], axis=-1)
    union = area[:, :, None] + area[:, None] - overlap
    beaten = ops.any(ops.logical_and(overlap / union > 0.5, score[:, None] > score[:, :, None]), axis=-1)
    return keras.Model(x, [boxes, ops.where(beaten, 0.0, score), ops.argsort(-score, axis=-1)])


def spatial_softmax():
    x = keras.Input((4, 5, 3))
    shares = ops.reshape(ops.softmax(ops.reshape(x, (-1, 20, 3)), axis=1), (-1, 4, 5, 3))
    rows, columns = np.linspace(0, 1, 4, dtype="float32"), np.linspace(0, 1, 5, dtype="float32")
    return keras.Model(x, ops.stack([ops.sum(shares * rows[:, None, None], (1, 2)), ops.sum(shares * columns[:, None], (1, 2))], axis=-1))


def gram_matrix():
    x = keras.Input((4, 5, 3))
    return keras.Model(x, ops.einsum("bijc,bijd->bcd", x, x) / 20.0)


def channel_shuffle():
    x = keras.Input((3, 4, 6))
    return keras.Model(x, ops.reshape(ops.transpose(ops.reshape(x, (-1, 3, 4, 2, 3)), (0, 1, 2, 4, 3)), (-1, 3, 4, 6)))


def blur_pool():
    x = keras.Input((6, 8, 3))
    window = np.outer([1, 2, 1], [1, 2, 1]).astype("float32") / 16
    kernel = np.tile(window[:, :, None, None], (1, 1, 3, 1))
    padded = ops.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="reflect")
    return keras.Model(x, ops.depthwise_conv(padded, kernel, strides=2))


def weighted_ensemble():
    x = keras.Input((5,))
    members = ops.stack([layers.Dense(2)(x) for _ in range(3)], axis=0)
    return keras.Model(x, [ops.tensordot(np.float32([0.5, 0.3, 0.2]), members, 1), ops.mean(members, 0), ops.std(members, 0), ops.median(members, 0), ops.max(members, 0)])


def clipped_regression():
    x = keras.Input((5,))
    y = layers.Dense(3)(x)
    return keras.Model(x, [ops.clip(y, -1.0, 1.0), 4 * ops.sigmoid(y) - 2, ops.round(y * 10) / 10, ops.sign(y) * ops.log1p(ops.abs(y)), ops.relu6(y + 3) / 6])


def physics_features():
    x = keras.Input((7, 4))
    position, angle = x[..., :2], x[..., 2]
    turn = ops.stack([ops.stack([ops.cos(angle), -ops.sin(angle)], -1), ops.stack([ops.sin(angle), ops.cos(angle)], -1)], -2)
    return keras.Model(x, [ops.einsum("btij,btj->bti", turn, position), ops.arctan2(position[..., 1], position[..., 0]), ops.hypot(position[..., 0], position[..., 1])])


@given(inputs=np.int32([[0, 5, 23], [12, 18, 6], [1, 2, 3]]))
def cyclical_time():
    hour = keras.Input((3,), dtype="int32")
    angle = ops.cast(hour, "float32") * (2 * np.pi / 24)
    day = hour // 6
    return keras.Model(hour, [ops.stack([ops.sin(angle), ops.cos(angle)], axis=-1), ops.one_hot(day, 4), hour % 12, ops.cast(hour >= 12, "int32")])


@given(inputs=np.random.default_rng(0).uniform(1, 3, (3, 9, 2)).astype("float32"))
def log_returns():
    price = keras.Input((9, 2))
    returns = ops.log(price[:, 1:] / price[:, :-1])
    volatility = ops.std(returns, axis=1) * np.sqrt(252)
    return keras.Model(price, [returns, volatility, ops.exp(ops.cumsum(returns, axis=1)) * price[:, :1], ops.mean(returns, 1) / (volatility + 1e-8)])


def lag_features():
    x = keras.Input((9, 2))
    lags = [ops.pad(x, [[0, 0], [lag, 0], [0, 0]])[:, :9] for lag in (1, 2, 4)]
    return keras.Model(x, [ops.concatenate([x, *lags], axis=-1), ops.roll(x, 1, axis=1)])


def bilinear_interaction():
    a, b = keras.Input((4,)), keras.Input((4,))
    core = np.random.default_rng(0).standard_normal((4, 4, 3)).astype("float32")
    return keras.Model([a, b], [ops.einsum("bi,ijk,bj->bk", a, core, b), ops.matmul(np.outer([1, 2], [3, 4]).astype("float32"), a[:, :2, None])])


def capsule_squash():
    x = keras.Input((6, 4))
    size = ops.sum(ops.square(x), axis=-1, keepdims=True)
    return keras.Model(x, size / (1 + size) * x / ops.sqrt(size + 1e-7))


def graph_convolution():
    x, edges = keras.Input((5, 4)), keras.Input((5, 5))
    adjacency = ops.cast(edges > 0, "float32") + np.eye(5, dtype="float32")
    degree = ops.rsqrt(ops.sum(adjacency, axis=-1))
    return keras.Model([x, edges], ops.relu(ops.matmul(degree[..., None] * adjacency * degree[:, None], layers.Dense(3)(x))))


def graph_attention():
    x, edges = keras.Input((5, 4)), keras.Input((5, 5))
    h = layers.Dense(3)(x)
    scores = ops.leaky_relu(layers.Dense(1)(h) + ops.swapaxes(layers.Dense(1)(h), 1, 2), 0.2)
    return keras.Model([x, edges], ops.softmax(ops.where(edges > -0.5, scores, -1e9)) @ h)


def recurrent_with_context():
    x, context = keras.Input((7, 3)), keras.Input((2,))
    wide = ops.repeat(ops.expand_dims(context, 1), 7, axis=1)
    h = layers.GRU(4, return_sequences=True)(ops.concatenate([x, wide], axis=-1))
    scores = ops.softmax(ops.sum(h * h[:, -1:], axis=-1) / 2.0)
    return keras.Model([x, context], ops.concatenate([ops.einsum("bt,btd->bd", scores, h), h[:, -1]], axis=-1))


def residual_of_the_last_value():
    x = keras.Input((8, 2))
    last = x[:, -1:, :]
    y = layers.Dense(6)(layers.Flatten()(x - last))
    return keras.Model(x, ops.reshape(y, (-1, 3, 2)) + last)


def several_outputs_of_one_operation():
    x = keras.Input((6, 4))
    parts = ops.split(x, 4, axis=-1)
    mean, variance = ops.moments(x, axes=[1])
    values, indices = ops.top_k(x, 2)
    return keras.Model(x, [parts[3], parts[1] - parts[0], variance, mean, indices, values, ops.unstack(x, axis=2)[1]])


def operations_in_a_nested_model():
    inner_x, inner_y = keras.Input((4,)), keras.Input((4,))
    inner = keras.Model([inner_x, inner_y], [inner_x * inner_y + 1, ops.maximum(inner_x, inner_y)], name="inner")
    x = keras.Input((4,))
    left, right = inner([x, layers.Dense(4)(x)])
    again = inner([right, left])
    return keras.Model(x, [left - right, again[0], ops.concatenate(again, axis=-1)])


def shared_model_and_operations():
    tower = keras.Sequential([keras.Input((4,)), layers.Dense(3, activation="relu"), layers.Dense(2)])
    a, b = keras.Input((4,)), keras.Input((4,))
    return keras.Model([a, b], [ops.abs(tower(a) - tower(b)), tower(a * 0.5) + tower(ops.flip(b, 1))])


def operations_on_constants():
    x = keras.Input((3,))
    table = ops.reshape(ops.arange(12, dtype="float32"), (3, 4))
    eye = ops.eye(3) * 2 - ops.tri(3)
    return keras.Model(x, [ops.matmul(x, table), x @ eye + ops.linspace(0.0, 1.0, 3), x * ops.ones((3,)) - ops.full((3,), 0.25), ops.where(ops.array([True, False, True]), x, -x)])


@given(inputs=[np.int32([[1, 2], [3, 4], [5, 6]]), np.random.default_rng(0).standard_normal((3, 2)).astype("float32")])
def integers_and_floats():
    i, x = keras.Input((2,), dtype="int32"), keras.Input((2,))
    return keras.Model([i, x], [i + x, i * 2, i / 2, i * 0.5 + 1, ops.mean(i, axis=1), ops.sum(i, axis=1), ops.cast(x * 10, "int32") + i, i**2, 1 - i, ops.sqrt(i), i > x])


def booleans_as_weights():
    x = keras.Input((6,))
    positive = x > 0
    count = ops.sum(positive, axis=1, keepdims=True)
    return keras.Model(x, [ops.sum(x * ops.cast(positive, x.dtype), 1) / ops.cast(ops.maximum(count, 1), x.dtype)[:, 0], ops.any(positive, 1), ops.all(~positive, 1), positive * x])


def dictionaries():
    inputs = {"a": keras.Input((3,), name="a"), "b": keras.Input((3,), name="b")}
    return keras.Model(inputs, {"sum": inputs["a"] + inputs["b"], "difference": inputs["a"] - 2 * inputs["b"]})


def unknown_lengths():
    x = keras.Input((None, 4))
    centred = x - ops.mean(x, axis=1, keepdims=True)
    shares = ops.softmax(ops.matmul(centred, ops.swapaxes(centred, 1, 2)))
    return keras.Model(x, [shares @ x, x[:, -1], x[:, ::2], ops.max(x, axis=1), ops.cumsum(x, axis=1), ops.flip(x, 1), ops.concatenate([x[:, :1], x[:, :-1]], axis=1)])


def batch_in_the_shapes():
    x = keras.Input(batch_shape=(2, 6, 4))
    steps = layers.Dense(3)(ops.reshape(x, (2 * 6, 4)))
    heads = ops.transpose(ops.reshape(x, (2, 6, 2, 2)), (0, 2, 1, 3))
    wide = ops.broadcast_to(x[:, :1], (2, 6, 4))
    return keras.Model(x, [ops.reshape(steps, (2, 6, 3)), ops.reshape(heads, (2, -1)), ops.slice(x, (0, 1, 0), (2, 3, 4)), wide + x])


def vector_quantizer():
    x = keras.Input((5, 3))
    book = np.random.default_rng(0).standard_normal((7, 3)).astype("float32")
    distance = ops.sum(x**2, axis=-1, keepdims=True) - 2 * ops.matmul(x, book.T.copy()) + ops.sum(book**2, axis=-1)
    code = ops.argmin(distance, axis=-1)
    return keras.Model(x, [code, ops.take(book, code, axis=0), x + ops.stop_gradient(ops.take(book, code, axis=0) - x)])


def rbf_network():
    x = keras.Input((3,))
    centres = np.random.default_rng(0).standard_normal((6, 3)).astype("float32")
    squared = ops.sum((ops.expand_dims(x, 1) - centres) ** 2, axis=-1)
    return keras.Model(x, layers.Dense(2)(ops.exp(-0.5 * squared)))


def monotone_head():
    x = keras.Input((4,))
    return keras.Model(x, [ops.cumsum(ops.softplus(layers.Dense(5)(x)), axis=-1), ops.sort(layers.Dense(5)(x), axis=-1)])


def circular_padding():
    x = keras.Input((6, 8, 2))
    padded = ops.concatenate([x[:, :, -1:], x, x[:, :, :1]], axis=2)
    return keras.Model(x, [layers.Conv2D(3, 3)(ops.pad(padded, ((0, 0), (1, 1), (0, 0), (0, 0)))), ops.pad(x, ((0, 0), (0, 0), (1, 2), (0, 0)), mode="wrap")])


def depthwise_gate():
    x = keras.Input((6, 4))
    gate = ops.sigmoid(ops.conv(x, np.random.default_rng(0).standard_normal((3, 1, 4)).astype("float32")[:, :1, :].repeat(4, axis=1), padding="same"))
    return keras.Model(x, x * gate)


def state_space():
    """A linear recurrence written as a convolution with its own impulse response."""
    x = keras.Input((8, 1))
    decay = np.float32([0.9, 0.5, -0.3])
    kernel = (decay[:, None] ** np.arange(8)[None]).sum(0).astype("float32")[::-1].copy()
    return keras.Model(x, ops.conv(ops.pad(x, [[0, 0], [7, 0], [0, 0]]), kernel[:, None, None]))


def autocorrelation():
    x = keras.Input((2, 12))
    real, imaginary = ops.rfft(x - ops.mean(x, axis=-1, keepdims=True))
    power = real**2 + imaginary**2
    lags = ops.irfft((power, ops.zeros_like(power)))
    return keras.Model(x, [lags / (lags[..., :1] + 1e-9), ops.top_k(lags[..., 1:6], 2)[0]])
