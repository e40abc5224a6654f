#include "tutti/keras/lower.h"

#include <algorithm>
#include <cctype>

#include "tutti/graph/compose.h"
#include "tutti/keras/fit/regularizers.h"

namespace tutti::keras {

namespace {

constexpr int max_nesting = 64;

// Keys that never change what a layer computes at inference, or that every layer has.
bool goes_without_saying(std::string_view key) {
  static constexpr std::string_view common[] = {"name",         "trainable", "dtype",       "batch_input_shape", "input_shape",
                                                "build_config", "seed",      "input_dtype", "rng_type"};
  return std::find(std::begin(common), std::end(common), key) != std::end(common) || key.ends_with("_initializer") ||
         key.ends_with("_regularizer") || key.ends_with("_constraint");
}

bool is_listed(std::string_view options, std::string_view key) {
  const auto all = words(options);
  return std::find(all.begin(), all.end(), key) != all.end();
}

void check_options(const LayerRow& row, const Config& config) {
  if (row.options == "*" || !config.json().is_object()) return;
  for (const auto& [key, value] : config.json().members())
    if (!value.is_null() && !goes_without_saying(key) && !is_listed(row.options, key))
      config.unsupported("option '{}' = {} is not known here", key, escape(value.dump(), 60));
}

// Of what the file calls a layer with, after it ran.
void check_arguments(const LayerRow& row, const Config& config, const Arguments& arguments) {
  auto refuse = [&](const std::string& which, const Argument& argument, const std::string& hint) {
    const bool is_plain = argument.kind == Argument::Kind::constant;
    config.unsupported("is called with {}{}, which is not known here{}", which,
                       is_plain ? " = " + escape(argument.constant.dump(), 60) : std::string(), hint);
  };
  const auto known = words(row.call);
  // Null and false are the defaults of what is off.
  auto is_left = [](const Argument& argument) { return !argument.asked_for && !argument.is_null() && argument.constant != Json(false); };
  for (const Argument& argument : arguments.positional)
    if (is_left(argument)) refuse("more arguments than it takes, the last one", argument, "");
  for (const auto& [name, argument] : arguments.named)
    if (is_left(argument))
      refuse(fmt::format("argument '{}'", escape(name, 60)), argument, did_you_mean(name, {known.begin(), known.end()}));
}

// Random numbers at inference: dropout and noise, and augmentation, which has a seed and no such rate.
void check_training(const Config& config) {
  bool has_rate = false, random = false;
  for (std::string_view key : {"rate", "stddev", "dropout", "recurrent_dropout"}) {
    has_rate = has_rate || config.has(key);
    random = random || (config.has(key) && config.number(key) != 0);
  }
  if (random || (!has_rate && config.json().is_object() && config.json().has("seed")))
    config.unsupported("is called with training=True and draws random numbers; hint: save the model without training=True in its calls");
}

const std::string& text_or_empty(const Json& object, std::string_view key) {
  static const std::string empty;
  const Json* found = object.find(key);
  return found != nullptr && found->is_string() ? found->as_string() : empty;
}

std::vector<std::string> known_names(std::span<const LayerFamily> families) {
  std::vector<std::string> out;
  for (const auto& family : families)
    for (const auto& row : family.rows) out.emplace_back(row.name);
  return out;
}

FoundRow find_row(std::span<const LayerFamily> families, std::string_view name) {
  for (const auto& family : families)
    for (const auto& row : family.rows)
      if (row.name == name) return {&row, family.autocast};
  return {};
}

}  // namespace

std::vector<std::string_view> words(std::string_view list) {
  std::vector<std::string_view> out;
  while (!list.empty()) {
    size_t space = std::min(list.find(' '), list.size());
    out.push_back(list.substr(0, space));
    list.remove_prefix(std::min(space + 1, list.size()));
  }
  return out;
}

FoundRow find_layer(std::string_view class_name) { return find_row(layer_families(), class_name); }
FoundRow find_operation(std::string_view class_name) { return find_row(operation_families(), class_name); }

std::string layer_name(const Json& layer) {
  const std::string& own = text_or_empty(layer, "name");
  if (!own.empty()) return own;
  const Json* config = layer.find("config");
  return config != nullptr && config->is_object() ? text_or_empty(*config, "name") : "";
}

std::string to_snake_case(std::string_view class_name) {
  // Keras: a break before an upper-case letter that begins a word ("Conv2DTranspose" -> "conv2d_transpose", "ReLU" -> "re_lu").
  std::string out;
  auto upper = [&](size_t i) { return std::isupper(static_cast<unsigned char>(class_name[i])) != 0; };
  auto lower = [&](size_t i) { return std::islower(static_cast<unsigned char>(class_name[i])) != 0; };
  std::string kept;
  for (char c : class_name)
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') kept += c;
  class_name = kept;
  for (size_t i = 0; i < class_name.size(); ++i) {
    bool word = i > 0 && upper(i) && i + 1 < class_name.size() && lower(i + 1);
    bool hump = i > 0 && upper(i) && lower(i - 1);
    if ((word || hump) && out.back() != '_') out += '_';
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(class_name[i])));
  }
  return out;
}

