// Numbers that stand for categories: Discretization, CategoryEncoding and IntegerLookup, and the ways they encode an index.
#include <algorithm>
#include <charconv>

#include "tutti/graph/compose.h"
#include "tutti/keras/layers/families.h"
#include "tutti/keras/lower.h"

namespace tutti::keras {

namespace {

constexpr int64_t most_categories = int64_t{1} << 24;

// Indices outside of [0, depth) leave no trace. Several samples along axis 1 (axis 0 of a vector) go into one "multi_hot" or "count".
Value encode(const Config& config, Value indices, const std::string& mode, int64_t depth, DType dtype, Value weights = {}) {
  if (depth < 1 || depth > most_categories) config.invalid("there are between 1 and {} categories; got {}", most_categories, depth);
  if (mode == "one_hot") {
    if (indices.rank() > 1 && indices.extent(-1) == 1) indices = squeeze(indices, {-1});
    return one_hot(indices, depth, dtype);
  }
  Ints samples{indices.rank() > 1 ? 1 : 0};
  if (indices.rank() == 0) indices = expand_dims(indices, {0});
  if (mode == "multi_hot" || mode == "binary") return reduce_max(one_hot(convert(indices, DType::i64), depth, dtype), samples);
  if (mode != "count") config.invalid("'output_mode' is one_hot, multi_hot or count; got '{}'", mode);
  Value each = one_hot(indices, depth, weights ? weights.dtype() : dtype);
  return sum(weights ? each * expand_dims(weights, {-1}) : each, samples);
}

void refuse_sparse(const Config& config) {
  if (config.flag("sparse", false)) config.unsupported("sparse tensors; hint: save with sparse=False");
}

Outputs discretization(Call& c) {
  refuse_sparse(c.config);
  if (!c.config.has("bin_boundaries")) c.config.invalid("has no bin_boundaries: it was saved before adapt()");
  std::vector<double> boundaries = c.config.numbers("bin_boundaries");
  std::vector<float> bins(boundaries.begin(), boundaries.end());
  if (!std::is_sorted(bins.begin(), bins.end())) c.config.invalid("'bin_boundaries' rise");
  auto count = static_cast<int64_t>(bins.size());
  Value x = c.x();
  DType wide = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  Value sorted = wide == DType::f64 ? constant<double>(c.graph, {count}, boundaries) : constant<float>(c.graph, {count}, bins);
  Value indices = searchsorted(sorted, convert(x, wide), true);
  std::string mode = c.config.text("output_mode", "int");
  if (mode == "int") return convert(indices, c.lowering.keras_major == 2 ? DType::i64 : DType::i32);
  return encode(c.config, indices, mode, count + 1, c.policy.compute);
}

Outputs category_encoding(Call& c) {
  refuse_sparse(c.config);
  std::string mode = c.config.text("output_mode", "multi_hot");
  Value weights = c.tensor(1, "count_weights");
  if (weights && mode != "count") c.config.invalid("count_weights go with the mode count; got '{}'", mode);
  if (weights) weights = convert(weights, c.policy.compute);
  return encode(c.config, c.x(), mode, c.config.integer("num_tokens"), c.policy.variable, weights);
}

// A vocabulary as a lookup sees it: after a mask index (in mode int) and the indices of unknown tokens come the tokens.
struct Vocabulary {
  std::vector<int64_t> tokens;
  bool has_mask = false;
  int64_t mask = 0, unknown = -1;
  int64_t unknown_start = 0, unknown_count = 1;
  bool listed_special = false;  // the list began with the mask and the unknown tokens
  int64_t token_start() const { return unknown_start + unknown_count; }
  int64_t size() const { return token_start() + static_cast<int64_t>(tokens.size()); }
};

std::vector<int64_t> parse_lines(const Config& config, const std::string& text) {
  std::vector<int64_t> out;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    size_t stop = end > at && text[end - 1] == '\r' ? end - 1 : end;
    if (stop == at && text.find_first_not_of("\r\n", at) == std::string::npos) break;
    int64_t value = 0;
    auto [last, error] = std::from_chars(text.data() + at, text.data() + stop, value);
    if (error != std::errc() || last != text.data() + stop)
      config.invalid("the vocabulary holds integers; got '{}'", escape(text.substr(at, stop - at), 40));
    out.push_back(value);
    at = end + 1;
  }
  return out;
}

std::vector<int64_t> read_tokens(Call& c) {
  if (c.config.has("vocabulary")) {
    if (!c.config.at("vocabulary").is_list()) c.config.unsupported("a vocabulary outside of the file");
    return c.config.ints("vocabulary");
  }
  const std::string* file = c.asset("vocabulary.txt");
  if (file == nullptr) c.config.invalid("the file holds no vocabulary; hint: .h5 files lose an adapted one, save as .keras");
  return parse_lines(c.config, *file);
}

Vocabulary read_vocabulary(Call& c, const std::string& mode) {
  Vocabulary v;
  v.tokens = read_tokens(c);
  v.has_mask = c.config.has("mask_token");
  v.mask = c.config.integer("mask_token", 0);
  v.unknown = c.config.integer("oov_token", -1);
  v.unknown_start = v.has_mask && mode == "int" ? 1 : 0;
  v.unknown_count = c.config.integer("num_oov_indices", 1);
  if (v.unknown_count < 0 || v.unknown_count > most_categories)
    c.config.invalid("'num_oov_indices' is out of range; got {}", v.unknown_count);
  if (static_cast<int64_t>(v.tokens.size()) >= v.token_start()) {
    v.listed_special = v.unknown_start == 0 || v.tokens[0] == v.mask;
    for (int64_t i = v.unknown_start; i < v.token_start(); ++i)
      v.listed_special = v.listed_special && v.tokens[static_cast<size_t>(i)] == v.unknown;
    if (v.listed_special) v.tokens.erase(v.tokens.begin(), v.tokens.begin() + static_cast<std::ptrdiff_t>(v.token_start()));
  }
  if (v.tokens.empty() || v.size() > most_categories) c.config.invalid("a vocabulary has between 1 and {} tokens", most_categories);
  return v;
}

// Index -> token.
Value tokens_of(Call& c, const Vocabulary& v, Value x) {
  auto count = static_cast<int64_t>(v.tokens.size());
  Value position = x - static_cast<double>(v.token_start());
  Value known = logical_and(compare(position, 0, Direction::GE), compare(position, static_cast<double>(count), Direction::LT));
  Value token = take(constant<int64_t>(c.graph, {count}, v.tokens), clamp(position, 0, static_cast<double>(count - 1)), 0);
  Value out = select(known, token, c.graph.constant(Tensor::scalar(v.unknown)));
  return v.has_mask ? select(compare(x, 0, Direction::EQ), c.graph.constant(Tensor::scalar(v.mask)), out) : out;
}

// Token -> index; -1 where there is none.
Value indices_of(Call& c, const Vocabulary& v, Value x, const std::string& mode) {
  auto count = static_cast<int64_t>(v.tokens.size());
  std::vector<std::pair<int64_t, int64_t>> order;
  for (int64_t token : v.tokens) order.emplace_back(token, v.token_start() + static_cast<int64_t>(order.size()));
  std::sort(order.begin(), order.end());
  std::vector<int64_t> keys, values;
  for (const auto& [token, index] : order) {
    if (!keys.empty() && keys.back() == token) c.config.invalid("the vocabulary has the token {} twice", token);
    keys.push_back(token);
    values.push_back(index);
  }
  Value sorted = constant<int64_t>(c.graph, {count}, keys);
  Value place = minimum(searchsorted(sorted, x), static_cast<double>(count - 1));
  Value unknown = full_like(x, -1);
  if (v.unknown_count == 1) unknown = full_like(x, static_cast<double>(v.unknown_start));
  if (v.unknown_count > 1) {
    if (c.config.text("oov_method", "floormod") != "floormod") c.config.unsupported("several indices for unknown tokens, chosen by a hash");
    Value divisor = full_like(x, static_cast<double>(v.unknown_count)), rest = remainder(x, divisor);
    unknown = select(compare(rest, 0, Direction::LT), rest + divisor, rest) + static_cast<double>(v.unknown_start);
  }
  Value out =
      select(compare(take(sorted, place, 0), x, Direction::EQ), take(constant<int64_t>(c.graph, {count}, values), place, 0), unknown);
  if (!v.has_mask) return out;
  Value masked = full_like(x, mode == "int" ? 0 : -1);
  return select(compare(x, c.graph.constant(Tensor::scalar(v.mask)), Direction::EQ), masked, out);
}

// How much each index weighs: from the config, with the mean for the indices before the tokens and zero behind them, or as adapt() left it.
Value document_weights(Call& c, const Vocabulary& v, int64_t depth) {
  if (!c.config.has("vocabulary")) return c.weight("idf_weights", {depth}, {.trainable = false, .dtype = DType::f32});
  std::vector<double> given = c.config.numbers("idf_weights");
  if (given.size() != v.tokens.size() + (v.listed_special ? static_cast<size_t>(v.token_start()) : 0))
    c.config.invalid("'idf_weights' has as many entries as the vocabulary; got {}", given.size());
  double total = 0;
  for (double weight : given) total += weight;
  std::vector<float> weights;
  if (!v.listed_special)
    weights.assign(static_cast<size_t>(v.token_start()), static_cast<float>(total / static_cast<double>(given.size())));
  weights.insert(weights.end(), given.begin(), given.end());
  weights.resize(static_cast<size_t>(depth), 0);
  return constant<float>(c.graph, {depth}, weights);
}

Outputs integer_lookup(Call& c) {
  refuse_sparse(c.config);
  std::string mode = c.config.text("output_mode", "int");
  if (mode == "tf-idf") mode = "tf_idf";
  Value x = convert(c.x(), DType::i64);
  Vocabulary v = read_vocabulary(c, mode);
  if (c.config.flag("invert", false)) return tokens_of(c, v, x);
  Value indices = indices_of(c, v, x, mode);
  if (mode == "int") return indices;
  int64_t depth = c.config.flag("pad_to_max_tokens", false) ? c.config.integer("max_tokens") : v.size();
  if (depth < v.size()) c.config.invalid("'max_tokens' is {}, less than the vocabulary's {}", depth, v.size());
  DType dtype = c.lowering.keras_major == 2 ? DType::f32 : DType::i64;
  if (mode != "tf_idf") return encode(c.config, indices, mode, depth, dtype);
  return encode(c.config, indices, "count", depth, DType::f32) * document_weights(c, v, depth);
}

}  // namespace

Rows category_layers() {
  static const LayerRow rows[] = {
      {"Discretization", discretization, Masking::drop, "bin_boundaries bins num_bins epsilon output_mode sparse",
       "sparse=True is refused"},
      {"CategoryEncoding", category_encoding, Masking::drop, "num_tokens output_mode sparse", "sparse=True is refused", "count_weights"},
      {"IntegerLookup", integer_lookup, Masking::drop,
       "max_tokens num_oov_indices mask_token oov_token vocabulary vocabulary_dtype vocabulary_size idf_weights invert output_mode sparse "
       "pad_to_max_tokens oov_method salt has_input_vocabulary",
       "sparse=True, and oov_method=farmhash with several indices, are refused; an unknown token with num_oov_indices=0 is -1, where Keras "
       "fails"},
  };
  return rows;
}

}  // namespace tutti::keras
