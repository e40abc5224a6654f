"""Preprocessing of numbers and categories: Rescaling, Normalization, Discretization, CategoryEncoding, IntegerLookup, Pipeline, spectrograms."""

import itertools

import keras
import numpy as np
from harness import case, layer
from keras import layers


def cases():
    yield from rescaling()
    yield from normalization()
    yield from discretization()
    yield from category_encoding()
    yield from integer_lookup()
    yield from pipeline()
    yield from stft_spectrogram()
    yield from mel_spectrogram()


def rescaling():
    yield layer("rescaling", layers.Rescaling(1 / 127.5, offset=-1), (4, 3))
    yield layer("rescaling_without_offset", layers.Rescaling(2.5), (4,))
    yield layer("rescaling_lists", layers.Rescaling([0.5, 2, 3], offset=[1, 2, -3]), (4, 3), formats=("keras",))
    yield layer("rescaling_array", layers.Rescaling(np.array([0.5, 2, 3])), (4, 3), formats=("keras",))
    yield layer("rescaling_array_of_two_axes", layers.Rescaling(np.arange(12.0).reshape(4, 3), offset=0.5), (4, 3), formats=("keras",))
    pixels = np.arange(72, dtype="uint8").reshape(3, 4, 2, 3) * 3
    yield layer("rescaling_uint8", layers.Rescaling(1 / 255), (4, 2, 3), dtype="uint8", inputs=pixels)
    yield layer("rescaling_int32", layers.Rescaling(0.1, offset=1), (4,), dtype="int32")
    yield layer("rescaling_float16", layers.Rescaling(0.1, dtype="float16"), (4,))
    yield layer("rescaling_float64", lambda: layers.Rescaling(1 / 3, offset=0.1, dtype="float64"), (4,), dtype="float64", oracle="tensorflow")


def normalization():
    yield layer("normalization_weights", layers.Normalization(), (4, 3))
    yield layer("normalization_adapted", adapted(), (3,), keep_weights=True)
    yield layer("normalization_axis_none", layers.Normalization(axis=None), (4, 3))
    yield layer("normalization_axis_1", layers.Normalization(axis=1), (4, 3))
    # Tuples become lists in .h5, which Keras then reads wrongly.
    yield layer("normalization_two_axes", layers.Normalization(axis=(1, -1)), (4, 2, 3), formats=("keras",))
    yield layer("normalization_two_axes_apart", layers.Normalization(axis=(3, 1)), (4, 2, 3), formats=("keras",))
    for invert in (False, True):
        tail = "_inverted" if invert else ""
        yield layer(f"normalization_given{tail}", layers.Normalization(mean=[1.0, -2.0, 3.0], variance=[0.5, 2.0, 4.0], invert=invert), (4, 3))
        yield layer(f"normalization_given_scalars{tail}", layers.Normalization(mean=0.7, variance=3.0, invert=invert), (4, 3))
        yield layer(f"normalization_weights{tail}_of_images", layers.Normalization(invert=invert), (4, 2, 3))
    yield layer("normalization_given_scalars_axis_none", layers.Normalization(axis=None, mean=0.7, variance=3.0), (4, 3))
    yield layer(
        "normalization_given_for_two_axes",
        layers.Normalization(axis=(1, 2), mean=np.arange(12.0).reshape(4, 3), variance=np.arange(1.0, 13).reshape(4, 3)),
        (4, 3),
        formats=("keras",),
    )
    yield layer("normalization_given_for_the_last_of_two_axes", layers.Normalization(axis=(1, 2), mean=[1.0, 2, 3], variance=[4.0, 5, 6]), (4, 3), formats=("keras",))
    yield layer("normalization_no_variance", layers.Normalization(mean=[1.0, 2.0], variance=[0.0, 1e-20]), (2,))
    yield layer("normalization_int32", layers.Normalization(mean=2.0, variance=3.0), (4,), dtype="int32")
    yield layer("normalization_mixed_float16", layers.Normalization(mean=[1.0, 2.0], variance=[0.5, 2.0], dtype="mixed_float16"), (2,))


