"""The training cases. Layers that draw random numbers are not among them: those of Keras are its own."""

import keras
import numpy as np
from keras import layers, losses, optimizers, regularizers

CLASSES = 4


def floats(*shape, rows=48):
    return lambda random: random.standard_normal((rows, *shape)).astype("float32")


def labels(*shape, classes=CLASSES, rows=48, dtype="int32"):
    return lambda random: random.integers(0, classes, (rows, *shape)).astype(dtype)


def one_hot(random, rows=48):
    return np.eye(CLASSES, dtype="float32")[random.integers(0, CLASSES, rows)]


def shares(random, rows=48):
    y = random.random((rows, CLASSES)).astype("float32")
    return y / y.sum(-1, keepdims=True)


def pair(x, y):
    return lambda random: (x(random), y(random))


def mlp(units=CLASSES, activation="softmax", **options):
    return lambda: keras.Sequential([keras.Input((6,)), layers.Dense(8, "tanh", **options), layers.Dense(units, activation, **options)])


def stack(*make, shape, dtype="float32"):
    """Layers in a row, then a small head."""
    return lambda: keras.Sequential([keras.Input(shape, dtype=dtype), *(m() for m in make)])


def head():
    return [layers.Flatten, lambda: layers.Dense(CLASSES)]


def case(name, model, data, loss, **options):
    return {"name": name, "model": model, "data": data, "loss": loss, **options}


def cases():
    yield from optimizer_cases()
    yield from schedule_cases()
    yield from loss_cases()
    yield from layer_cases()
    yield from option_cases()


def optimizer_cases():
    o = optimizers
    variants = {
        "sgd": lambda: o.SGD(0.1),
        "sgd_momentum": lambda: o.SGD(0.05, momentum=0.9),
        "sgd_nesterov": lambda: o.SGD(0.05, momentum=0.9, nesterov=True),
        "rmsprop": lambda: o.RMSprop(),
        "rmsprop_momentum": lambda: o.RMSprop(0.002, momentum=0.8),
        "rmsprop_centered": lambda: o.RMSprop(0.002, centered=True, momentum=0.5),
        "adam": lambda: o.Adam(),
        "adam_amsgrad": lambda: o.Adam(0.01, amsgrad=True),
        "adamw": lambda: o.AdamW(0.01),
        "adamw_decay": lambda: o.AdamW(0.01, weight_decay=0.1),
        "adamax": lambda: o.Adamax(0.01),
        "adagrad": lambda: o.Adagrad(0.05),
        "adadelta": lambda: o.Adadelta(1.0),
        "nadam": lambda: o.Nadam(0.005),
        "ftrl": lambda: o.Ftrl(0.1),
        "ftrl_options": lambda: o.Ftrl(0.1, learning_rate_power=-0.4, l1_regularization_strength=0.01, l2_regularization_strength=0.02,
                                       l2_shrinkage_regularization_strength=0.01, beta=0.1),
        "lion": lambda: o.Lion(0.001),
        "lamb": lambda: o.Lamb(0.01),
        "adafactor": lambda: o.Adafactor(0.05),
        "adafactor_fixed": lambda: o.Adafactor(0.05, relative_step=False, clip_threshold=0.5),
        "muon": lambda: o.Muon(0.01),
        "muon_plain": lambda: o.Muon(0.01, nesterov=False, weight_decay=None, rms_rate=0.1, adam_lr_ratio=0.5),
        "schedule_free_adamw": lambda: o.ScheduleFreeAdamW(0.01, warmup_steps=10),
        "clipnorm": lambda: o.SGD(0.1, clipnorm=0.05),
        "clipvalue": lambda: o.SGD(0.1, clipvalue=0.01),
        "global_clipnorm": lambda: o.Adam(0.01, global_clipnorm=0.1),
        "weight_decay": lambda: o.SGD(0.1, momentum=0.5, weight_decay=0.05),
        "ema": lambda: o.Adam(0.01, use_ema=True, ema_momentum=0.9),
        "ema_overwrites": lambda: o.SGD(0.1, use_ema=True, ema_momentum=0.8, ema_overwrite_frequency=7),
        "accumulation": lambda: o.Adam(0.01, gradient_accumulation_steps=3),
        "accumulation_options": lambda: o.SGD(0.1, momentum=0.9, gradient_accumulation_steps=4, clipnorm=0.1, weight_decay=0.01),
        "accumulation_nadam": lambda: o.Nadam(0.01, gradient_accumulation_steps=2),
        "loss_scale": lambda: o.Adam(0.01, loss_scale_factor=1024.0),
        "loss_scale_dynamic": lambda: o.LossScaleOptimizer(o.SGD(0.1, momentum=0.5, gradient_accumulation_steps=2), initial_scale=64.0, dynamic_growth_steps=7),
        "loss_scale_adafactor": lambda: o.LossScaleOptimizer(o.Adafactor(0.05), initial_scale=64.0),
        "several": lambda: o.MultiOptimizer(o.OptimizerMap(o.SGD(0.1, momentum=0.5), {".*dense_1/.*": o.Adam(0.01, clipnorm=0.1)})),
        # The first steps overflow: they are left out until the scale has been halved often enough.
        "loss_scale_overflows": lambda: o.LossScaleOptimizer(o.Adam(0.01), initial_scale=2.0**127),
    }
    for name, optimizer in variants.items():
        yield case(f"optimizer_{name}", mlp(), pair(floats(6), labels()), "sparse_categorical_crossentropy", optimizer=optimizer)


