#include "tutti/keras/fit/build.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <random>

#include "tutti/base/error.h"
#include "tutti/keras/lower.h"

namespace tutti::keras {

namespace {

// One layer in words, read from the left.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {
    size_t at = 0;
    while (at < text.size()) {
      const size_t begin = text.find_first_not_of(" \t\n", at);
      if (begin == std::string_view::npos) break;
      at = std::min(text.find_first_of(" \t\n", begin), text.size());
      words_.emplace_back(text.substr(begin, at - begin));
    }
  }

  bool empty() const { return next_ == words_.size(); }
  std::string take(std::string_view what) {
    if (empty()) fail<InvalidArgument>("build", "'{}' lacks its {}", escape(text_, 60), what);
    return words_[next_++];
  }
  int64_t whole(std::string_view what) {
    const std::string word = take(what);
    constexpr int64_t most = 1 << 24;
    int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || value < 1 || value > most)
      fail<InvalidArgument>("build", "'{}': {} is a whole number from 1 to {}; got '{}'", escape(text_, 60), what, most, escape(word, 40));
    return value;
  }
  double share(std::string_view what) {
    const std::string word = take(what);
    double value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || !(value >= 0 && value < 1))
      fail<InvalidArgument>("build", "'{}': {} is a share from 0 to less than 1; got '{}'", escape(text_, 60), what, escape(word, 40));
    return value;
  }
  void end() const {
    if (!empty()) fail<InvalidArgument>("build", "'{}': the word '{}' is too much", escape(text_, 60), escape(words_[next_], 40));
  }

 private:
  std::string_view text_;
  std::vector<std::string> words_;
  size_t next_ = 0;
};

struct LayerWord {
  std::string_view name, class_name;
  void (*read)(Words&, Json& config);
};

void activation_if_any(Words& words, Json& config) {
  if (!words.empty()) config.set("activation", words.take("activation"));
}

Json pair_of(int64_t size, int64_t axes) { return JsonList(static_cast<size_t>(axes), Json(size)); }

template <int axes>
void convolution(Words& words, Json& config) {
  config.set("filters", words.whole("number of filters"));
  config.set("kernel_size", pair_of(words.whole("size"), axes));
  config.set("strides", pair_of(1, axes));
  config.set("padding", "valid");
  activation_if_any(words, config);
}

void units(Words& words, Json& config) {
  config.set("units", words.whole("number of units"));
  activation_if_any(words, config);
}

void recurrent(Words& words, Json& config) {
  config.set("units", words.whole("number of units"));
  if (words.empty()) return;
  const std::string word = words.take("");
  if (word != "sequences") fail<InvalidArgument>("build", "a recurrent layer may give 'sequences'; got '{}'", escape(word, 40));
  config.set("return_sequences", true);
}

void pool(Words& words, Json& config) {
  config.set("pool_size", words.whole("size"));
  config.set("padding", "valid");
}

void nothing(Words&, Json&) {}

const LayerWord layer_words[] = {
    {"dense", "Dense", units},
    {"conv1d", "Conv1D", convolution<1>},
    {"conv2d", "Conv2D", convolution<2>},
    {"max_pool", "MaxPooling", pool},
    {"average_pool", "AveragePooling", pool},
    {"global_max_pool", "GlobalMaxPooling", nothing},
    {"global_average_pool", "GlobalAveragePooling", nothing},
    {"flatten", "Flatten", nothing},
    {"lstm", "LSTM", recurrent},
    {"gru", "GRU", recurrent},
    {"simple_rnn", "SimpleRNN", recurrent},
    {"embedding", "Embedding",
     [](Words& words, Json& config) {
       config.set("input_dim", words.whole("number of words"));
       config.set("output_dim", words.whole("size"));
     }},
    {"dropout", "Dropout", [](Words& words, Json& config) { config.set("rate", words.share("rate")); }},
    {"batch_normalization", "BatchNormalization", nothing},
    {"layer_normalization", "LayerNormalization", nothing},
    {"activation", "Activation", [](Words& words, Json& config) { config.set("activation", words.take("name")); }},
};

Json layer_json(const std::string& class_name, Json config) {
  return JsonMembers{{"module", "keras.layers"}, {"class_name", class_name}, {"config", std::move(config)}, {"registered_name", nullptr}};
}