def adapted():
    norm = layers.Normalization()
    norm.adapt(np.random.default_rng(3).normal(2, 3, (50, 3)).astype("float32"))
    return norm


def discretization():
    x = np.array([[-1.5, 1.0, 3.4, 0.5], [0.0, 3.0, 1.3, -0.0], [2.0, 1.9999, 1e9, np.nan]], "float32")
    for mode in ("int", "one_hot", "multi_hot", "count"):
        yield layer(f"discretization_{mode}", layers.Discretization([0.0, 1.0, 2.0], output_mode=mode), (4,), inputs=x)
        yield layer(f"discretization_{mode}_of_one", layers.Discretization([0.0, 1.0, 2.0], output_mode=mode), (1,), inputs=x[:, 1:2])
        yield layer(f"discretization_{mode}_of_three_axes", layers.Discretization([0.0, 1.0, 2.0], output_mode=mode), (2, 2), inputs=x.reshape(3, 2, 2))
    yield layer("discretization_int32", layers.Discretization([0.5, 2.0]), (4,), dtype="int32")
    yield layer("discretization_one_boundary", layers.Discretization([0.1]), (4,), inputs=x)
    yield layer("discretization_many_boundaries", layers.Discretization(np.linspace(-3, 3, 200).tolist()), (40,))
    yield layer("discretization_adapted", adapted_bins, (4,), inputs=x[:2], oracle="tensorflow")
    yield layer("discretization_float16", layers.Discretization([0.0, 1.0, 2.0], output_mode="one_hot", dtype="float16"), (4,), inputs=x[:2])


def adapted_bins():
    bins = layers.Discretization(num_bins=4, epsilon=0.01)
    bins.adapt(np.random.default_rng(3).normal(1, 1, (50, 3)).astype("float32"))
    return bins


def category_encoding():
    x = np.array([[0, 3, 3, 1], [5, 0, 2, 2], [4, 4, 4, 4]])
    for mode, dtype in itertools.product(("one_hot", "multi_hot", "count"), ("int32", "float32")):
        yield layer(f"category_encoding_{mode}_{dtype}", layers.CategoryEncoding(6, output_mode=mode), (4,), inputs=x.astype(dtype), dtype=dtype)
    for mode in ("one_hot", "multi_hot", "count"):
        encoding = layers.CategoryEncoding(6, output_mode=mode)
        yield layer(f"category_encoding_{mode}_of_one", encoding, (1,), inputs=x[:, :1], dtype="int32")
        encoding = layers.CategoryEncoding(6, output_mode=mode)
        yield layer(f"category_encoding_{mode}_of_three_axes", encoding, (2, 2), inputs=x.reshape(3, 2, 2), dtype="int32")
        encoding = layers.CategoryEncoding(3, output_mode=mode)
        yield layer(f"category_encoding_{mode}_outside", encoding, (4,), inputs=x - 1, dtype="int32")
        encoding = layers.CategoryEncoding(6, output_mode=mode, dtype="float16")
        yield layer(f"category_encoding_{mode}_float16", encoding, (4,), inputs=x, dtype="int32")
    encoding = layers.CategoryEncoding(6, output_mode="one_hot")
    yield layer("category_encoding_of_scalars", encoding, (), inputs=x[0, :3], dtype="int32")
    yield case("category_encoding_count_weights", count_weights(), [x, np.arange(12).reshape(3, 4) / 3])


def count_weights():
    x, weights = keras.Input((4,), dtype="int32"), keras.Input((4,))
    return keras.Model([x, weights], layers.CategoryEncoding(6, output_mode="count")(x, count_weights=weights))


