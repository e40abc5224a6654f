// Attention: MultiHeadAttention and GroupQueryAttention with projections, Attention and AdditiveAttention without.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"
#include "tutti/keras/layers/families.h"
#include "tutti/keras/layers/random.h"
#include "tutti/keras/lower.h"

namespace tutti::keras {

namespace {

// An argument of the call that is a plain true or false.
bool call_flag(Call& c, size_t position, std::string_view name) {
  const Argument* given = c.arguments.find(position, name);
  if (given == nullptr) return false;
  bool plain = given->kind == Argument::Kind::constant && (given->constant.is_bool() || given->constant.is_int());
  if (!plain) c.config.unsupported("argument '{}' is known when the model is built", name);
  return given->constant.is_bool() ? given->constant.as_bool() : given->constant.as_int() != 0;
}

// Dropout is for training, and not for a file that calls the layer so at inference.
void refuse_training(const Call& c) {
  if (c.config.number("dropout", 0) > 0 && c.training() && !c.draws())
    c.config.unsupported("it is called with training=True, whose dropout is random");
}

Value both(Value a, Value b) { return !a ? b : !b ? a : logical_and(a, b); }

// [target, source]: each target sees the sources up to its own place.
Value causal_mask(Graph& graph, int64_t target, int64_t source) {
  Type plane{DType::i32, {target, source}};
  return compare(iota(graph, plane, 1), iota(graph, plane, 0), Direction::LE);
}

Value window_mask(Graph& graph, int64_t target, int64_t source, int64_t reach) {
  Type plane{DType::i32, {target, source}};
  return compare(abs(iota(graph, plane, 1) - iota(graph, plane, 0)), static_cast<double>(reach), Direction::LT);
}

// One of the dense layers inside: the last `bound` axes of x become `outputs`.
Outputs projection(Call& c) {
  Value x = c.x();
  Ints outputs = c.config.ints("outputs"), contracted, kernel_axes;
  int64_t bound = c.config.integer("bound");
  if (x.rank() < bound + 1) c.config.invalid("takes at least {} axes; got {}", bound + 1, to_string(x.type()));
  Ints shape(x.shape().end() - bound, x.shape().end());
  for (int64_t i = 0; i < bound; ++i) {
    contracted.push_back(x.rank() - bound + i);
    kernel_axes.push_back(i);
  }
  shape.insert(shape.end(), outputs.begin(), outputs.end());
  Value kernel = c.weight("kernel", shape);
  Value y = dot_general(convert(x, kernel.dtype()), kernel, {{}, {}, contracted, kernel_axes});
  if (c.config.flag("use_bias", true)) y = y + c.weight("bias", Shape(outputs));
  if (c.lowering.fit != nullptr && c.config.has("activity_regularizer")) c.add_activity(c.config.get("activity_regularizer"), y);
  return y;
}

Value project(Call& c, const std::string& key, const std::string& name, Value x, const Ints& outputs, int64_t bound) {
  Json list = Json::list();
  for (int64_t extent : outputs) list.push(extent);
  Json config = Json::object();
  config.set("outputs", list);
  config.set("bound", bound);
  config.set("use_bias", c.config.flag("use_bias", true));
  for (const char* option : {"kernel_regularizer", "bias_regularizer", "kernel_constraint", "bias_constraint", "activity_regularizer"})
    if (c.config.has(option)) config.set(option, c.config.get(option));
  return c.child(key, name, config, {{x, {}}}, projection).signals.at(0).value;
}

constexpr int64_t most_heads = 1 << 24;  // of heads and of their sizes, so that no product overflows

// The tensors of an attention layer's call: query, value, and key where it is not the value.
struct Inputs {
  Signal query, value, key;
};

Inputs read_inputs(Call& c) {
  auto read = [&](size_t position, std::string_view name) -> Signal {
    const Argument* given = c.arguments.find(position, name);
    if (given == nullptr) return {};
    auto tensors = given->tensors();
    if (tensors.size() != 1) c.config.invalid("'{}' is one tensor; got {}", name, tensors.size());
    return {c.tensor(position, name), tensors[0].mask};
  };
  Inputs in{read(0, "query"), read(1, "value"), read(2, "key")};
  if (!in.query.value || !in.value.value) c.config.invalid("is called with a query and a value");
  if (!in.key.value) in.key = {in.value.value, {}};
  for (const Signal* s : {&in.query, &in.value, &in.key})
    if (s->value.rank() < 3) c.config.invalid("takes [batch, time, features]; got {}", to_string(s->value.type()));
  return in;
}

// [batch or 1, target, source], or nothing. Masks given by name come before those that come with the tensors.
Value attention_mask(Call& c, const Inputs& in, Value query_mask) {
  auto mask_of = [&](size_t position, std::string_view name, Value carried) {
    Value given = c.tensor(position, name);
    Value mask = given ? given : carried;
    return mask ? expand_dims(convert(mask, DType::boolean), {-2}) : Value{};
  };
  Value out = query_mask ? expand_dims(convert(query_mask, DType::boolean), {-1}) : Value{};
  out = both(out, mask_of(4, "value_mask", in.value.mask));
  out = both(out, mask_of(5, "key_mask", in.key.mask));
  int64_t target = in.query.value.extent(1), source = in.value.value.extent(1);
  if (call_flag(c, 9, "use_causal_mask")) out = both(out, causal_mask(c.graph, target, source));
  if (c.config.has("sliding_window"))
    out = both(out, window_mask(c.graph, target, source, c.config.positive("sliding_window", most_heads)));
  if (Value given = c.tensor(6, "attention_mask")) out = both(convert(given, DType::boolean), out);
  return out;
}

// scores: [batch..., heads, target..., source...]; a mask of lower rank has no axis for the heads.
Value for_scores(Value mask, int64_t rank, int64_t attended) {
  while (mask && mask.rank() < rank) mask = mask.rank() > 2 * attended ? expand_dims(mask, {-2 * attended - 1}) : expand_dims(mask, {0});
  return mask;
}

double lowest(DType dtype) {
  return -0.7 * (dtype == DType::f64 ? std::numeric_limits<double>::max() : static_cast<double>(std::numeric_limits<float>::max()));
}

// Keras's fused attention: 16-bit scores are computed in 32 bits; where nothing may be seen, everything is seen alike.
Value fused_shares(Value scores, Value mask, DType dtype) {
  if (mask) scores = select(mask, scores, scalar(scores.graph(), scores.dtype(), lowest(scores.dtype())));
  return convert(softmax(scores, {-1}), dtype);
}

// Keras's softmax layer: in the compute dtype; where nothing may be seen, nothing is. In Keras 2 everything alike is, and masked scores are
// lowered rather than replaced unless "softmax_robust_masking" says so.
Value masked_softmax(Call& c, Value scores, Value mask, const Ints& axes) {
  bool keras2 = c.lowering.keras_major < 3, lowered = keras2 && !c.config.flag("softmax_robust_masking", false);
  double large = scores.dtype() != DType::f16 ? -1e9 : keras2 ? -65504 : -3e4;
  if (mask) scores = select(mask, scores, lowered ? scores + large : full_like(scores, large));
  Value shares = axes.size() > 1 ? exponential(scores - logsumexp(scores, axes, true)) : softmax(scores, axes);
  return mask && !keras2 ? select(mask, shares, full_like(shares, 0)) : shares;
}

struct Attended {
  Value output, scores;
};

// query, key, value: [batch, ..., heads, depth] with the axes that attention runs along; the rest, heads included, is batch.
Attended attend(Call& c, Value query, Value key, Value value, Value mask, const Ints& axes, double scale, bool with_scores) {
  int64_t rank = query.rank();
  Ints batch, softmax_axes, order(static_cast<size_t>(rank), rank - 1);
  for (int64_t i = 0; i < rank - 1; ++i)
    if (!includes(axes, i)) batch.push_back(i);
  auto attended = static_cast<int64_t>(axes.size()), leading = static_cast<int64_t>(batch.size());
  bool fused = c.lowering.keras_major >= 3 && c.config.number("dropout", 0) == 0 && !with_scores && rank == 4;
  DType dtype = query.dtype();
  if (fused && byte_size(dtype) == 2) {
    query = convert(query, DType::f32);
    key = convert(key, DType::f32);
  }
  if (!fused) query = query * scale;
  // dot_general puts what is left of each side in its own order of axes; attention_axes may name them in another.
  Ints in_order = axes, permutation;
  std::sort(in_order.begin(), in_order.end());
  Value scores = dot_general(query, key, {batch, batch, {rank - 1}, {rank - 1}});  // [batch..., heads, target..., source...]
  for (int64_t i = 0; i < leading; ++i) permutation.push_back(i);
  for (int64_t side = 0; side < 2; ++side)
    for (int64_t axis : axes)
      permutation.push_back(leading + side * attended + (std::find(in_order.begin(), in_order.end(), axis) - in_order.begin()));
  scores = transpose(scores, permutation);
  mask = for_scores(mask, scores.rank(), attended);
  for (int64_t i = 0; i < attended; ++i) softmax_axes.push_back(leading + attended + i);
  Value shares = fused ? fused_shares(scores * scale, mask, dtype) : masked_softmax(c, scores, mask, softmax_axes);
  Ints left(permutation.begin(), permutation.begin() + leading);
  Value applied = dropped(c, shares, c.config.number("dropout", 0), shares.shape());
  Value out = dot_general(applied, value, {left, batch, softmax_axes, axes});  // [batch..., heads, target..., depth]
  for (size_t i = 0; i < batch.size(); ++i) order[static_cast<size_t>(batch[i])] = static_cast<int64_t>(i);
  for (size_t i = 0; i < axes.size(); ++i) order[static_cast<size_t>(axes[i])] = leading + static_cast<int64_t>(i);
  return {transpose(out, order), shares};
}

Outputs with_scores_if(bool wanted, Signal output, Value scores) {
  if (!wanted) return output;
  return std::vector<Signal>{output, {scores, {}}};
}

// What differs between the two layers with projections.
struct Projections {
  std::string query, key, value, output;  // attributes that hold them
  Ints query_heads, key_heads, value_heads, gate_heads, output_shape;
  double scale;
};

Outputs projected_attention(Call& c, const Inputs& in, Value query_mask, const Projections& p, const Ints& axes) {
  refuse_training(c);
  bool with_scores = call_flag(c, 7, "return_attention_scores");
  Value mask = attention_mask(c, in, query_mask), gate;
  bool gated = c.config.flag("use_gate", false);
  Value query = project(c, p.query, "query", in.query.value, p.query_heads, 1);
  Value key = project(c, p.key, "key", in.key.value, p.key_heads, 1);
  if (gated) gate = logistic(project(c, "_gate_dense", "gate", in.query.value, p.gate_heads, 1));
  Value value = project(c, p.value, "value", in.value.value, p.value_heads, 1);
  int64_t groups = p.query_heads[0] / p.key_heads[0];
  key = repeat(key, groups, -2);
  value = repeat(value, groups, -2);
  auto [output, scores] = attend(c, query, key, value, mask, axes, p.scale, with_scores);
  if (gated) output = output * gate;
  output = project(c, p.output, "attention_output", output, p.output_shape, 2);
  return with_scores_if(with_scores, {output, in.query.mask}, scores);
}

Outputs multi_head_attention(Call& c) {
  c.leave_activity_to_parts();
  Inputs in = read_inputs(c);
  int64_t heads = c.config.positive("num_heads", most_heads), key_dim = c.config.positive("key_dim", most_heads);
  int64_t value_dim = c.config.positive("value_dim", key_dim, most_heads);
  int64_t spatial = in.query.value.rank() - 2;
  if (in.value.value.rank() != in.query.value.rank() || in.key.value.rank() != in.query.value.rank())
    c.config.unsupported("query, value and key of different ranks are not done");
  Ints axes;
  if (c.config.has("attention_axes")) {
    for (int64_t axis : c.config.ints("attention_axes")) {
      if (axis < 0) axis += spatial + 2;
      if (axis < 1 || axis > spatial || includes(axes, axis))
        c.config.invalid("'attention_axes' are different axes between batch and features; got {}",
                         to_string(c.config.ints("attention_axes")));
      axes.push_back(axis);
    }
  } else {
    for (int64_t axis = 1; axis <= spatial; ++axis) axes.push_back(axis);
  }
  if (axes.empty()) c.config.invalid("'attention_axes' is empty");
  Ints output_shape{in.query.value.extent(-1)};
  if (c.config.has("output_shape")) output_shape = c.config.ints("output_shape");
  // Keras 3 takes the query's mask from the tensor alone, whatever the call says, and takes the masks off the tensors it has used: a layer
  // that runs later on the same tensor sees none.
  c.arguments.find("query_mask");
  Value query_mask = in.query.mask;
  if (c.lowering.keras_major >= 3)
    for (Value used : {in.query.value, in.value.value, in.key.value}) c.lowering.unmasked.insert(used.id());
  return projected_attention(c, in, query_mask,
                             {"query_dense",
                              "key_dense",
                              "value_dense",
                              "output_dense",
                              {heads, key_dim},
                              {heads, key_dim},
                              {heads, value_dim},
                              {heads, value_dim},
                              output_shape,
                              1 / std::sqrt(static_cast<double>(key_dim))},
                             axes);
}

Outputs grouped_query_attention(Call& c) {
  Inputs in = read_inputs(c);
  for (const Signal* s : {&in.query, &in.value, &in.key})
    if (s->value.rank() != 3) c.config.invalid("takes [batch, time, features]; got {}", to_string(s->value.type()));
  int64_t depth = c.config.positive("head_dim", most_heads), heads = c.config.positive("num_query_heads", most_heads),
          groups = c.config.positive("num_key_value_heads", most_heads);
  if (heads % groups != 0) c.config.invalid("{} query heads cannot share {} key heads", heads, groups);
  Value given = c.tensor(3, "query_mask");
  return projected_attention(c, in, given ? given : in.query.mask,
                             {"_query_dense",
                              "_key_dense",
                              "_value_dense",
                              "_output_dense",
                              {heads, depth},
                              {groups, depth},
                              {groups, depth},
                              {heads, depth},
                              {in.query.value.extent(-1)},
                              1 / std::sqrt(static_cast<double>(depth))},
                             {1});
}

// query: [..., target, depth], key: [..., source, depth]; sum of scale * tanh of all pairs.
Value additive_scores(Value query, Value key, Value scale) {
  Value pairs = tanh(expand_dims(query, {-2}) + expand_dims(key, {-3}));
  return sum(scale ? pairs * scale : pairs, {-1});
}

Outputs plain_attention(Call& c, Value (*score)(Call& c, Value query, Value key)) {
  refuse_training(c);
  if (c.input_count() < 2 || c.input_count() > 3)
    c.config.invalid("is called with [query, value] or [query, value, key]; got {} tensors", c.input_count());
  Value query = c.x(0), value = c.x(1), key = c.input_count() > 2 ? c.x(2) : value, query_mask = c.mask(0), value_mask = c.mask(1);
  for (Value x : {query, value, key})
    if (x.rank() < 2) c.config.invalid("takes [batch, time, features]; got {}", to_string(x.type()));
  Value scores = score(c, query, key), mask = value_mask ? convert(value_mask, DType::boolean) : Value{};  // scores: [..., target, source]
  if (mask && mask.rank() == 2) mask = expand_dims(mask, {-2});
  if (call_flag(c, 4, "use_causal_mask") || c.config.flag("causal", false))
    mask = both(mask, expand_dims(causal_mask(c.graph, scores.extent(-2), scores.extent(-1)), {0}));
  if (mask) scores = select(mask, scores, scores - (scores.dtype() == DType::f16 ? 65504.0 : 1e9));
  Value shares = softmax(scores, {-1});
  shares = dropped(c, shares, c.config.number("dropout", 0), shares.shape());
  Value output = matmul(shares, value);
  if (query_mask) output = select(expand_dims(convert(query_mask, DType::boolean), {-1}), output, scalar(c.graph, output.dtype(), 0));
  return with_scores_if(call_flag(c, 3, "return_attention_scores"), {output, query_mask}, shares);
}

Outputs attention(Call& c) {
  return plain_attention(c, [](Call& call, Value query, Value key) {
    Value scale = call.config.flag("use_scale", false) ? call.weight("scale", {}) : Value{};
    std::string mode = call.config.text("score_mode", "dot");
    if (mode == "dot") {
      Value scores = matmul(query, swapaxes(key, -2, -1));
      return scale ? scores * scale : scores;
    }
    if (mode != "concat") call.config.invalid("'score_mode' is dot or concat; got '{}'", mode);
    Value weight = call.weight("concat_score_weight", {});
    if (!scale) return weight * additive_scores(query, key, {});
    Value pairs = tanh((expand_dims(query, {-2}) + expand_dims(key, {-3})) * scale);
    return weight * sum(pairs, {-1});
  });
}

Outputs additive_attention(Call& c) {
  return plain_attention(c, [](Call& call, Value query, Value key) {
    return additive_scores(query, key, call.config.flag("use_scale", true) ? call.weight("scale", {query.extent(-1)}) : Value{});
  });
}

constexpr std::string_view plain_call = "mask training return_attention_scores use_causal_mask";
constexpr std::string_view projected_call =
    "value key query_mask value_mask key_mask attention_mask return_attention_scores training use_causal_mask";
constexpr std::string_view grouped_options =
    "head_dim num_query_heads num_key_value_heads dropout use_bias use_gate sliding_window flash_attention";

}  // namespace

Rows attention_layers() {
  static const LayerRow rows[] = {
      {"AdditiveAttention", additive_attention, Masking::own, "use_scale dropout causal", "", plain_call},
      {"Attention", attention, Masking::own, "use_scale score_mode dropout causal", "", plain_call},
      {"GroupQueryAttention", grouped_query_attention, Masking::own, grouped_options, "", projected_call},
      {"GroupedQueryAttention", grouped_query_attention, Masking::own, grouped_options, "its name in .h5 files", projected_call},
      {"MultiHeadAttention", multi_head_attention, Masking::own,
       "num_heads key_dim value_dim dropout use_bias use_gate output_shape attention_axes sliding_window flash_attention query_shape "
       "key_shape value_shape softmax_robust_masking",
       "query, value and key of different ranks are refused", projected_call},
  };
  return rows;
}

}  // namespace tutti::keras