// How many axes between batch and channels a pooling layer sees: those of the sample without its channels.
std::string with_axes(std::string_view class_name, size_t sample_rank) {
  std::string out(class_name);
  if (out.ends_with("Pooling")) out += std::to_string(std::max<size_t>(sample_rank, 2) - 1) + "D";
  return out;
}

// Uniform in [-limit, limit].
void draw_uniform(std::span<float> out, double limit, std::mt19937_64& random) {
  for (float& x : out) x = static_cast<float>((static_cast<double>(random() >> 11) * 0x1p-53 * 2 - 1) * limit);
}

// Rows (or columns, if they are fewer) of unit length at right angles to each other.
void draw_orthogonal(std::span<float> out, int64_t rows, int64_t columns, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  const int64_t count = std::min(rows, columns), length = std::max(rows, columns);
  std::vector<std::vector<double>> vectors;
  while (std::ssize(vectors) < count) {
    std::vector<double> v(static_cast<size_t>(length));
    for (double& x : v) x = normal(random);
    for (const auto& other : vectors) {
      double product = 0;
      for (size_t i = 0; i < v.size(); ++i) product += v[i] * other[i];
      for (size_t i = 0; i < v.size(); ++i) v[i] -= product * other[i];
    }
    double norm = 0;
    for (double x : v) norm += x * x;
    if (norm < 1e-12) continue;
    for (double& x : v) x /= std::sqrt(norm);
    vectors.push_back(std::move(v));
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      out[static_cast<size_t>(r * columns + c)] =
          static_cast<float>(rows <= columns ? vectors[static_cast<size_t>(r)][static_cast<size_t>(c)]
                                             : vectors[static_cast<size_t>(c)][static_cast<size_t>(r)]);
}

void initialize_one(Variable& variable, std::mt19937_64& random) {
  variable.value = Tensor(variable.type);
  const Shape& shape = variable.type.shape;
  if (variable.type.dtype != DType::f32) fail<Unsupported>("build", "the variable '{}' is not of float32", variable.path);
  const std::span<float> out = variable.value.as<float>();
  std::fill(out.begin(), out.end(), 0.0f);
  const std::string& name = variable.name;
  if (name == "gamma" || name == "moving_variance") {
    std::fill(out.begin(), out.end(), 1.0f);
  } else if (name == "embeddings") {
    draw_uniform(out, 0.05, random);
  } else if (name == "recurrent_kernel" && shape.rank() == 2) {
    draw_orthogonal(out, shape[0], shape[1], random);
  } else if (name == "bias" && shape.rank() == 1 && variable.path.find("lstm") != std::string::npos) {
    std::fill(out.begin() + shape[0] / 4, out.begin() + shape[0] / 2, 1.0f);  // the forget gate
  } else if (name.ends_with("kernel") && shape.rank() >= 2) {
    double field = 1;
    for (int64_t axis = 0; axis < shape.rank() - 2; ++axis) field *= static_cast<double>(shape[axis]);
    const double in = field * static_cast<double>(shape[shape.rank() - 2]), to = field * static_cast<double>(shape[shape.rank() - 1]);
    draw_uniform(out, std::sqrt(6 / (in + to)), random);
  }
}

}  // namespace

void initialize(Model& model, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (Variable* variable : model.variables().flatten())
    if (variable->value.empty()) initialize_one(*variable, random);
}

Sequential::Sequential(Ints sample, DType dtype) : sample_(std::move(sample)), dtype_(dtype) {}

Sequential& Sequential::add(const std::string& class_name, const JsonMembers& arguments) {
  Json config =
      JsonMembers{{"name", fmt::format("{}_{}", to_snake_case(class_name), layers_.size() + 1)}, {"trainable", true}, {"dtype", "float32"}};
  for (const auto& [key, value] : arguments) {
    if (key.ends_with("_initializer"))
      fail<Unsupported>("build", "'{}' of a {} layer: weights begin as Keras's default initializers draw them", escape(key, 40),
                        escape(class_name, 40));
    config.set(key, value);
  }
  layers_.push(layer_json(class_name, std::move(config)));
  return *this;
}