namespace {

// .h5 files do not say what an operation is, and some have the name of a layer. Layers of Keras 3 say whether they are trainable.
bool is_unmarked_operation(const Json& layer) {
  const Json* config = layer.find("config");
  return config != nullptr && config->is_object() && !config->has("trainable") && has_calls_of_keras3(layer) &&
         find_operation(text_or_empty(layer, "class_name")).row != nullptr;
}

}  // namespace

bool has_calls_of_keras3(const Json& layer) {
  const Json* nodes = layer.is_object() ? layer.find("inbound_nodes") : nullptr;
  return nodes != nullptr && nodes->is_list() && nodes->size() > 0 && (*nodes)[0].is_object();
}

bool is_operation(const Json& layer) {
  const std::string& module = text_or_empty(layer, "module");
  if (module.empty()) return is_unmarked_operation(layer);
  for (std::string_view prefix : {"keras.src.ops", "keras.ops", "keras.src.backend", "keras.src.activations", "keras.src.quantizers"})
    if (module.starts_with(prefix)) return true;
  return false;
}

FoundRow resolve(const Json& layer) {
  if (!layer.is_object() || text_or_empty(layer, "class_name").empty())
    fail<InvalidModel>("keras", "a layer is an object with a class_name; got {}", escape(layer.dump(), 80));
  const std::string &class_name = text_or_empty(layer, "class_name"), &module = text_or_empty(layer, "module"),
                    &registered = text_or_empty(layer, "registered_name");
  std::string name = layer_name(layer);
  // A class of a script has a registered name and no module. Layers in .h5 files have neither, whosever they are.
  bool ours = (module.empty() && registered.empty()) || module == "keras" || module.starts_with("keras.") ||
              module.starts_with("tf_keras.") || module == "builtins" || module.starts_with("tensorflow.");
  auto is_custom = [](const std::string& word) { return word.find('>') != std::string::npos && find_layer(word).row == nullptr; };
  if (!ours || is_custom(class_name) || is_custom(registered))
    fail<Unsupported>(
        "keras",
        "layer '{}': class '{}' is a custom object, whose code is not in the file; hint: rebuild it from Keras's own layers and operations",
        name, registered.empty() ? class_name : registered);
  bool operation = is_operation(layer);
  FoundRow found = operation ? find_operation(class_name) : find_layer(class_name);
  if (found.row == nullptr && module.empty()) found = find_operation(class_name);
  if (found.row == nullptr)
    fail<Unsupported>("keras", "layer '{}': {} '{}' is not known here{}{}", name, operation ? "operation" : "class", class_name,
                      did_you_mean(class_name, known_names(operation ? operation_families() : layer_families())),
                      operation ? "" : "; hint: the code of a class of your own is not in the file");
  if (found.row->function == nullptr) fail<Unsupported>("keras", "layer '{}': {} is refused: {}", name, found.row->name, found.row->note);
  return found;
}

namespace {
Config layer_config(const Json& layer, const FoundRow& found) {
  static const Json empty = Json::object();
  const Json* json = layer.find("config");
  return {json != nullptr ? *json : empty, fmt::format("layer '{}' ({})", layer_name(layer), found.row->name)};
}
}  // namespace

Call Lowering::open(const Json& layer, Scope& scope, const Arguments& arguments) {
  FoundRow found = resolve(layer);
  return open(found, layer_config(layer, found), scope, arguments);
}

