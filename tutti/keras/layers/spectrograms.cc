// Spectrograms: short-time Fourier transforms as convolutions with sines and cosines.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "tutti/graph/compose.h"
#include "tutti/keras/layers/families.h"
#include "tutti/keras/layers/operations/operand.h"
#include "tutti/keras/layers/windows.h"

namespace tutti::keras {

namespace {

// x: [n, time, channels] -> [n, channels, frequencies, frames]
Value frames(Value x, Value kernel, int64_t step, const std::string& padding) {
  int64_t n = x.extent(0), time = x.extent(1), channels = x.extent(2);
  Value y = reshape(transpose(x, {0, 2, 1}), Shape({n * channels, time, 1}));
  y = transpose(convolve(y, kernel, {.strides = {step}, .padding = padding}), {0, 2, 1});
  return reshape(y, {n, channels, y.extent(1), y.extent(2)});
}

// [n, channels, frequencies, frames] as the layer's options arrange it.
Value arrange(const Config& config, Value y) {
  bool first = config.channels_first();
  if (config.flag("expand_dims", false)) return transpose(y, first ? Ints{0, 1, 3, 2} : Ints{0, 3, 2, 1});
  y = reshape(y, {y.extent(0), y.extent(1) * y.extent(2), y.extent(3)});
  return first ? y : transpose(y, {0, 2, 1});
}

Outputs stft_spectrogram(Call& c) {
  constexpr int64_t longest = int64_t{1} << 20;
  std::string mode = c.config.text("mode", "log");
  int64_t length = c.config.positive("frame_length", 256, longest);
  int64_t step = c.config.has("frame_step") ? c.config.integer("frame_step") : std::max<int64_t>(length / 2, 1);
  int64_t fft = 1;
  while (fft < length) fft *= 2;
  if (c.config.has("fft_length")) fft = c.config.positive("fft_length", longest);
  Value x = spatial_input(c, 1);
  if (c.config.channels_first()) x = transpose(x, {0, 2, 1});
  auto part = [&](const char* name) {
    Value kernel = convert(c.weight(name, {length, 1, fft / 2 + 1}), x.dtype());
    return frames(x, kernel, step, c.config.text("padding", "valid"));
  };
  Value real, imaginary;
  if (mode != "imag") real = part("real_kernel");
  if (mode != "real") imaginary = part("imag_kernel");
  if (mode == "real") return arrange(c.config, real);
  if (mode == "imag") return arrange(c.config, imaginary);
  if (mode == "angle") return arrange(c.config, binary(Op::atan2, imaginary, real));
  if (mode == "stft") return arrange(c.config, concatenate({real, imaginary}, 2));
  Value power = square(real) + square(imaginary);
  if (mode == "psd") {
    // Every frequency stands for its negative too, but the first and the last.
    int64_t bins = power.extent(2);
    if (bins < 2) return arrange(c.config, power);
    Value inner = slice_axis(power, 2, 1, bins - 1);
    return arrange(c.config, power + pad(inner, 0, {0, 0, 1, 0}, {0, 0, 1, 0}));
  }
  if (mode != "log" && mode != "magnitude") c.config.invalid("'mode' is log, magnitude, psd, real, imag, angle or stft; got '{}'", mode);
  Value magnitude = arrange(c.config, sqrt(maximum(power, 1e-7)));
  return mode == "magnitude" ? magnitude : log(maximum(magnitude, 1e-7));
}

// SciPy's periodic windows, of which one point alone is 1.
std::vector<double> read_window(const Config& config, int64_t length) {
  const Json& window = config.get("window");
  std::vector<double> out(static_cast<size_t>(length), 1);
  if (window.is_null()) return out;
  if (window.is_string()) {
    double mean = window.as_string() == "hann" ? 0.5 : 0.54;
    if (window.as_string() != "hann" && window.as_string() != "hamming") config.unsupported("the window '{}'", window.as_string());
    for (size_t i = 0; i < out.size() && length > 1; ++i)
      out[i] = mean - (1 - mean) * std::cos(2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(length));
    return out;
  }
  Tensor given = read_array(config, window, "window").converted(DType::f64);
  if (given.shape().rank() != 1 || given.elements() != length)
    config.invalid("'window' has {} entries; got {}", length, to_string(given.shape()));
  std::copy(given.as<double>().begin(), given.as<double>().end(), out.begin());
  return out;
}

// [length, 1, 2 * bins]: the window times cosines, then times sines, of `fft` points; the window begins at `start`.
Value fourier_kernel(Call& c, const std::vector<double>& window, int64_t start, int64_t fft) {
  int64_t bins = fft / 2 + 1;
  std::vector<float> kernel;
  kernel.reserve(window.size() * static_cast<size_t>(2 * bins));
  std::vector<double> cosines, sines;  // of each fraction of a turn
  for (int64_t turn = 0; turn < fft; ++turn) {
    double angle = 2 * std::numbers::pi * static_cast<double>(turn) / static_cast<double>(fft);
    cosines.push_back(std::cos(angle));
    sines.push_back(std::sin(angle));
  }
  for (size_t i = 0; i < window.size(); ++i)
    for (int64_t k = 0; k < 2 * bins; ++k) {
      auto turn = static_cast<size_t>((k % bins) * (start + static_cast<int64_t>(i)) % fft);  // whole turns change nothing
      kernel.push_back(static_cast<float>(window[i] * (k < bins ? cosines[turn] : -sines[turn])));
    }
  return constant<float>(c.graph, {static_cast<int64_t>(window.size()), 1, 2 * bins}, kernel);
}

float hertz_to_mel(float hertz) { return 1127.0f * std::log(1.0f + hertz / 700.0f); }

// As jnp.linspace.
float between(float first, float last, int64_t i, int64_t count) {
  if (i == count - 1) return last;
  float part = static_cast<float>(i) / static_cast<float>(count - 1);
  return first * (1 - part) + last * part;
}

// [bins, bands]: triangles that overlap by half on the mel scale, in float32 as Keras computes them; the first bin is left out.
Value mel_matrix(Call& c, int64_t bins, int64_t bands) {
  auto rate = static_cast<float>(c.config.number("sampling_rate", 16000));
  double nyquist = static_cast<double>(rate) / 2;
  auto lowest = hertz_to_mel(static_cast<float>(c.config.number("min_freq", 20)));
  auto highest = hertz_to_mel(static_cast<float>(c.config.number("max_freq", std::trunc(nyquist))));
  std::vector<float> out(static_cast<size_t>(bins * bands), 0);
  for (int64_t bin = 1; bin < bins; ++bin) {
    float mel = hertz_to_mel(between(0, rate / 2, bin, bins));
    for (int64_t band = 0; band < bands; ++band) {
      float low = between(lowest, highest, band, bands + 2), centre = between(lowest, highest, band + 1, bands + 2),
            high = between(lowest, highest, band + 2, bands + 2);
      float slope = std::min((mel - low) / (centre - low), (high - mel) / (high - centre));
      out[static_cast<size_t>(bin * bands + band)] = std::max(0.0f, slope);
    }
  }
  return constant<float>(c.graph, {bins, bands}, out);
}

Value decibels(const Config& config, Value power) {
  double least = config.number("min_power", 1e-10), reference = std::max(std::abs(config.number("ref_power", 1)), least);
  Value y = log(maximum(power, least)) * (10 / std::numbers::ln10) - 10 * std::log10(reference);
  return maximum(y, reduce_max(y, all_axes(y)) - config.number("top_db", 80));
}

Outputs mel_spectrogram(Call& c) {
  constexpr int64_t longest = 4096, most_bands = 4096;
  int64_t fft = c.config.positive("fft_length", 2048, int64_t{1} << 24);
  if (fft > longest) c.config.unsupported("Fourier transforms of more than {} points; got {}", longest, fft);
  int64_t length = c.config.positive("sequence_length", fft, fft);
  int64_t step = c.config.positive("sequence_stride", 512, int64_t{1} << 24);
  int64_t bands = c.config.positive("num_mel_bins", 128, most_bands);
  Value x = c.x();
  if (x.rank() < 1) c.config.invalid("takes signals along the last axis");
  Ints outer(x.shape().begin(), x.shape().end() - 1);
  DType wide = c.policy.compute == DType::f64 ? DType::f64 : DType::f32;
  x = reshape(convert(x, wide), Shape({Shape(outer).elements(), x.extent(-1), 1}));
  x = pad(x, PadMode::reflect, {0, fft / 2, 0}, {0, fft / 2, 0});

  int64_t start = c.config.has("window") ? (fft - length) / 2 : 0;
  std::vector<double> window = read_window(c.config, c.config.has("window") ? length : fft);
  auto reach = static_cast<int64_t>(window.size());
  x = slice_axis(x, 1, start, x.extent(1) - (fft - reach - start));
  int64_t bins = fft / 2 + 1;
  Value both = convolve(x, convert(fourier_kernel(c, window, start, fft), wide), {.strides = {step}});  // [n, frames, 2 * bins]
  Value power = sqrt(square(slice_axis(both, 2, 0, bins)) + square(slice_axis(both, 2, bins, 2 * bins)));
  power = tutti::power(power, c.config.number("mag_exp", 2));

  Value y = dot_general(power, convert(mel_matrix(c, bins, bands), wide), {{}, {}, {2}, {0}});
  if (c.config.flag("power_to_db", true)) y = decibels(c.config, y);
  y = transpose(y, {0, 2, 1});
  outer.push_back(y.extent(1));
  outer.push_back(y.extent(2));
  return convert(reshape(y, outer), c.policy.compute);
}

}  // namespace

Rows spectrogram_layers() {
  static const LayerRow rows[] = {
      {"STFTSpectrogram", stft_spectrogram, Masking::drop,
       "mode frame_length frame_step fft_length window periodic scaling padding expand_dims data_format"},
      {"MelSpectrogram", mel_spectrogram, Masking::drop,
       "fft_length sequence_stride sequence_length window sampling_rate num_mel_bins min_freq max_freq power_to_db top_db mag_exp "
       "min_power "
       "ref_power",
       "fft_length above 4096 is refused"},
  };
  return rows;
}

}  // namespace tutti::keras