def schedule_cases():
    s = optimizers.schedules
    variants = {
        "exponential": lambda: s.ExponentialDecay(0.2, 10, 0.7),
        "exponential_staircase": lambda: s.ExponentialDecay(0.2, 10, 0.7, staircase=True),
        "inverse_time": lambda: s.InverseTimeDecay(0.2, 10, 0.7),
        "piecewise_constant": lambda: s.PiecewiseConstantDecay([5, 20], [0.2, 0.1, 0.01]),
        "polynomial": lambda: s.PolynomialDecay(0.2, 30, 0.01, power=2.0),
        "polynomial_cycle": lambda: s.PolynomialDecay(0.2, 12, 0.01, cycle=True),
        "cosine": lambda: s.CosineDecay(0.2, 30, alpha=0.1),
        "cosine_warmup": lambda: s.CosineDecay(0.01, 30, warmup_target=0.2, warmup_steps=10),
        "cosine_restarts": lambda: s.CosineDecayRestarts(0.2, 7, m_mul=0.9),
        "cosine_restarts_even": lambda: s.CosineDecayRestarts(0.2, 7, t_mul=1.0, alpha=0.05),
    }
    for name, make in variants.items():
        yield case(f"schedule_{name}", mlp(), pair(floats(6), labels()), "sparse_categorical_crossentropy",
                   optimizer=lambda make=make: optimizers.SGD(make()))
    yield case("schedule_accumulation", mlp(), pair(floats(6), labels()), "sparse_categorical_crossentropy",
               optimizer=lambda: optimizers.SGD(s.CosineDecay(0.2, 30), gradient_accumulation_steps=3))