Call Lowering::open(const FoundRow& found, const Config& config, Scope& scope, const Arguments& arguments) {
  check_options(*found.row, config);
  if (training && fit == nullptr) check_training(config);
  scope.set_trainable(config.flag("trainable", true));
  Policy policy = read_policy(config);
  if (!policy.quantization.empty() && !is_listed(found.row->options, "quantization_config"))
    config.unsupported("a layer quantized to '{}' is not read; hint: Dense, EinsumDense and Embedding are", escape(policy.quantization));
  return {config, arguments, policy, found.autocast, *this, scope};
}

Outputs Lowering::run(const Json& layer, Scope& scope, const Arguments& arguments) {
  FoundRow found = resolve(layer);
  std::string name = layer_name(layer);
  Config config = layer_config(layer, found);
  if (depth_ >= max_nesting) config.invalid("layers are nested more than {} deep", max_nesting);
  size_t at = trace != nullptr ? trace->size() : 0;
  if (trace != nullptr) trace->push_back({name, std::string(found.row->name), depth_, {}, graph.nodes().size(), 0, &scope});
  struct Nested {
    Lowering& lowering;
    bool training;
    explicit Nested(Lowering& l) : lowering(l), training(l.training) { ++lowering.depth_; }
    ~Nested() {
      --lowering.depth_;
      lowering.training = training;
    }
  } nested(*this);
  const Argument* given = arguments.find("training");
  if (given != nullptr && given->kind == Argument::Kind::constant && given->constant.is_bool() && keras_major < 3)
    training = given->constant.as_bool();
  // While training, each layer that the model itself calls forgets what its call before added to the loss: Keras's way.
  constexpr int called_by_the_model = 2;
  if (fit != nullptr && depth_ == called_by_the_model) fit->forget_activities(scope);
  try {
    Outputs outputs = run(found, config, scope, arguments);
    if (trace != nullptr) {
      auto& entry = (*trace)[at];
      entry.end_node = graph.nodes().size();
      for (const auto& signal : outputs.signals) entry.outputs.push_back(signal.value.type());
    }
    return outputs;
  } catch (const InvalidArgument& e) {
    // The graph's rules know nothing of layers; say which one broke them.
    config.invalid("{}", e.what());
  }
}

Outputs Lowering::run(const FoundRow& found, const Config& config, Scope& scope, const Arguments& arguments) {
  Call call = open(found, config, scope, arguments);
  Outputs outputs = found.row->function(call);
  if (fit != nullptr && config.has("activity_regularizer") && !call.activity_is_of_parts())
    for (const Signal& signal : outputs.signals) call.add_activity(config.get("activity_regularizer"), signal.value);
  if (found.row->masking != Masking::own)
    for (auto& signal : outputs.signals) signal.mask = {};
  if (found.row->masking == Masking::pass && !outputs.signals.empty() && call.input_count() > 0) outputs.signals[0].mask = call.mask(0);
  check_arguments(*found.row, config, arguments);
  return outputs;
}

Scope& Lowering::scope_of(const Json& layer, Scope& parent, const std::string& key) {
  // Keras 2 numbers every layer, and keeps the weights of one as often as it is somewhere.
  const Json* id = keras_major < 3 ? nullptr : layer.find("shared_object_id");
  if (id == nullptr || !id->is_int()) return parent.child(key, layer_name(layer));
  Scope*& found = shared_[id->as_int()];
  if (found == nullptr) found = &parent.child(key, layer_name(layer));
  return *found;
}

Value* Fit::update_of(const Variable& variable) {
  for (auto& [one, next] : updates)
    if (one == &variable) return &next;
  return nullptr;
}

Value Fit::counted(Value own) const { return is_part ? own * convert(compare(share, 0, Direction::GT), own.dtype()) : own; }

Value Fit::over_parts(Value own, const std::string& what) const {
  if (!is_part) return own;
  if (accumulates)
    fail<Unsupported>("fit", "{} needs the whole batch at once, so it cannot be accumulated over small batches; hint: --accumulate 1",
                      what);
  return all_reduce({counted(own)}, replicas)[0];
}

void Fit::add_loss(Value value) { penalty = penalty ? penalty + value : value; }

