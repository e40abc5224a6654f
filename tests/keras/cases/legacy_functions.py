"""TensorFlow functions called on the tensors of functional models, as files of Keras 2 hold them."""

import numpy as np
from harness import case

TOKENS = (np.arange(12).reshape(3, 4) % 5).astype("int32")


def cases():
    series, image, tokens = (4, 6), (8, 8, 3), (4,)
    on_series = {
        "operators": lambda tf, x: (1 - x) * 2 / (x * x + 3) + (-x) ** 2 - abs(x) / 2,
        "floor_division": lambda tf, x: [x // 0.3, x % 0.3, x // -0.3, x % -0.7],
        "comparisons": lambda tf, x: [x > 0, x >= 0.1, x < 0.2, x <= 0, tf.equal(x, x), tf.not_equal(x, 0.0)],
        "logic": lambda tf, x: [(x > 0) & (x < 1), (x > 1) | (x < -1), ~(x > 0), tf.math.logical_xor(x > 0, x > 1)],
        "constants": lambda tf, x: x * np.arange(6, dtype="float32") + tf.constant([[0.5], [1.0], [2.0], [3.0]]),
        "power_of_two": lambda tf, x: [2.0**x, x**3],
        "roots_and_logarithms": lambda tf, x: [tf.sqrt(abs(x)), tf.math.rsqrt(abs(x) + 1), tf.math.log(abs(x) + 1), tf.math.log1p(abs(x))],
        "exponentials": lambda tf, x: [tf.exp(x), tf.math.expm1(x), tf.sigmoid(x), tf.tanh(x), tf.math.softplus(x), tf.math.erf(x)],
        "angles": lambda tf, x: [tf.sin(x), tf.cos(x), tf.math.tan(x), tf.math.atan(x), tf.math.asin(tf.tanh(x)), tf.math.atan2(x, x + 1)],
        "hyperbolic": lambda tf, x: [tf.math.sinh(x), tf.math.cosh(x), tf.math.asinh(x), tf.math.acosh(abs(x) + 1), tf.math.atanh(tf.tanh(x))],
        "rounding": lambda tf, x: [tf.floor(x), tf.math.ceil(x), tf.round(x * 2), tf.sign(x), tf.square(x), tf.math.reciprocal(x)],
        "extremes": lambda tf, x: [tf.maximum(x, 0.1), tf.minimum(x, x + 1), tf.clip_by_value(x, -0.5, 0.5)],
        "differences": lambda tf, x: [tf.math.squared_difference(x, 1.0), tf.math.divide_no_nan(x, tf.nn.relu(x)), tf.add_n([x, x, x])],
        "sums": lambda tf, x: [tf.reduce_sum(x, 1), tf.reduce_mean(x, [1, 2], keepdims=True), tf.reduce_prod(x, axis=-1), tf.reduce_max(x, 1)],
        "statistics": lambda tf, x: [tf.math.reduce_std(x, 1), tf.math.reduce_variance(x, -1, True), tf.reduce_logsumexp(x, 2), tf.reduce_min(x, 2)],
        "any_and_all": lambda tf, x: [tf.reduce_any(x > 0.5, 1), tf.reduce_all(x > -1, [1, 2])],
        "arguments_of_extremes": lambda tf, x: [tf.argmax(x, -1), tf.argmin(x, 1, output_type="int32")],
        "running_sums": lambda tf, x: [tf.cumsum(x, 1), tf.cumsum(x, 1, exclusive=True), tf.cumsum(x, 2, exclusive=True, reverse=True), tf.math.cumprod(x, 2)],
        "norms": lambda tf, x: [tf.nn.l2_normalize(x, -1), tf.norm(x, axis=-1), tf.norm(x, ord=1, axis=1, keepdims=True)],
        "largest": lambda tf, x: list(tf.math.top_k(x, 3)),
        "activations": lambda tf, x: [tf.nn.relu(x), tf.nn.relu6(x * 5), tf.nn.leaky_relu(x), tf.nn.leaky_relu(x, 0.3), tf.nn.elu(x), tf.nn.selu(x)],
        "more_activations": lambda tf, x: [tf.nn.gelu(x), tf.nn.gelu(x, approximate=True), tf.nn.silu(x), tf.nn.softsign(x), tf.nn.swish(x, 1.5)],
        "softmax": lambda tf, x: [tf.nn.softmax(x), tf.nn.softmax(x, axis=1), tf.nn.log_softmax(x), tf.math.log_sigmoid(x)],
        "joining": lambda tf, x: [tf.concat([x, x * 2], -1), tf.concat([x], 1), tf.stack([x, x + 1], 1), tf.stack([x, x], axis=-1)],
        "splitting": lambda tf, x: [*tf.split(x, 2, axis=-1), *tf.split(x, [1, -1], axis=1), tf.unstack(x, axis=1)[2]],
        "reshaping": lambda tf, x: [tf.reshape(x, [-1, 24]), tf.expand_dims(x, 1), tf.squeeze(x[:, :1], 1), tf.transpose(x, [0, 2, 1])],
        "shapes": lambda tf, x: [tf.reshape(x, (tf.shape(x)[0], 24)), tf.reshape(x, [tf.shape(x)[0], tf.shape(x)[2] * 2, -1]), tf.cast(tf.shape(x)[1], "float32") * x],
        "ranges": lambda tf, x: [tf.range(tf.shape(x)[1]) + tf.cast(x[:, :, 0], "int32"), x[:, :3, 0] * tf.range(tf.shape(x)[2], 0, -2, dtype="float32")],
        "range_of_int64": lambda tf, x: tf.range(1, tf.shape(x, out_type="int64")[-1]) + tf.cast(x[:, :, 1:], "int64"),
        "repeating": lambda tf, x: [tf.tile(x, [1, 2, 1]), tf.repeat(x, 3, axis=1), tf.reverse(x, [1, 2]), tf.roll(x, 2, 1)],
        "padding": lambda tf, x: [tf.pad(x, [[0, 0], [1, 2], [0, 1]]), tf.pad(x, [[0, 0], [1, 1], [2, 0]], "REFLECT"), tf.pad(x, [[0, 0], [1, 1], [0, 0]], "SYMMETRIC")],
        "padding_with_a_value": lambda tf, x: tf.pad(x, [[0, 0], [1, 2], [0, 1]], constant_values=2.5),
        "gather_of_each_sample": lambda tf, x: gather_of_each_sample(tf, x),
        "places_by_index": lambda tf, x: places_by_index(tf, x),
        "strided_slices": lambda tf, x: [
            tf.strided_slice(x, [0, 1, 0], [0, 0, 4], begin_mask=1, end_mask=3), tf.strided_slice(x, [0, -1], [0, -4], [1, -1], begin_mask=1, end_mask=1),
            tf.strided_slice(x, [0, 2], [0, 3], begin_mask=1, end_mask=1, shrink_axis_mask=2), tf.strided_slice(x, [0, 0, 1], [0, 0, 9], begin_mask=1, end_mask=1, new_axis_mask=2),
            tf.strided_slice(x, [0, 1], [0, 5], [1, 2], ellipsis_mask=1),
        ],
        "diagonals": lambda tf, x: [
            tf.linalg.diag_part(x), tf.linalg.diag_part(x, k=2), tf.linalg.diag_part(x, k=-1), tf.linalg.trace(x), tf.linalg.set_diag(x, x[:, :, 0]),
            tf.linalg.set_diag(tf.transpose(x, [0, 2, 1]), x[:, :, 1]), tf.linalg.diag(x),
        ],
        "matrices_of_a_shape": lambda tf, x: [tf.eye(tf.shape(x)[1]) + x[:, :, :4], tf.eye(4, tf.shape(x)[2]) * x],
        "cross_product": lambda tf, x: tf.linalg.cross(x[:, :, :3], x[:, :, 3:]),
        "normalized": lambda tf, x: [*tf.linalg.normalize(x, axis=-1), tf.clip_by_norm(x, 1.5, [1]), tf.math.reduce_euclidean_norm(x, 1)],
        "truncated_division": lambda tf, x: [tf.truncatediv(tf.cast(x * 5, "int32"), 2), tf.truncatemod(tf.cast(x * 5, "int32"), 3), tf.truncatediv(x, 0.3), tf.math.rint(x * 2)],
        "zeros_that_win": lambda tf, x: [tf.math.multiply_no_nan(1 / tf.nn.relu(x), tf.nn.relu(x)), tf.math.xlogy(tf.nn.relu(x), tf.nn.relu(x)), tf.math.count_nonzero(tf.nn.relu(x), 1)],
        "more_zeros_that_win": lambda tf, x: [tf.math.xdivy(tf.nn.relu(x), tf.nn.relu(x)), tf.math.xlog1py(tf.nn.relu(x), tf.nn.relu(x) - 1)],
        "polynomial": lambda tf, x: [tf.math.polyval([1.5, -2.0, 0.25], x), tf.math.polyval([3.0, x], x), tf.math.polyval([x, x + 1], x)],
        "promises": lambda tf, x: [tf.debugging.check_numerics(x, "finite"), tf.experimental.numpy.mean(x, axis=1), tf.math.accumulate_n([x, x * 2])],
        "more_error_functions": lambda tf, x: [tf.math.erfc(x), tf.math.erfinv(tf.tanh(x))],
        "shape_that_is_known": lambda tf, x: tf.ensure_shape(x, [None, 4, 6]),
        "losses_of_logits": lambda tf, x: [tf.nn.sigmoid_cross_entropy_with_logits(x, x * 2), tf.nn.softmax_cross_entropy_with_logits(x, x * 2), tf.nn.crelu(x)],
        "losses_of_the_backend": lambda tf, x: [
            backend().binary_crossentropy(tf.sigmoid(x), tf.sigmoid(x * 3)), backend().binary_crossentropy(tf.sigmoid(x), x, from_logits=True),
            backend().categorical_crossentropy(tf.nn.softmax(x), tf.sigmoid(x)),
        ],
        "flattened_samples": lambda tf, x: backend().batch_flatten(x),
        "convolution_1d": lambda tf, x: [tf.nn.conv1d(x, weights(3, 6, 2), 1, "SAME"), tf.nn.conv1d(x, weights(2, 3, 4), 2, "VALID")],
        "choosing": lambda tf, x: [tf.where(x > 0, x, 0.0), tf.where(x > 0, 1.0, x), tf.gather(x, [0, 2], axis=1)],
        "casting": lambda tf, x: [tf.cast(x > 0, "float32"), tf.cast(x * 3, tf.int32), tf.zeros_like(x), tf.ones_like(x), tf.identity(x), tf.stop_gradient(x)],
        "zeros_in_front": lambda tf, x: tf.concat([tf.zeros((tf.shape(x)[0], 1, 6)), x, tf.ones_like(x[:, :1])], 1),
        "products": lambda tf, x: [x @ tf.transpose(x, [0, 2, 1]), tf.matmul(x, x, transpose_b=True), tf.matmul(x, np.ones((6, 2), "float32"))],
        "tensordot": lambda tf, x: tf.tensordot(x, np.arange(12, dtype="float32").reshape(6, 2), axes=[[2], [0]]),
        "band": lambda tf, x: [tf.linalg.band_part(x, -1, 0), tf.linalg.band_part(x, 1, 2)],
        "sorting": lambda tf, x: [tf.sort(x, axis=-1), tf.sort(x, axis=1, direction="DESCENDING"), tf.argsort(x, axis=-1)],
        "hints": lambda tf, x: [tf.argsort(x, axis=-1, stable=True), tf.transpose(x, [0, 2, 1], conjugate=True), *tf.unstack(x, num=4, axis=1)],
        "indexing": lambda tf, x: [x[:, 0], x[:, -1], x[:, 1:3], x[:, ::2, 1:-1], x[:, None], x[:, :, ::-1], x[:, 1, :2]],
        "backend_functions": lambda tf, x: backend_functions(x),
    }
    for name, function in on_series.items():
        yield functions(name, function, series)
    on_images = {
        "preprocess_mobilenet": lambda tf, x: applications().mobilenet_v2.preprocess_input(x),
        "preprocess_torch": lambda tf, x: applications().densenet.preprocess_input(x),
        "resize": lambda tf, x: [tf.image.resize(x, (5, 11)), tf.image.resize(x, [16, 4], method="nearest")],
        "resize_of_version_1": lambda tf, x: [
            tf.compat.v1.image.resize(x, size, method, align_corners=corners) for size in ((12, 5), (1, 16)) for method in (0, "nearest") for corners in (False, True)
        ],
        "resize_operations_of_version_1": lambda tf, x: [
            tf.compat.v1.image.resize_bilinear(x, (5, 11), align_corners=True), tf.compat.v1.image.resize_bilinear(x, (5, 11), half_pixel_centers=True),
            tf.compat.v1.image.resize_nearest_neighbor(x, (11, 5)), tf.compat.v1.image.resize_images(x, (3, 4), 3), tf.compat.v1.image.resize_bilinear(x, (20, 3)),
        ],
        "blocks_as_samples": lambda tf, x: [
            tf.nn.atrous_conv2d(x, weights(3, 3, 3, 4), 2, "SAME"), tf.nn.atrous_conv2d(x, weights(2, 2, 3, 4), 3, "VALID"),
            tf.batch_to_space(tf.space_to_batch(x, [3, 2], [[0, 1], [2, 0]]) * 2, [3, 2], [[1, 1], [0, 3]]), tf.batch_to_space(tf.space_to_batch(x, [4], [[0, 0]]), [4], [[0, 0]]),
        ],
        "resize_antialias": lambda tf, x: tf.image.resize(x, (3, 5), antialias=True),
        "flips": lambda tf, x: [tf.image.flip_left_right(x), tf.image.flip_up_down(x)],
        "gray": lambda tf, x: [tf.image.rgb_to_grayscale(x), tf.image.grayscale_to_rgb(x[:, :, :, :1])],
        "standardized": lambda tf, x: tf.image.per_image_standardization(x),
        "patches": lambda tf, x: tf.image.extract_patches(x, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"),
        "overlapping_patches": lambda tf, x: tf.image.extract_patches(x, [1, 3, 2, 1], [1, 2, 1, 1], [1, 1, 2, 1], "SAME"),
        "crops": lambda tf, x: [tf.image.central_crop(x, 0.6), tf.image.crop_to_bounding_box(x, 1, 2, 5, 4), tf.image.pad_to_bounding_box(x, 1, 2, 10, 12)],
        "turns": lambda tf, x: [tf.image.transpose(x), tf.image.rot90(x), tf.image.rot90(x, 2), tf.image.rot90(x, k=3)],
        "colours": lambda tf, x: [tf.image.rgb_to_hsv(tf.sigmoid(x)), tf.image.hsv_to_rgb(tf.sigmoid(x)), tf.image.adjust_brightness(x, 0.2), tf.image.adjust_contrast(x, 1.7)],
        "pixels_of_floats": lambda tf, x: [tf.image.convert_image_dtype(x, "float32"), tf.image.convert_image_dtype(tf.cast(tf.sigmoid(x) * 255, "uint8"), "float32")],
        "parts": lambda tf, x: [tf.slice(x, [0, 1, 2, 0], [-1, 3, -1, 2]), tf.slice(x, [0, 0, 0, 1], [tf.shape(x)[0], 8, tf.shape(x)[1] // 2, 1])],
        "resize_by_shape": lambda tf, x: [tf.image.resize(x, (tf.shape(x)[1] // 2, tf.shape(x)[2] * 2 - 1)), tf.reshape(x, [-1, (tf.shape(x)[1] + 5) % 10, 64])],
        "blocks": lambda tf, x: [tf.nn.space_to_depth(x, 2), tf.nn.depth_to_space(tf.concat([x, x * 2, x * 3, x * 4], -1), 2)],
        "pooling": lambda tf, x: [tf.nn.avg_pool2d(x, 2, 2, "VALID"), tf.nn.max_pool2d(x, [3, 2], [2, 1], "SAME"), tf.nn.avg_pool2d(x, 3, 2, "SAME")],
        "pooling_of_any_rank": lambda tf, x: [tf.nn.avg_pool(x, 2, 2, "SAME"), tf.compat.v1.nn.max_pool(x, [1, 3, 2, 1], [1, 2, 1, 1], "VALID")],
        "pooling_of_the_backend": lambda tf, x: [backend().pool2d(x, (3, 2), (2, 2), padding="same", pool_mode="avg"), backend().pool2d(x, (2, 2))],
        "convolution": lambda tf, x: [tf.nn.conv2d(x, weights(3, 2, 3, 4), [1, 2, 1, 1], "SAME"), tf.nn.conv2d(x, weights(2, 2, 3, 4), 1, "VALID", dilations=2)],
        "convolution_of_the_backend": lambda tf, x: [backend().conv2d(x, weights(3, 3, 3, 2), (2, 1), "same"), backend().conv2d(x, weights(2, 2, 3, 2))],
        "depthwise_convolution": lambda tf, x: [tf.nn.depthwise_conv2d(x, weights(3, 3, 3, 2), [1, 2, 2, 1], "SAME"), backend().depthwise_conv2d(x, weights(2, 3, 3, 1), dilation_rate=(2, 1))],
        "crops_or_padding": lambda tf, x: [tf.image.resize_with_crop_or_pad(x, 5, 11), tf.image.resize_with_crop_or_pad(x, 9, 3), tf.image.resize_with_crop_or_pad(x, 8, 7)],
        "convolution_with_borders": lambda tf, x: [
            tf.nn.conv2d(x, weights(3, 2, 3, 4), [1, 2, 1, 1], [[0, 0], [1, 2], [0, 1], [0, 0]]), tf.nn.depthwise_conv2d(x, weights(3, 3, 3, 2), [1, 1, 1, 1], [[0, 0], [2, 0], [1, 1], [0, 0]]),
            tf.nn.max_pool2d(x - 9, 3, 2, [[0, 0], [1, 1], [1, 0], [0, 0]]),
        ],
        "transposed_convolution": lambda tf, x: [
            tf.nn.conv2d_transpose(x, weights(3, 2, 4, 3), tf.stack([tf.shape(x)[0], 16, 15, 4]), 2),
            tf.nn.conv2d_transpose(x, weights(4, 3, 2, 3), tf.stack([tf.shape(x)[0], 25, 10, 2]), [1, 3, 1, 1], "VALID"),
            tf.nn.conv2d_transpose(x, weights(2, 2, 2, 3), tf.stack([tf.shape(x)[0], 24, 23, 2]), 3, "SAME"),
            backend().conv2d_transpose(x, weights(3, 3, 2, 3), (None, 16, 16, 2), (2, 2), "same"),
        ],
        "separable_convolution": lambda tf, x: [
            tf.nn.separable_conv2d(x, weights(3, 3, 3, 2), weights(1, 1, 6, 4), [1, 2, 2, 1], "SAME"), backend().separable_conv2d(x, weights(2, 3, 3, 1), weights(1, 1, 3, 2)),
        ],
        "resize_with_borders": lambda tf, x: [tf.image.resize_with_pad(x, 12, 10), tf.image.resize_with_pad(x, 5, 20, method="nearest"), tf.image.resize_with_pad(x, 6, 5, antialias=True)],
        "resize_in_proportion": lambda tf, x: [tf.image.resize(x[:, :7], (15, 12), preserve_aspect_ratio=True), tf.image.resize(x[:, :, :5], (9, 9), preserve_aspect_ratio=True)],
        "gamma": lambda tf, x: tf.image.adjust_gamma(tf.sigmoid(x), 2.2, 0.5),
        "bias": lambda tf, x: tf.nn.bias_add(x, np.array([1, 2, 3], "float32")),
        "local_response": lambda tf, x: tf.nn.local_response_normalization(x, 1, 2.0, 0.3, 0.7),
        "moments": lambda tf, x: list(tf.nn.moments(x, [1, 2])),
    }
    for name, function in on_images.items():
        yield functions(name, function, image)
    on_tokens = {
        "one_hot": lambda tf, x: [tf.one_hot(x, 5), tf.one_hot(x, 4, on_value=2.0, off_value=-1.0, axis=1)],
        "lookup": lambda tf, x: tf.gather(np.arange(10, dtype="float32").reshape(5, 2), x),
        "lookup_of_embeddings": lambda tf, x: tf.nn.embedding_lookup(weights(5, 2), x),
        "sequence_mask": lambda tf, x: tf.sequence_mask(x, 6),
        "integer_division": lambda tf, x: [(x - 2) // 2, (x - 2) % 3, x / 2],
        "row_by_index": lambda tf, x: tf.cast(x, "float32")[:, x[0, 1]],
    }
    for name, function in on_tokens.items():
        yield functions(name, function, tokens, "int32", TOKENS)
    # tf-keras cannot write an ellipsis into its .keras.
    yield functions("ellipsis", lambda tf, x: [x[..., 2], x[..., None], x[:, 1, ..., :2], x[..., ::-1]], series, formats=("h5",))
    yield functions("preprocess_resnet", lambda tf, x: applications().resnet50.preprocess_input(x), image, formats=("h5",))
    yield functions("random", lambda tf, x: x + tf.random.normal((6,)) + tf.random.normal(tf.shape(x)), series, refused="draws other numbers")
    yield functions("dropout", lambda tf, x: tf.nn.dropout(x, 0.5), series, refused="draws other numbers")
    yield functions("cubic_of_version_1", lambda tf, x: tf.compat.v1.image.resize(x, (4, 4), 2), image, refused="hint: tf.image.resize is read")
    yield functions("unique", lambda tf, x: tf.unique(tf.reshape(x, [-1]))[0], series, refused="tf.unique")
    yield functions("einsum", lambda tf, x: tf.einsum("abc,adc->abd", x, x), series, refused="does not hold what tf.einsum is called on")
    yield functions("bands_of_diagonals", lambda tf, x: tf.linalg.diag_part(x, k=(-1, 1)), series, refused="several diagonals")
    yield functions("argument_that_is_not_read", lambda tf, x: list(tf.math.top_k(x, 2, index_type=tf.int64)), series, refused="argument 'index_type'")
    yield case("between_layers", between_layers, oracle="tf_keras")
    yield case("loss_and_metric_of_values", loss_and_metric_of_values, oracle="tf_keras")
    yield case("named_by_the_user", two_calls, oracle="tf_keras")


def functions(name, function, shape, dtype="float32", inputs=None, **options):
    def model():
        import tensorflow
        from tf_keras import Input, Model

        x = Input(shape, dtype=dtype)
        return Model(x, function(tensorflow, x))

    return case(name, model, inputs, oracle="tf_keras", **options)


def applications():
    import tf_keras

    return tf_keras.applications


def backend():
    import tf_keras

    return tf_keras.backend


def weights(*shape):
    import tensorflow

    return tensorflow.constant(np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32"))


def gather_of_each_sample(tf, x):
    x = tf.concat([x, x * 2], -1)
    best = tf.argsort(x[:, :, :3], axis=1)  # [batch, 4, 3]
    return [
        tf.gather(x, best[:, 0], axis=1, batch_dims=1),
        tf.gather(x, best, batch_dims=1),
        tf.gather(x, best, axis=2, batch_dims=2),
        tf.gather(x, best[:, :2], axis=-1, batch_dims=1),
        tf.gather(x, best[:, 1, 0], axis=1, batch_dims=1),
    ]


def places_by_index(tf, x):
    first = tf.argsort(x[:, :, 0], axis=1)  # [batch, 4]
    rows = tf.stack([first, tf.argsort(x[:, :, 1], axis=1)], -1)  # [batch, 4, 2]
    return [tf.gather_nd(x, rows, batch_dims=1), tf.gather_nd(x, first[:, :, None], batch_dims=1), tf.gather_nd(x, rows[:, :1, :, None], batch_dims=1)]


def loss_and_metric_of_values():
    import tensorflow as tf
    from tf_keras import Input, Model, layers

    K = backend()
    x = Input((6,))
    mean, spread = layers.Dense(2)(x), layers.Dense(2)(x)
    model = Model(x, layers.Dense(6, activation="sigmoid")(mean))
    model.add_loss(tf.reduce_mean(K.binary_crossentropy(tf.sigmoid(x), model.output)) - 0.5 * tf.reduce_mean(1 + spread - K.square(mean) - K.exp(spread)))
    model.add_metric(tf.reduce_mean(mean), name="mean")
    return model


def backend_functions(x):
    K = backend()
    return [K.mean(x, axis=1), K.l2_normalize(x, axis=-1), K.batch_dot(x, x, axes=2), K.permute_dimensions(x, (0, 2, 1)), K.clip(x, 0, 1)]


def between_layers():
    import tensorflow as tf
    from tf_keras import Input, Model, layers

    x = Input((6, 4))
    y = layers.Dense(4)(x)
    y = layers.LayerNormalization()(y + x)
    scores = tf.nn.softmax(tf.matmul(y, y, transpose_b=True) / tf.sqrt(4.0))
    y = layers.Dense(3)(tf.matmul(scores, y))
    gate = tf.sigmoid(layers.Dense(3)(y))
    return Model(x, layers.LSTM(2)(gate * y + (1 - gate) * tf.reduce_mean(y, axis=1, keepdims=True)))


def two_calls():
    import tensorflow as tf
    from tf_keras import Input, Model, layers

    a, b = Input((3,), name="a"), Input((3,), name="b")
    distance = tf.abs(layers.Dense(2, name="tower")(a) - layers.Dense(2)(b))
    return Model([a, b], tf.reduce_sum(distance, axis=1, keepdims=True, name="distance"))