def loss_cases():
    l = losses  # noqa: E741
    linear, positive = mlp(3, None), mlp(3, "softplus")
    y3 = floats(3)
    binary = labels(3, classes=2, dtype="float32")
    for name, loss in {"mse": l.MeanSquaredError, "mae": l.MeanAbsoluteError, "mape": l.MeanAbsolutePercentageError, "huber": l.Huber,
                       "log_cosh": l.LogCosh, "cosine": l.CosineSimilarity}.items():
        slow = 0.0001 if name == "mape" else 0.05
        yield case(f"loss_{name}", linear, pair(floats(6), y3), loss, optimizer=lambda slow=slow: optimizers.SGD(slow))
    yield case("loss_huber_delta", linear, pair(floats(6), y3), lambda: l.Huber(delta=0.3, reduction="sum"), optimizer=lambda: optimizers.SGD(0.01),
               named={"name": "huber", "delta": 0.3, "reduction": "sum"})  # Keras forgets delta when it saves
    yield case("loss_msle", positive, pair(floats(6), lambda r: np.abs(y3(r))), "msle")
    yield case("loss_poisson", positive, pair(floats(6), lambda r: np.floor(np.abs(y3(r)))), "poisson")
    yield case("loss_kld", mlp(), pair(floats(6), shares), "kl_divergence", optimizer=lambda: optimizers.SGD(0.1))
    yield case("loss_hinge", linear, pair(floats(6), binary), "hinge")
    yield case("loss_squared_hinge", linear, pair(floats(6), lambda r: binary(r) * 2 - 1), "squared_hinge")
    yield case("loss_categorical_hinge", mlp(CLASSES, None), pair(floats(6), one_hot), "categorical_hinge")
    for logits in (False, True):
        kind, net = ("logits", mlp(CLASSES, None)) if logits else ("shares", mlp())
        yield case(f"loss_cce_{kind}", net, pair(floats(6), one_hot), lambda: l.CategoricalCrossentropy(from_logits=logits, label_smoothing=0.1))
        yield case(f"loss_cfce_{kind}", net, pair(floats(6), one_hot),
                   lambda: l.CategoricalFocalCrossentropy(from_logits=logits, alpha=0.4, gamma=1.5))
        yield case(f"loss_cfce_by_class_{kind}", net, pair(floats(6), one_hot),
                   lambda: l.CategoricalFocalCrossentropy(from_logits=logits, alpha=[0.1, 0.2, 0.3, 0.4], label_smoothing=0.1))
        yield case(f"loss_scce_{kind}", net, pair(floats(6), labels(1)), lambda: l.SparseCategoricalCrossentropy(from_logits=logits))
        yield case(f"loss_scce_ignore_{kind}", net, pair(floats(6), labels()),
                   lambda: l.SparseCategoricalCrossentropy(from_logits=logits, ignore_class=2))
        net = mlp(3, None) if logits else mlp(3, "sigmoid")
        yield case(f"loss_bce_{kind}", net, pair(floats(6), binary), lambda: l.BinaryCrossentropy(from_logits=logits, label_smoothing=0.1))
        yield case(f"loss_bfce_{kind}", net, pair(floats(6), binary),
                   lambda: l.BinaryFocalCrossentropy(from_logits=logits, apply_class_balancing=True, gamma=1.5))
    yield case("loss_bce_one", mlp(1, "sigmoid"), pair(floats(6), labels(classes=2)), "binary_crossentropy")
    yield case("loss_dice", mlp(3, "sigmoid"), pair(floats(6), binary), "dice", optimizer=lambda: optimizers.SGD(0.2))
    yield case("loss_tversky", mlp(3, "sigmoid"), pair(floats(6), binary), lambda: l.Tversky(alpha=0.3, beta=0.6, axis=(1,)))
    yield case("loss_circle", stack(lambda: layers.Dense(5), layers.UnitNormalization, shape=(6,)), pair(floats(6), labels()),
               lambda: l.Circle(gamma=8, margin=0.3), optimizer=lambda: optimizers.SGD(0.01))
    spoken = lambda: keras.Sequential([keras.Input((7, 5)), layers.GRU(6, return_sequences=True), layers.Dense(CLASSES)])  # noqa: E731
    yield case("loss_ctc", spoken, pair(floats(7, 5), lambda r: labels(3)(r) * (np.arange(3) < r.integers(1, 4, (48, 1)))), "ctc", optimizer=lambda: optimizers.SGD(0.05))
    yield case("loss_gce", mlp(), pair(floats(6), labels()), lambda: l.CategoricalGeneralizedCrossEntropy(q=0.7))
    for reduction in ("sum", "mean", "mean_with_sample_weight"):
        yield case(f"loss_weighted_{reduction}", linear, pair(floats(6), y3), lambda: l.MeanSquaredError(reduction=reduction),
                   weights=lambda r: r.random(48).astype("float32"), optimizer=lambda: optimizers.SGD(0.01))