void Fit::forget_activities(const Scope& scope) {
  const std::string below = scope.keys() + "/";
  std::erase_if(activities, [&](const auto& one) { return one.first == &scope || one.first->keys().starts_with(below); });
}

Value Lowering::parameter(Variable& variable) {
  auto [found, added] = parameters_.try_emplace(&variable);
  if (!added) return found->second;
  const bool changes = fit != nullptr && (fit->trained.contains(&variable) || !variable.trainable);
  found->second = graph.parameter(changes ? Graph::Role::state : Graph::Role::weight, variable.path, variable.type, variable.value);
  if (changes) fit->parameters[&variable] = found->second;
  return found->second;
}

std::vector<Signal> Argument::tensors() const {
  std::vector<Signal> out;
  if (kind == Kind::tensor) out.push_back(tensor);
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (kind == Kind::object) std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  for (size_t i : order) {
    auto below = items[i].tensors();
    out.insert(out.end(), below.begin(), below.end());
  }
  return out;
}

const Argument* Arguments::given(size_t position, std::string_view name) const {
  const Argument* found = position < positional.size() ? &positional[position] : nullptr;
  for (const auto& [key, argument] : named)
    if (key == name) found = &argument;
  if (found != nullptr) found->asked_for = true;
  return found;
}

const Argument* Arguments::find(size_t position, std::string_view name) const {
  const Argument* found = given(position, name);
  return found == nullptr || found->is_null() ? nullptr : found;
}

std::span<const Argument> Arguments::in_order() const {
  for (const Argument& argument : positional) argument.asked_for = true;
  return positional;
}

Call::Call(Config config_, const Arguments& arguments_, Policy policy_, bool autocast, Lowering& lowering_, Scope& scope)
    : config(std::move(config_)),
      arguments(arguments_),
      policy(std::move(policy_)),
      graph(lowering_.graph),
      lowering(lowering_),
      autocast_(autocast),
      scope_(scope) {
  first_ = arguments.find(0, "inputs");
  if (first_ != nullptr) inputs_ = first_->tensors();
  for (auto& signal : inputs_) signal.value = cast(signal.value);
}

// Keras 3 casts floats to a whole number too, where the layer has such a dtype.
Value Call::cast(Value v) const {
  return autocast_ && is_float(v.dtype()) && (is_float(policy.compute) || lowering.keras_major >= 3) ? convert(v, policy.compute) : v;
}

Value Call::x(size_t index) const {
  if (index >= inputs_.size()) config.invalid("is called with {} tensors, needs at least {}", inputs_.size(), index + 1);
  return inputs_[index].value;
}

Value Call::uncast_x(size_t index) const {
  x(index);  // the same complaint when it is missing
  return first_->tensors()[index].value;
}

bool Call::training() const { return lowering.training; }

Value Call::mask(size_t index) const {
  if (const Argument* given = arguments.find("mask")) {
    auto masks = given->tensors();
    if (given->kind == Argument::Kind::constant && !given->constant.is_null()) config.unsupported("a mask that is no tensor of the model");
    if (given->kind == Argument::Kind::list && index < given->items.size()) {
      auto own = given->items[index].tensors();
      return own.empty() ? Value{} : own[0].value;
    }
    if (index < masks.size()) return masks[index].value;
  }
  return index < inputs_.size() ? inputs_[index].mask : Value{};
}

Value Call::tensor(size_t position, std::string_view name) const {
  const Argument* found = arguments.find(position, name);
  if (found == nullptr) return {};
  auto tensors = found->tensors();
  if (tensors.size() != 1) config.invalid("argument '{}' is one tensor; got {}", name, tensors.size());
  return cast(tensors[0].value);
}

Value Call::weight(const std::string& name, Shape shape, const WeightOptions& options) {
  Type type{options.dtype.value_or(policy.variable), std::move(shape)};
  Variable& variable = scope_.variable(next_variable_++, name, type, options.trainable);
  if (variable.merge_scale != options.merge_scale) variable.merge_scale = options.merge_scale;
  Value value = lowering.parameter(variable);
  if (lowering.fit != nullptr) note_options(variable, options.option.empty() ? std::string_view(name) : options.option, value);
  return options.raw || !is_float(policy.compute) ? value : cast(value);
}