def integer_lookup():
    x = np.array([[12, 36, 1138, 42], [42, 1000, 36, 0], [-5, 7, 12, 12]])

    def lookup(name, shape=(4,), inputs=x, formats=("keras", "h5"), adapt=None, **options):
        def make():
            instance = layers.IntegerLookup(**options)
            if adapt is not None:
                instance.adapt(adapt)
            return instance

        return layer(f"integer_lookup_{name}", make, shape, dtype="int64", inputs=inputs, oracle="tensorflow", eager=True, formats=formats)

    words = [12, 36, 1138, 42]
    for mode in ("int", "one_hot", "multi_hot", "count"):
        yield lookup(mode, vocabulary=words, output_mode=mode)
        yield lookup(f"{mode}_masked", vocabulary=words, output_mode=mode, mask_token=0)
        yield lookup(f"{mode}_three_unknown", vocabulary=words, output_mode=mode, num_oov_indices=3)
        yield lookup(f"{mode}_masked_two_unknown", vocabulary=words, output_mode=mode, num_oov_indices=2, mask_token=0)
        yield lookup(f"{mode}_known", vocabulary=words, output_mode=mode, num_oov_indices=0, inputs=np.array([[12, 36, 42, 42]]))
        yield lookup(f"{mode}_of_one", shape=(1,), inputs=x[:, :1], vocabulary=words, output_mode=mode)
        yield lookup(f"{mode}_of_three_axes", shape=(2, 2), inputs=x.reshape(3, 2, 2), vocabulary=words, output_mode=mode)
        if mode != "int":
            yield lookup(f"{mode}_padded", vocabulary=words, output_mode=mode, max_tokens=9, pad_to_max_tokens=True)
        # Adapted vocabularies are assets, which .h5 has no place for.
        yield lookup(f"{mode}_adapted", output_mode=mode, adapt=np.array([12, 36, 36, 42, 42, 42]), formats=("keras",))
        yield lookup(f"{mode}_adapted_masked", output_mode=mode, adapt=np.array([12, 36, 36, 0, 42]), mask_token=0, formats=("keras",))
    yield lookup("special_tokens_listed", vocabulary=[0, -1, 12, 36, 1138, 42], mask_token=0)
    yield lookup("other_unknown_token", vocabulary=words, oov_token=7)
    yield lookup("large", vocabulary=list(range(0, 3000, 3)))
    yield lookup("extreme_tokens", vocabulary=[2**62, -(2**62), 0], inputs=np.array([[2**62, -(2**62), 2**62 - 1, 0]]))
    indices = np.array([[0, 1, 2, 3], [4, 5, 6, -1]])
    yield lookup("inverted", vocabulary=words, invert=True, inputs=indices)
    yield lookup("inverted_masked", vocabulary=words, invert=True, mask_token=0, inputs=indices)
    yield lookup("inverted_two_unknown", vocabulary=words, invert=True, num_oov_indices=2, oov_token=-7, inputs=indices)
    yield lookup("inverted_adapted", adapt=np.array([12, 36, 36, 42, 42, 42]), invert=True, inputs=indices, formats=("keras",))
    weights = [0.25, 0.75, 0.6, 0.4]
    yield lookup("tf_idf", vocabulary=words, idf_weights=weights, output_mode="tf_idf")
    yield lookup("tf_idf_two_unknown", vocabulary=words, idf_weights=weights, output_mode="tf_idf", num_oov_indices=2)
    yield lookup("tf_idf_masked", vocabulary=words, idf_weights=weights, output_mode="tf_idf", mask_token=0)
    yield lookup("tf_idf_padded", vocabulary=words, idf_weights=weights, output_mode="tf_idf", max_tokens=9, pad_to_max_tokens=True)
    yield lookup("tf_idf_special_tokens_listed", vocabulary=[-1, *words], idf_weights=[0.9, *weights], output_mode="tf_idf")
    documents = np.array([[12, 36, 36, 42], [12, 12, 7, 42]])
    yield lookup("tf_idf_adapted", adapt=documents, output_mode="tf_idf", formats=("keras",))
    yield lookup("tf_idf_adapted_padded", adapt=documents, output_mode="tf_idf", max_tokens=9, pad_to_max_tokens=True, formats=("keras",))
    yield case("integer_lookup_nested", nested_lookups, [x], oracle="tensorflow", eager=True, formats=("keras",))
    yield case(
        "integer_lookup_hashed",
        lambda: keras.Sequential([keras.Input((4,), dtype="int64"), layers.IntegerLookup(vocabulary=words, num_oov_indices=2, oov_method="farmhash")]),
        oracle="tensorflow",
        refused="hash",
    )