def layer_cases():
    adam = lambda: optimizers.Adam(0.01)  # noqa: E731
    mse = lambda *y: pair_of(floats(*y))  # noqa: E731

    def pair_of(y):
        return lambda shape: (lambda random: (floats(*shape)(random), y(random)))

    def one(name, *make, shape, steps=20, y=(CLASSES,)):
        return case(f"layer_{name}", stack(*make, *head(), shape=shape), mse(*y)(shape), "mse", optimizer=adam, steps=steps)

    L = layers  # noqa: N806
    yield one("conv1d", lambda: L.Conv1D(5, 3, activation="relu"), shape=(9, 3))
    yield one("conv1d_causal_dilated", lambda: L.Conv1D(5, 3, padding="causal", dilation_rate=2, activation="elu"), shape=(9, 3))
    yield one("conv2d", lambda: L.Conv2D(4, 3, padding="same", activation="relu"), lambda: L.Conv2D(3, 2, strides=2), shape=(7, 6, 2))
    yield one("conv2d_groups", lambda: L.Conv2D(6, 3, groups=2, strides=(2, 1), activation="gelu"), shape=(7, 6, 4))
    yield one("conv2d_first", lambda: L.Conv2D(4, 3, data_format="channels_first", activation="relu"), shape=(2, 7, 6))
    yield one("conv3d", lambda: L.Conv3D(3, 2, activation="tanh"), shape=(4, 4, 3, 2))
    yield one("conv1d_transpose", lambda: L.Conv1DTranspose(4, 3, strides=2, padding="same"), shape=(5, 3))
    yield one("conv2d_transpose", lambda: L.Conv2DTranspose(4, 3, strides=2, activation="relu"), shape=(4, 3, 3))
    yield one("depthwise", lambda: L.DepthwiseConv2D(3, depth_multiplier=2, activation="relu"), shape=(6, 6, 3))
    yield one("separable", lambda: L.SeparableConv2D(4, 3, padding="same", activation="silu"), shape=(6, 6, 3))
    for kind in ("Max", "Average"):
        pool = getattr(L, f"{kind}Pooling2D")
        yield one(f"{kind.lower()}_pool", lambda: L.Conv2D(3, 2), lambda pool=pool: pool(2), shape=(7, 7, 2))
        yield one(f"{kind.lower()}_pool_same", lambda: L.Conv2D(3, 2), lambda pool=pool: pool(3, strides=2, padding="same"), shape=(7, 7, 2))
        yield one(f"global_{kind.lower()}_pool", lambda: L.Conv1D(6, 2), getattr(L, f"Global{kind}Pooling1D"), shape=(7, 2))
    yield one("adaptive_pool", lambda: L.Conv2D(3, 2), lambda: L.AdaptiveAveragePooling2D((3, 2)), shape=(7, 7, 2))
    # A bias before it would get gradients of zero but for rounding, which Adam makes large.
    yield one("batch_norm", lambda: L.Dense(6, use_bias=False), lambda: L.BatchNormalization(momentum=0.8), lambda: L.Activation("relu"), shape=(5,))
    yield one("batch_norm_2d", lambda: L.Conv2D(4, 3, use_bias=False), L.BatchNormalization, lambda: L.Activation("relu"), shape=(6, 6, 2))
    yield one("layer_norm", lambda: L.Dense(6), L.LayerNormalization, shape=(5,))
    yield one("batch_renorm", lambda: L.Dense(6, use_bias=False), lambda: L.BatchNormalization(renorm=True, momentum=0.8, renorm_momentum=0.7), shape=(5,))
    yield one("batch_renorm_clipped", lambda: L.Conv2D(4, 2, use_bias=False),
              lambda: L.BatchNormalization(renorm=True, renorm_clipping={"rmin": 0.5, "rmax": 1.5, "dmax": 0.3}, scale=False), shape=(5, 5, 2))
    yield one("spectral_norm", lambda: L.SpectralNormalization(L.Dense(6, kernel_regularizer="l2"), power_iterations=2), shape=(5,))
    yield one("spectral_norm_conv", lambda: L.SpectralNormalization(L.Conv2D(4, 3)), shape=(5, 5, 2))
    yield one("depthwise_options", lambda: L.DepthwiseConv2D(3, depthwise_regularizer="l2", depthwise_constraint="unit_norm"), shape=(5, 5, 2))
    yield one("group_norm", lambda: L.Conv2D(6, 3), lambda: L.GroupNormalization(3), shape=(6, 6, 2))
    yield one("rms_norm", lambda: L.Dense(6), L.RMSNormalization, shape=(5,))
    yield one("unit_norm", lambda: L.Dense(6), L.UnitNormalization, shape=(5,))
    for rnn in ("LSTM", "GRU", "SimpleRNN"):
        make = getattr(L, rnn)
        yield one(rnn.lower(), lambda make=make: make(6), shape=(7, 3))
        yield one(f"{rnn.lower()}_sequences", lambda make=make: make(5, return_sequences=True), lambda make=make: make(4, go_backwards=True),
                  shape=(7, 3))
        yield one(f"{rnn.lower()}_bidirectional", lambda make=make: L.Bidirectional(make(4, return_sequences=True)), shape=(6, 3))
    yield one("gru_reset_before", lambda: L.GRU(5, reset_after=False), shape=(7, 3))
    yield one("rnn_cells", lambda: L.RNN([L.LSTMCell(4), L.GRUCell(3)]), shape=(6, 3))
    yield one("conv_lstm", lambda: L.ConvLSTM1D(3, 2), shape=(4, 6, 2), steps=12)
    yield one("time_distributed", lambda: L.TimeDistributed(L.Dense(4, "relu")), shape=(5, 3))
    yield one("time_distributed_activity", lambda: L.TimeDistributed(L.Dense(4, activity_regularizer="l2")),
              lambda: L.TimeDistributed(keras.Sequential([L.Dense(3, activity_regularizer="l2"), L.Dense(4)])), shape=(5, 3))
    # Keras calls the layer at each time, which has statistics of its own then.
    yield one("time_distributed_batch_norm", lambda: L.TimeDistributed(L.BatchNormalization(momentum=0.8)), shape=(4, 6))
    yield one("time_distributed_network", lambda: L.TimeDistributed(keras.Sequential([L.Conv1D(3, 2, use_bias=False), L.BatchNormalization(), L.ReLU(), L.GlobalAveragePooling1D()])),
              lambda: L.GRU(4), shape=(4, 6, 2))
    yield one("time_distributed_spectral_norm", lambda: L.TimeDistributed(L.SpectralNormalization(L.Dense(3))), shape=(4, 6))
    yield one("prelu", lambda: L.Dense(6), L.PReLU, shape=(5,))
    yield one("einsum_dense", lambda: L.EinsumDense("abc,cd->abd", output_shape=(5, 4), bias_axes="d"), shape=(5, 3))
    yield one("padding_cropping", lambda: L.Conv1D(4, 2), lambda: L.ZeroPadding1D(2), lambda: L.Cropping1D((1, 2)), lambda: L.UpSampling1D(2),
              shape=(6, 2))
    yield one("permute_reshape", lambda: L.Permute((2, 1)), lambda: L.Reshape((6, 2)), lambda: L.Dense(3), lambda: L.Dense(2), shape=(4, 3))
    for activation in ("relu", "relu6", "leaky_relu", "elu", "selu", "celu", "gelu", "silu", "sigmoid", "hard_sigmoid", "hard_silu", "hard_tanh",
                       "softplus", "softsign", "mish", "tanh", "exponential", "log_softmax", "softmax", "squareplus", "soft_shrink", "hard_shrink",
                       "tanh_shrink", "sparse_plus", "log_sigmoid", "sparsemax", "linear"):
        yield one(f"activation_{activation}", lambda: L.Dense(6), lambda activation=activation: L.Activation(activation), shape=(5,), steps=12)

    def merged(layer):
        def make():
            x = keras.Input((5,))
            a, b = L.Dense(4, "tanh")(x), L.Dense(4)(x)
            return keras.Model(x, L.Dense(CLASSES)(layer()([a, b])))
        return make

    for name in ("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Concatenate"):
        yield case(f"layer_{name.lower()}", merged(getattr(L, name)), mse(CLASSES)((5,)), "mse", optimizer=adam, steps=20)
    yield case("layer_dot", merged(lambda: L.Dot(1, normalize=True)), mse(CLASSES)((5,)), "mse", optimizer=adam, steps=20)

    def ties():
        x = keras.Input((5,))
        dense = lambda: L.Dense(4, bias_initializer="ones")(x)  # noqa: E731
        one = keras.ops.ones((1, 4))
        o = keras.ops
        kinds = [o.maximum(dense(), 1.0), o.minimum(1.0, dense()), o.clip(dense(), -2.0, 1.0), o.clip(dense(), 1.0, 2.0), o.logaddexp(dense(), one), o.logaddexp2(one, dense()),
                 o.hypot(dense(), one), L.Maximum()([dense(), dense()]), L.Minimum()([dense(), dense(), dense()])]
        return keras.Model(x, L.Dense(CLASSES)(L.Concatenate()(kinds)))

    def zeros(random):
        return np.where(np.arange(48)[:, None] % 3 > 0, floats(5)(random), 0).astype("float32"), floats(CLASSES)(random)

    # Rows of zeros leave the biases, on which both sides of what is compared are equal.
    yield case("layer_ties", ties, zeros, "mse", optimizer=lambda: optimizers.SGD(0.02), steps=20, as_built=True)

    def attention():
        x = keras.Input((5, 6))
        y = L.MultiHeadAttention(2, 3)(x, x, use_causal_mask=True)
        y = L.LayerNormalization()(x + y)
        return keras.Model(x, L.Dense(CLASSES)(L.GlobalAveragePooling1D()(y)))

    # Biases of keys get gradients of zero but for rounding: no Adam.
    yield case("layer_multi_head_attention", attention, mse(CLASSES)((5, 6)), "mse", steps=20)

    def grouped():
        x = keras.Input((5, 6))
        return keras.Model(x, L.Dense(CLASSES)(L.Flatten()(L.GroupQueryAttention(3, 4, 2)(x, x))))

    def regularized():
        x = keras.Input((5, 6))
        y = L.MultiHeadAttention(2, 3, kernel_regularizer="l2", activity_regularizer="l2")(x, x)
        return keras.Model(x, L.Dense(CLASSES)(L.Flatten()(y)))

    yield case("layer_attention_regularized", regularized, mse(CLASSES)((5, 6)), "mse", steps=20)
    yield case("layer_group_query_attention", grouped, mse(CLASSES)((5, 6)), "mse", steps=20)

    def plain(layer):
        def make():
            x = keras.Input((5, 4))
            a, b = L.Dense(4)(x), L.Dense(4)(x)
            return keras.Model(x, L.Dense(CLASSES)(L.Flatten()(layer()([a, b]))))
        return make

    yield case("layer_attention", plain(lambda: L.Attention(use_scale=True)), mse(CLASSES)((5, 4)), "mse", optimizer=adam, steps=20)
    yield case("layer_additive_attention", plain(L.AdditiveAttention), mse(CLASSES)((5, 4)), "mse", optimizer=adam, steps=20)
    words = labels(7, classes=9)
    for name, tail in {"mean": [L.GlobalAveragePooling1D], "lstm": [lambda: L.LSTM(5)], "gru_sequences": [lambda: L.GRU(5, return_sequences=True)]}.items():
        yield case(f"layer_embedding_{name}", stack(lambda: L.Embedding(9, 4, mask_zero=True), *tail, lambda: L.Dense(3), shape=(7,), dtype="int32"),
                   pair(words, floats(*((7, 3) if "sequences" in name else (3,)))), "mse", optimizer=adam, steps=20)
    yield case("layer_embedding_plain", stack(lambda: L.Embedding(9, 4), *head(), shape=(7,), dtype="int32"), pair(words, floats(CLASSES)), "mse",
               optimizer=adam, steps=30)