// Regularizers and constraints stand in the config of the layer that makes the weight.
void Call::note_options(const Variable& variable, std::string_view option, Value raw) {
  Fit& fit = *lowering.fit;
  if (!fit.trained.contains(&variable) || !fit.regularized.insert(&variable).second) return;
  if (const Json& found = config.get(weight_option(option, "regularizer")); !found.is_null()) fit.add_loss(regularization(found, raw));
  if (const Json& found = config.get(weight_option(option, "constraint")); !found.is_null()) fit.constraints[&variable] = found;
}

bool Call::draws() const { return lowering.fit != nullptr && lowering.fit->training; }

// `elements` are drawn. The numbers of a sample depend on its place in the whole batch, not on who computes it.
Value Call::key(int64_t elements, bool by_sample) {
  Fit& fit = *lowering.fit;
  constexpr uint64_t apart = 0x9e3779b97f4a7c15;  // an odd number far from round ones: streams of near seeds do not meet
  const Value stream = graph.constant(Tensor::scalar<uint64_t>(++fit.streams * apart));
  std::vector<Value> words{reshape(fit.seed + stream, {1}), reshape(fit.step, {1})};
  if (fit.is_part && by_sample) {
    const Value each = graph.constant(Tensor::scalar<uint64_t>(static_cast<uint64_t>(elements / lowering.batch)));
    words.push_back(reshape(fit.first * each, {1}));
  }
  return concatenate(words, 0);
}

Value Call::uniform(const Shape& shape, bool by_sample) { return tutti::uniform(key(shape.elements(), by_sample), shape); }
Value Call::normal(const Shape& shape, bool by_sample) { return tutti::normal(key(shape.elements(), by_sample), shape); }

Variable& Call::own(const std::string& name) {
  for (const auto& variable : scope_.variables())
    if (variable->name == name) return *variable;
  fail<InternalError>("keras", "{} has no variable '{}'", config.where(), name);
}

Value Call::latest(const std::string& name) {
  Variable& variable = own(name);
  const auto found = lowering.fit == nullptr ? nullptr : lowering.fit->update_of(variable);
  return found != nullptr ? *found : lowering.parameter(variable);
}

void Call::assign(const std::string& name, Value next) {
  Variable& variable = own(name);
  next = convert(next, variable.type.dtype);
  if (Value* found = lowering.fit->update_of(variable)) {
    *found = next;
  } else {
    lowering.fit->updates.push_back({&variable, next});
  }
}

void Call::add_activity(const Json& regularizer, Value output) {
  const Value all = regularization(regularizer, output);
  const Value own = output.rank() > 0 ? all / static_cast<double>(std::max<int64_t>(output.extent(0), 1)) : all;
  lowering.fit->activities.emplace_back(&scope_, own);
}

const std::string* Call::asset(const std::string& name) const {
  auto found = lowering.file.assets.find(scope_.keys() + "/" + name);
  return found == lowering.file.assets.end() ? nullptr : &found->second;
}

void Call::repeat_weight(const std::string& name, const Type& type) { scope_.variable(next_variable_++, name, type, true).repeats = true; }

namespace {
Arguments as_arguments(std::vector<Signal> inputs) {
  Arguments out;
  if (inputs.size() == 1) {
    out.positional.emplace_back(inputs[0]);
  } else {
    out.positional.emplace_back(std::vector<Argument>(inputs.begin(), inputs.end()));
  }
  return out;
}
}  // namespace

Outputs Call::child(const std::string& key, const Json& layer, const Arguments& inner) {
  if (!layer.is_object()) config.invalid("'{}' is a serialized layer; got {}", key, escape(layer.dump(), 60));
  return lowering.run(layer, lowering.scope_of(layer, scope_, key), inner);
}

Outputs Call::child(const std::string& key, const Json& layer, std::vector<Signal> inputs) {
  return child(key, layer, as_arguments(std::move(inputs)));
}

Outputs Call::child(const std::string& key, const std::string& name, const Json& inner, std::vector<Signal> inputs,
                    Outputs (*function)(Call&)) {
  Arguments arguments_ = as_arguments(std::move(inputs));
  Call call(Config(inner, fmt::format("{} {}", config.where(), name)), arguments_, policy, true, lowering, scope_.child(key, name));
  return function(call);
}

}  // namespace tutti::keras