def nested_lookups():
    """Two adapted vocabularies: each finds its own file."""
    first, second = layers.IntegerLookup(), layers.IntegerLookup()
    first.adapt(np.array([12, 36, 36]))
    second.adapt(np.array([1138, 42, 42]))
    x = keras.Input((4,), dtype="int64")
    inner = keras.Model(x, [first(x), second(x)])
    y = keras.Input((4,), dtype="int64")
    return keras.Model(y, inner(y))


def pipeline():
    def make():
        normalization = layers.Normalization(mean=[1.0, 2, 3], variance=[2.0, 3, 4])
        normalization.build((None, 4, 4, 3))  # inside of the pipeline's build it would keep a symbolic tensor
        return layers.Pipeline([layers.Rescaling(0.5), normalization, layers.RandomFlip(), layers.Rescaling(2.0)])

    yield layer("pipeline", make, (4, 4, 3), oracle="tensorflow", eager=True, formats=("keras",))


def stft_spectrogram():
    for mode in ("log", "magnitude", "psd", "real", "imag", "angle", "stft"):
        yield layer(f"stft_spectrogram_{mode}", layers.STFTSpectrogram(mode=mode, frame_length=16), (50, 2))
    yield layer("stft_spectrogram_own_weights", layers.STFTSpectrogram(mode="magnitude", frame_length=16), (50, 1), keep_weights=True)
    for data_format, expand in itertools.product(("channels_last", "channels_first"), (False, True)):
        shape = (50, 2) if data_format == "channels_last" else (2, 50)
        options = {"data_format": data_format, "expand_dims": expand}
        tail = data_format + ("_expanded" if expand else "")
        yield layer(f"stft_spectrogram_{tail}", layers.STFTSpectrogram(frame_length=16, frame_step=5, padding="same", **options), shape)
        yield layer(f"stft_spectrogram_stft_{tail}", layers.STFTSpectrogram(mode="stft", frame_length=12, **options), shape)
    yield layer("stft_spectrogram_fft_length", layers.STFTSpectrogram(frame_length=12, frame_step=3, fft_length=20, window="hamming"), (50, 1))
    yield layer("stft_spectrogram_unscaled", layers.STFTSpectrogram(mode="psd", frame_length=12, scaling=None, window=None), (50, 1), keep_weights=True)
    yield layer("stft_spectrogram_periodic", layers.STFTSpectrogram(mode="psd", frame_length=12, periodic=True, scaling="spectrum"), (50, 1), keep_weights=True)


def mel_spectrogram():
    def mel(name, shape=(400,), **options):
        options = {"fft_length": 64, "sequence_stride": 32, "num_mel_bins": 10, "sampling_rate": 8000} | options
        # The level that everything below is cut at is that of the whole batch.
        return layer(f"mel_spectrogram_{name}", layers.MelSpectrogram(**options), shape, single=not options.get("power_to_db", True))

    yield mel("db")
    yield mel("power", power_to_db=False)
    yield mel("magnitude", power_to_db=False, mag_exp=1.0)
    yield mel("hamming", window="hamming", power_to_db=False)
    yield mel("no_window", window=None, power_to_db=False)
    yield mel("no_window_shorter_than_the_transform", window=None, sequence_length=48, power_to_db=False)
    yield mel("shorter_than_the_transform", sequence_length=40, power_to_db=False)
    yield mel("odd_length", sequence_length=41, fft_length=63, sequence_stride=17, power_to_db=False)
    yield mel("frequencies", min_freq=300.0, max_freq=3000.0, num_mel_bins=5, power_to_db=False)
    yield mel("references", top_db=10.0, ref_power=3.0, min_power=1e-3)
    yield mel("float16", power_to_db=False, dtype="float16")
    yield mel("channels", shape=(2, 300), power_to_db=False)
    yield layer("mel_spectrogram_defaults", layers.MelSpectrogram(), (5000,), single=False, batch=2)
    yield layer("mel_spectrogram_too_long", layers.MelSpectrogram(fft_length=8192), (9000,), refused="8192")
