// keras.ops on signals: Fourier transforms as products with matrices of sines and cosines. Complex tensors are pairs of real ones.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "tutti/graph/compose.h"
#include "tutti/keras/layers/operations/rows.h"

namespace tutti::keras {

namespace {

constexpr int64_t longest_transform = 1 << 13;

struct Complex {
  Value re, im;
};

Outputs pair(Complex x) { return std::vector<Signal>{{x.re, {}}, {x.im, {}}}; }

Complex complex_argument(Call& c) {
  auto parts = operand_list(c, 0, "x");
  if (parts.size() != 2) c.config.invalid("takes a real and an imaginary part; got {} tensors", parts.size());
  Complex x{parts[0].value(), parts[1].value()};
  if (!is_float(x.re.dtype()) || x.re.dtype() != x.im.dtype() || !(x.re.shape() == x.im.shape()))
    c.config.invalid("takes two parts of one shape of floats; got {} and {}", to_string(x.re.type()), to_string(x.im.type()));
  return x;
}

int64_t transform_length(const Config& config, int64_t n) {
  if (n < 1 || n > longest_transform)
    config.unsupported("transforms of {} elements are not done; hint: up to {} are", n, longest_transform);
  return n;
}

// Of a whole turn, the part out of n; exactly zero where it is, so that what cancels has no sign for a phase to follow.
double angle(int64_t part, int64_t n) { return 2 * std::numbers::pi * static_cast<double>(part) / static_cast<double>(n); }
double cosine(int64_t part, int64_t n) { return 4 * part == n || 4 * part == 3 * n ? 0 : std::cos(angle(part, n)); }
double sine(int64_t part, int64_t n) { return 2 * part % n == 0 ? 0 : std::sin(angle(part, n)); }
double minus_sine(int64_t part, int64_t n) { return 2 * part % n == 0 ? 0 : -std::sin(angle(part, n)); }

// [from, to]: weight(k or t) * cos or sin of 2 pi t k / n.
Value wave(Graph& graph, DType dtype, int64_t from, int64_t to, int64_t n, double (*function)(int64_t part, int64_t n),
           const std::function<double(int64_t)>& weight) {
  Tensor table(DType::f64, Shape({from, to}));
  auto out = table.as<double>();
  for (int64_t i = 0; i < from; ++i)
    for (int64_t k = 0; k < to; ++k) out[static_cast<size_t>(i * to + k)] = weight(i) * function((i * k) % n, n);
  return graph.constant(table.converted(dtype));
}

double one(int64_t) { return 1; }

Value along(Value x, Value matrix, int64_t axis) { return moveaxis(dot_general(x, matrix, {{}, {}, {axis}, {0}}), {-1}, {axis}); }

Complex transform(const Config& config, Complex x, int64_t axis, bool inverse) {
  axis = wrapped_axis(config, axis, x.re.rank());
  int64_t n = transform_length(config, x.re.extent(axis));
  Value c = wave(x.re.graph(), x.re.dtype(), n, n, n, cosine, one), s = wave(x.re.graph(), x.re.dtype(), n, n, n, sine, one);
  if (inverse) s = -s;
  // (re + i im)(cos - i sin)
  Complex out{along(x.re, c, axis) + along(x.im, s, axis), along(x.im, c, axis) - along(x.re, s, axis)};
  if (!inverse) return out;
  return {out.re / static_cast<double>(n), out.im / static_cast<double>(n)};
}

Value fitted(Value x, int64_t n) {
  if (x.extent(-1) >= n) return slice_axis(x, -1, 0, n);
  Ints low(static_cast<size_t>(x.rank()), 0), high = low;
  high.back() = n - x.extent(-1);
  return pad(x, 0.0, low, high);
}

Complex real_transform(Value x, int64_t n) {
  x = fitted(x, n);
  int64_t bins = n / 2 + 1, axis = x.rank() - 1;
  return {along(x, wave(x.graph(), x.dtype(), n, bins, n, cosine, one), axis),
          along(x, wave(x.graph(), x.dtype(), n, bins, n, minus_sine, one), axis)};
}

// The bins between the first and the middle one stand for their mirror images too.
Value inverse_real_transform(Complex x, int64_t n) {
  int64_t bins = n / 2 + 1, axis = x.re.rank() - 1;
  auto weight = [n](int64_t k) { return (k == 0 || 2 * k == n ? 1.0 : 2.0) / static_cast<double>(n); };
  Value re = fitted(x.re, bins), im = fitted(x.im, bins);
  return along(re, wave(re.graph(), re.dtype(), bins, n, n, cosine, weight), axis) -
         along(im, wave(re.graph(), re.dtype(), bins, n, n, sine, weight), axis);
}

Outputs fft(Call& c) { return pair(transform(c.config, complex_argument(c), -1, false)); }
Outputs fft2(Call& c) { return pair(transform(c.config, transform(c.config, complex_argument(c), -1, false), -2, false)); }
Outputs ifft2(Call& c) { return pair(transform(c.config, transform(c.config, complex_argument(c), -1, true), -2, true)); }

Outputs rfft(Call& c) {
  Value x = array(c);
  if (x.rank() < 1) c.config.invalid("takes signals; got {}", to_string(x.type()));
  return pair(real_transform(convert(x, float_type(x.dtype())), transform_length(c.config, c.config.integer("fft_length", x.extent(-1)))));
}

Outputs irfft(Call& c) {
  Complex x = complex_argument(c);
  if (x.re.rank() < 1) c.config.invalid("takes signals; got {}", to_string(x.re.type()));
  return inverse_real_transform(x, transform_length(c.config, c.config.integer("fft_length", 2 * (x.re.extent(-1) - 1))));
}

struct Frames {
  int64_t fft_length, stride;
  bool center, windowed;
  std::vector<double> window;  // of fft_length, the given one in the middle
};

Frames read_frames(Call& c) {
  int64_t length = c.config.integer("sequence_length"), n = transform_length(c.config, c.config.integer("fft_length")),
          stride = c.config.integer("sequence_stride");
  if (length < 1 || length > n || stride < 1 || stride > n)
    c.config.invalid("sequences of {} every {} do not fit transforms of {}", length, stride, n);
  const Json& given = c.config.get("window");
  std::vector<double> window(static_cast<size_t>(n), 0);
  int64_t first = (n - length) / 2;
  if (given.is_null()) std::fill(window.begin(), window.end(), 1);
  if (given.is_string() && given.as_string() != "hann" && given.as_string() != "hamming")
    c.config.invalid("'window' is hann, hamming or numbers; got {}", given.dump());
  std::vector<double> values = given.is_list() ? c.config.numbers("window") : std::vector<double>();
  if (given.is_list() && static_cast<int64_t>(values.size()) != length)
    c.config.invalid("'window' has {} numbers, expected {}", values.size(), length);
  for (int64_t i = 0; i < length && !given.is_null(); ++i) {
    // SciPy's windows, of which one point alone is 1.
    double turn = length == 1 ? -1 : std::cos(2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(length));
    double value = given.is_list() ? values[static_cast<size_t>(i)] : given.as_string() == "hann" ? 0.5 - 0.5 * turn : 0.54 - 0.46 * turn;
    window[static_cast<size_t>(first + i)] = value;
  }
  return {n, stride, c.config.flag("center", true), !given.is_null(), window};
}

Outputs stft(Call& c) {
  Value x = array(c);
  if (x.dtype() != DType::f32 && x.dtype() != DType::f64) c.config.invalid("takes float32 or float64; got {}", to_string(x.type()));
  Frames frames = read_frames(c);
  if (x.rank() < 1) c.config.invalid("takes signals; got {}", to_string(x.type()));
  if (frames.center) {
    Ints border(static_cast<size_t>(x.rank()), 0);
    border.back() = frames.fft_length / 2;
    x = pad(x, PadMode::reflect, border, border);
  }
  int64_t n = frames.fft_length;
  if (x.extent(-1) < n) c.config.invalid("{} is shorter than a frame of {}", to_string(x.type()), n);
  int64_t count = (x.extent(-1) - n) / frames.stride + 1;
  if (count * n > most_elements) c.config.unsupported("{} frames of {} are not done", count, n);
  Ints indices, extents(x.shape().begin(), x.shape().end() - 1);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < n; ++j) indices.push_back(i * frames.stride + j);
  extents.insert(extents.end(), {count, n});
  Value cut = reshape(take(x, indices, -1), extents);
  return pair(real_transform(cut * convert(constant<double>(c.graph, {n}, frames.window), x.dtype()), n));
}

// Frames are added where they overlap and divided by what the squared windows add up to there.
Outputs istft(Call& c) {
  Complex x = complex_argument(c);
  Frames frames = read_frames(c);
  if (x.re.rank() < 2) c.config.invalid("takes [..., frames, bins]; got {}", to_string(x.re.type()));
  int64_t n = frames.fft_length, count = x.re.extent(-2), whole = n + frames.stride * (count - 1);
  if (count < 1 || count * n > most_elements) c.config.unsupported("{} frames of {} are not done", count, n);
  DType dtype = x.re.dtype();
  Value parts = inverse_real_transform(x, n) * convert(constant<double>(c.graph, {n}, frames.window), dtype);
  std::vector<int64_t> places;
  std::vector<double> norm(static_cast<size_t>(whole), 0);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < n; ++j) {
      places.push_back(i * frames.stride + j);
      norm[static_cast<size_t>(places.back())] += frames.window[static_cast<size_t>(j)] * frames.window[static_cast<size_t>(j)];
    }
  double scale = frames.windowed ? 1 : static_cast<double>(n) / static_cast<double>(frames.stride);
  for (double& value : norm) value = scale / (value > 1e-10 ? value : 1);
  Ints rest(parts.shape().begin(), parts.shape().end() - 2);
  int64_t signals = Shape(rest).elements();
  Value rows = transpose(reshape(parts, {signals, count * n}), {1, 0});  // [places, signals]
  Value sum = scatter(full(c.graph, {dtype, {whole, signals}}, 0), constant<int64_t>(c.graph, {count * n}, places), rows,
                      {{1}, {0}, {}, {}, {0}, 1}, "add");
  rest.push_back(whole);
  Value out = reshape(transpose(sum, {1, 0}), rest) * convert(constant<double>(c.graph, {whole}, norm), dtype);
  int64_t start = frames.center ? n / 2 : 0, end = frames.center ? whole - n / 2 : whole;
  if (c.config.has("length")) end = start + std::clamp<int64_t>(c.config.integer("length"), 0, whole);
  return slice_axis(out, -1, start, end);
}

constexpr std::string_view frame_options = "sequence_length sequence_stride fft_length window center";

}  // namespace

Rows signal_operations() {
  static const LayerRow rows[] = {
      operation("FFT", fft),
      operation("FFT2", fft2),
      operation("IFFT2", ifft2),
      operation("IRFFT", irfft, "fft_length"),
      operation("ISTFT", istft, "sequence_length sequence_stride fft_length length window center"),
      operation("RFFT", rfft, "fft_length"),
      operation("STFT", stft, frame_options),
  };
  return rows;
}

}  // namespace tutti::keras