Sequential& Sequential::dense(int64_t units, const std::string& activation) {
  return add("Dense", {{"units", units}, {"activation", activation}});
}
Sequential& Sequential::conv1d(int64_t filters, int64_t size, const std::string& activation) {
  return add("Conv1D", {{"filters", filters},
                        {"kernel_size", pair_of(size, 1)},
                        {"strides", pair_of(1, 1)},
                        {"padding", "valid"},
                        {"activation", activation}});
}
Sequential& Sequential::conv2d(int64_t filters, int64_t size, const std::string& activation) {
  return add("Conv2D", {{"filters", filters},
                        {"kernel_size", pair_of(size, 2)},
                        {"strides", pair_of(1, 2)},
                        {"padding", "valid"},
                        {"activation", activation}});
}
Sequential& Sequential::max_pool(int64_t size) {
  return add(with_axes("MaxPooling", sample_.size()), {{"pool_size", size}, {"padding", "valid"}});
}
Sequential& Sequential::average_pool(int64_t size) {
  return add(with_axes("AveragePooling", sample_.size()), {{"pool_size", size}, {"padding", "valid"}});
}
Sequential& Sequential::lstm(int64_t units, bool sequences) { return add("LSTM", {{"units", units}, {"return_sequences", sequences}}); }
Sequential& Sequential::gru(int64_t units, bool sequences) { return add("GRU", {{"units", units}, {"return_sequences", sequences}}); }
Sequential& Sequential::embedding(int64_t words, int64_t size) {
  dtype_ = layers_.size() == 0 ? DType::i32 : dtype_;
  return add("Embedding", {{"input_dim", words}, {"output_dim", size}});
}
Sequential& Sequential::dropout(double rate) { return add("Dropout", {{"rate", rate}}); }

Json Sequential::config() const {
  Json batch_shape = JsonList{Json()}, list = Json::list();
  for (int64_t extent : sample_) batch_shape.push(extent);
  list.push(
      layer_json("InputLayer", JsonMembers{{"batch_shape", batch_shape}, {"dtype", std::string(numpy_name(dtype_))}, {"name", "input"}}));
  for (const Json& layer : layers_.items()) list.push(layer);
  const Json config =
      JsonMembers{{"name", "model"}, {"trainable", true}, {"dtype", "float32"}, {"layers", list}, {"build_input_shape", batch_shape}};
  return JsonMembers{{"module", "keras"},
                     {"class_name", "Sequential"},
                     {"config", config},
                     {"registered_name", nullptr},
                     {"build_config", JsonMembers{{"input_shape", batch_shape}}}};
}

Model build(const Json& config, uint64_t seed) {
  Model model = from_config(config, built_version);
  if (!model.problems().empty()) fail<InvalidArgument>("build", "{}", model.problems()[0]);
  initialize(model, seed);
  return model;
}

Model build(std::string_view layers, const Ints& sample, uint64_t seed) {
  std::vector<std::string> known;
  for (const LayerWord& word : layer_words) known.emplace_back(word.name);
  const size_t first_word = layers.find_first_not_of(" \t\n");
  const bool of_words = first_word != std::string_view::npos && layers.substr(first_word).starts_with("embedding");
  Sequential model(sample, of_words ? DType::i32 : DType::f32);
  bool any = false;
  for (size_t at = 0; at <= layers.size();) {
    const size_t end = std::min(layers.find(';', at), layers.size());
    Words words(layers.substr(at, end - at));
    at = end + 1;
    if (words.empty() && end == layers.size() && any) break;  // a last semicolon
    any = true;
    const std::string name = words.take("layer");
    const auto found =
        std::find_if(std::begin(layer_words), std::end(layer_words), [&](const LayerWord& word) { return word.name == name; });
    if (found == std::end(layer_words))
      fail<InvalidArgument>("build", "there is no layer '{}'{}; there are {}", escape(name, 40), did_you_mean(name, known),
                            fmt::join(known, ", "));
    Json config = Json::object();
    found->read(words, config);
    words.end();
    model.add(with_axes(found->class_name, sample.size()), config.members());
  }
  try {
    return build(model.config(), seed);
  } catch (const InvalidArgument& error) {
    fail<InvalidArgument>("build", "'{}': {}", escape(layers, 80), error.what());
  }
}

}  // namespace tutti::keras