def option_cases():
    L = layers  # noqa: N806
    data = pair(floats(6), floats(3))
    sgd = lambda: optimizers.SGD(0.05)  # noqa: E731
    for name, regularizer in {"l1": regularizers.L1(0.02), "l2": regularizers.L2(0.02), "l1_l2": regularizers.L1L2(0.01, 0.02),
                              "orthogonal": regularizers.OrthogonalRegularizer(0.3, mode="columns")}.items():
        yield case(f"regularizer_{name}", mlp(3, None, kernel_regularizer=regularizer), data, "mse", optimizer=sgd)
    yield case("regularizer_activity", mlp(3, None, activity_regularizer="l2", bias_regularizer="l1"), data, "mse", optimizer=sgd)
    yield case("regularizer_of_zeros", mlp(3, None, bias_regularizer=regularizers.L1(0.1)), data, "mse", optimizer=lambda: optimizers.SGD(0.1))
    yield case("regularizer_recurrent", stack(lambda: L.LSTM(4, kernel_regularizer="l2", recurrent_regularizer="l1", bias_regularizer="l2"),
                                              lambda: L.ActivityRegularization(0.01, 0.02), lambda: L.Dense(3), shape=(5, 3)),
               pair(floats(5, 3), floats(3)), "mse", optimizer=sgd, steps=20)
    c = keras.constraints
    for name, constraint in {"max_norm": c.MaxNorm(0.8), "non_neg": c.NonNeg(), "unit_norm": c.UnitNorm(axis=1),
                             "min_max_norm": c.MinMaxNorm(0.3, 0.9, rate=0.7)}.items():
        yield case(f"constraint_{name}", mlp(3, None, kernel_constraint=constraint), data, "mse", optimizer=sgd)

    def frozen():
        net = keras.Sequential([keras.Input((6,)), L.Dense(6, "relu"), L.BatchNormalization(), L.Dense(5, "relu"), L.BatchNormalization(), L.Dense(3)])
        net.layers[0].trainable = False
        net.layers[1].trainable = False
        return net

    yield case("frozen_layers", frozen, data, "mse", optimizer=lambda: optimizers.SGD(0.01))

    def frozen_inside():
        inner = keras.Sequential([keras.Input((6,)), L.Dense(5, "relu"), L.Dense(4)])
        inner.trainable = False
        x = keras.Input((6,))
        return keras.Model(x, L.Dense(3)(inner(x)))

    yield case("frozen_model_inside", frozen_inside, data, "mse", optimizer=sgd)

    def shared():
        x = keras.Input((6,))
        dense, norm = L.Dense(6, "tanh"), L.BatchNormalization()
        return keras.Model(x, L.Dense(3)(norm(dense(norm(dense(x))))))

    yield case("shared_layers", shared, data, "mse", optimizer=sgd)

    def shared_inside():
        shared = keras.Sequential([keras.Input((6,)), L.Dense(6, "tanh", kernel_regularizer="l2")])
        return keras.Sequential([keras.Input((6,)), shared, keras.Sequential([keras.Input((6,)), shared, L.Dense(3)])])

    yield case("shared_inside_and_beside", shared_inside, data, "mse", optimizer=lambda: optimizers.Adam(0.01))

    def shared_activity():
        x = keras.Input((6,))
        outer, inner = L.Dense(6, activity_regularizer="l2"), L.Dense(6, activity_regularizer=regularizers.L1(0.05))
        twice = keras.Input((6,))
        model = keras.Model(twice, inner(inner(twice)))
        return keras.Model(x, L.Dense(3)(model(outer(outer(x)))))

    # What a layer that the model calls twice adds to the loss is that of its last call; inside of a model it is that of both.
    yield case("shared_activity", shared_activity, data, "mse", optimizer=sgd)
    for name in ("float16", "bfloat16", "mixed_bfloat16"):
        # 16 bits of a number: only a few steps are alike. The sum of products is rounded elsewhere.
        net = stack(lambda name=name: L.Dense(4, "relu", dtype=name), lambda name=name: L.Dense(3, dtype=name), shape=(6,))
        yield case(f"policy_{name}", net, data, "mse", optimizer=lambda: optimizers.Adam(0.002), steps=4, tolerance=2e-2)

    def two_outputs():
        a, b = keras.Input((6,)), keras.Input((4,))
        h = L.Dense(5, "relu")(L.Concatenate()([a, b]))
        return keras.Model([a, b], [L.Dense(3, name="first")(h), L.Dense(CLASSES, "softmax", name="second")(h)])

    yield case("two_outputs", two_outputs, lambda r: ([floats(6)(r), floats(4)(r)], [floats(3)(r), labels()(r)]),
               ["mse", "sparse_categorical_crossentropy"], optimizer=sgd, loss_weights=[0.3, 1.5])

    def residual():
        x = keras.Input((8, 8, 3))
        y = L.Conv2D(4, 3, padding="same")(x)
        for _ in range(2):
            z = L.Activation("relu")(L.BatchNormalization()(L.Conv2D(4, 3, padding="same", use_bias=False)(y)))
            y = L.Add()([y, z])
        return keras.Model(x, L.Dense(CLASSES, "softmax")(L.GlobalAveragePooling2D()(L.MaxPooling2D()(y))))

    yield case("residual_network", residual, pair(floats(8, 8, 3), labels()), "sparse_categorical_crossentropy", optimizer=lambda: optimizers.Adam(0.005),
               steps=20)
    yield case("short_last_batch", mlp(3, None), pair(floats(6, rows=41), floats(3, rows=41)), "mse", optimizer=sgd)
