// Functional models: layers called on each other's outputs, in the argument structures of Keras 3 files and of legacy ones. A layer that is
// called several times shares its scope, and so its weights.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/keras/layers/call_order.h"
#include "tutti/keras/layers/models.h"
#include "tutti/keras/layers/operations/operand.h"

namespace tutti::keras {

namespace {

constexpr int max_argument_depth = 64;

// Call number `node` of a layer.
struct CallId {
  std::string layer;
  size_t node = 0;
  auto operator<=>(const CallId&) const = default;
};

struct TensorId {
  CallId call;
  size_t index = 0;
  auto operator<=>(const TensorId&) const = default;
};

// How one call is written in the file.
struct CallText {
  const Json* args = nullptr;    // Keras 3: the positional arguments; legacy: the first one, nested, each leaf [layer, node, index, kwargs]
  const Json* kwargs = nullptr;  // an object, or nullptr
  bool legacy = false;
};

struct LayerEntry {
  const Json* json = nullptr;
  std::string key;
  std::vector<CallText> calls;
  // What the file counts the calls from. Legacy files count a nested model's own making as its call 0.
  size_t first_call = 0;
};

bool is_reference(const Json& json) {
  return json.is_list() && json.size() >= 3 && json.size() <= 4 && json[0].is_string() && json[1].is_int();
}

// Legacy files put plain values among the inputs: ["_CONSTANT_VALUE", -1, value, kwargs].
bool is_legacy_constant(const Json& reference) { return reference[0].as_string() == "_CONSTANT_VALUE"; }

// The leaves of a legacy call's first argument.
void collect_leaves(const Json& structure, std::vector<const Json*>& out) {
  if (is_reference(structure)) {
    out.push_back(&structure);
  } else if (structure.is_list()) {
    for (const Json& item : structure.items()) collect_leaves(item, out);
  } else if (structure.is_object()) {
    for (const auto& [key, item] : structure.members()) collect_leaves(item, out);
  } else {
    fail<InvalidModel>("keras", "an inbound tensor is [layer, node, index, kwargs]; got {}", escape(structure.dump(), 60));
  }
}

std::vector<const Json*> leaves(const Json& structure) {
  std::vector<const Json*> out;
  collect_leaves(structure, out);
  return out;
}

std::string_view class_name(const Json& layer) {
  const Json* name = layer.find("class_name");
  return name != nullptr && name->is_string() ? std::string_view(name->as_string()) : std::string_view();
}

// Legacy layers take a list of one tensor as that tensor; TensorFlow functions take it as the list.
bool keeps_lists(const Json& layer) {
  std::string_view name = class_name(layer);
  return name == "TFOpLambda" || name == "SlicingOpLambda";
}

// A layer's first argument by position, the others by their names: lstm(x, None, mask), and dense(inputs=x).
void name_arguments(Arguments& arguments, std::string_view call) {
  static constexpr std::string_view first[] = {"inputs", "sequences", "sequence", "query", "x"};
  auto& [positional, named] = arguments;
  auto is_first = [](const auto& argument) { return std::find(std::begin(first), std::end(first), argument.first) != std::end(first); };
  if (auto found = std::find_if(named.begin(), named.end(), is_first); positional.empty() && found != named.end()) {
    positional.push_back(std::move(found->second));
    named.erase(found);
  }
  size_t next = 1;
  for (std::string_view name : words(call))
    if (next < positional.size()) named.emplace_back(name, std::move(positional[next++]));
  if (next > 1) positional.erase(positional.begin() + 1, positional.begin() + static_cast<std::ptrdiff_t>(next));
}

// The config of a {"class_name": "__keras_tensor__", ...}, or nullptr.
const Json* keras_tensor(const Json& json) {
  const Json* name = json.is_object() ? json.find("class_name") : nullptr;
  if (name == nullptr || !name->is_string() || name->as_string() != "__keras_tensor__") return nullptr;
  return json.find("config");
}

class FunctionalModel {
 public:
  explicit FunctionalModel(Call& c) : c_(c), config_(c.config) { read_layers(); }

  // Runs the calls in Keras's order, each once those that it waits for are done.
  Outputs run() {
    feed_inputs();
    std::vector<CallId> calls;
    std::map<CallId, size_t> index;
    for (const auto& name : order_)
      for (size_t node = 0; node < layers_.at(name).calls.size(); ++node) {
        CallId call{name, node};
        if (fed_.count(call) != 0) continue;
        index[call] = calls.size();
        calls.push_back(call);
      }
    std::vector<OrderedCall> graph = connect(calls, index);
    std::vector<size_t> outputs, missing(calls.size());
    for (const TensorId& id : output_references())
      if (auto found = index.find(id.call); found != index.end()) outputs.push_back(found->second);
    std::vector<size_t> ranks = call_ranks(graph, outputs);
    std::vector<std::vector<size_t>> waiting(calls.size());
    std::set<std::pair<size_t, size_t>> ready;  // rank, call
    for (size_t i = 0; i < calls.size(); ++i) {
      missing[i] = graph[i].parents.size();
      for (size_t parent : graph[i].parents) waiting[parent].push_back(i);
      if (missing[i] == 0) ready.emplace(ranks[i], i);
    }
    size_t done = 0;
    for (; !ready.empty(); ++done) {
      size_t call = ready.begin()->second;
      ready.erase(ready.begin());
      run_call(calls[call]);
      for (size_t next : waiting[call])
        if (--missing[next] == 0) ready.emplace(ranks[next], next);
    }
    if (done < calls.size()) {
      size_t stuck = 0;
      while (missing[stuck] == 0) ++stuck;
      config_.invalid("the layers around '{}' feed each other in a circle", calls[stuck].layer);
    }
    return collect_outputs();
  }

 private:
  void read_layers() {
    const Json& list = config_.at("layers");
    if (!list.is_list()) config_.invalid("'layers' is a list");
    LayerKeys keys;
    for (const Json& layer : list.items()) {
      if (!layer.is_object()) config_.invalid("a layer is an object; got {}", escape(layer.dump(), 60));
      std::string name = layer_name(layer);
      LayerEntry entry{&layer, is_operation(layer) ? "operations/" + name : keys.next(layer), {}};
      if (const Json* nodes = layer.find("inbound_nodes")) {
        if (!nodes->is_list()) config_.invalid("'inbound_nodes' of '{}' is a list", name);
        for (const Json& node : nodes->items()) entry.calls.push_back(read_call(node));
      }
      if (!layers_.emplace(name, std::move(entry)).second) config_.invalid("two layers are named '{}'", name);
      order_.push_back(name);
    }
    find_first_calls();
    // Scopes in the order of the layers, so that variables come in Keras's order whatever the order of calls.
    for (const auto& name : order_) c_.lowering.scope_of(*layers_.at(name).json, c_.scope(), layers_.at(name).key);
  }

  CallText read_call(const Json& node) const {
    if (const Json* args = node.is_object() ? node.find("args") : nullptr) {
      if (!args->is_list()) config_.invalid("the arguments of a call are a list");
      return {args, node.find("kwargs"), false};
    }
    CallText call{&node, nullptr, true};
    // The keyword arguments stand at every leaf.
    for (const Json* leaf : leaves(node))
      if (leaf->size() == 4 && call.kwargs == nullptr) call.kwargs = &(*leaf)[3];
    return call;
  }

  void find_first_calls() {
    std::vector<CallId> all;
    for (const auto& [name, entry] : layers_)
      for (const CallText& call : entry.calls) {
        auto needed = needs(call);
        all.insert(all.end(), needed.begin(), needed.end());
      }
    for (const TensorId& id : flatten_references(config_.at("output_layers"))) all.push_back(id.call);
    for (const CallId& id : all) {
      auto found = layers_.find(id.layer);
      if (found == layers_.end() || found->second.calls.empty() || !found->second.calls[0].legacy) continue;
      std::string_view kind = class_name(*found->second.json);
      bool model = kind == "Functional" || kind == "Model" || kind == "Sequential";
      if (model && id.node >= found->second.calls.size()) found->second.first_call = 1;
    }
  }

  // Keras 3 counts the calls of a Functional model from one, but only where it lists the outputs.
  bool counts_from_one(const std::string& name) const {
    auto layer = layers_.find(name);
    return layer != layers_.end() && !layer->second.calls.empty() && !layer->second.calls[0].legacy &&
           class_name(*layer->second.json) == "Functional";
  }

  std::vector<TensorId> output_references() const {
    std::vector<TensorId> out = flatten_references(config_.at("output_layers"));
    for (TensorId& id : out)
      if (counts_from_one(id.call.layer) && id.call.node > 0) --id.call.node;
    return out;
  }

  void feed_inputs() {
    std::vector<TensorId> wanted = flatten_references(config_.at("input_layers"));
    std::vector<Signal> given = c_.inputs();
    if (given.size() != wanted.size()) config_.invalid("takes {} inputs; got {}", wanted.size(), given.size());
    const Argument* structure = c_.arguments.find(0, "inputs");
    for (size_t i = 0; i < wanted.size(); ++i) {
      const std::string& name = wanted[i].call.layer;
      auto layer = layers_.find(name);
      if (layer == layers_.end()) config_.invalid("input layer '{}' does not exist", name);
      Signal signal = given[i];
      // A dictionary of tensors is matched by the names of the input layers where it has them.
      if (structure != nullptr && structure->kind == Argument::Kind::object)
        for (size_t k = 0; k < structure->keys.size(); ++k)
          if (structure->keys[k] == name && structure->items[k].kind == Argument::Kind::tensor) signal = structure->items[k].tensor;
      if (c_.arguments.find("mask") != nullptr) signal.mask = c_.mask(i);  // inner(x, mask=m)
      values_[wanted[i]] = adjust_input(config_, signal, input_of_layer(*layer->second.json));
      fed_.insert(wanted[i].call);
    }
  }

  TensorId read_reference(const Json& json) const {
    if (!is_reference(json) || !json[2].is_int() || json[1].as_int() < 0 || json[2].as_int() < 0)
      config_.invalid("a tensor is [layer, node, index]; got {}", escape(json.dump(), 60));
    TensorId id{{json[0].as_string(), static_cast<size_t>(json[1].as_int())}, static_cast<size_t>(json[2].as_int())};
    auto layer = layers_.find(id.call.layer);
    size_t first = layer != layers_.end() ? layer->second.first_call : 0;
    if (id.call.node < first) config_.invalid("call {} of '{}' is not in the file", id.call.node, id.call.layer);
    id.call.node -= first;
    return id;
  }

  std::vector<TensorId> flatten_references(const Json& json) const {
    std::vector<TensorId> out;
    for (const Json* reference : flatten_structure(json)) out.push_back(read_reference(*reference));
    return out;
  }

  // In legacy keyword arguments a tensor is a bare reference to a layer of the model.
  bool is_legacy_tensor(const Json& json) const {
    return is_reference(json) && json.size() == 3 && json[2].is_int() && layers_.count(json[0].as_string()) != 0;
  }

  std::vector<OrderedCall> connect(const std::vector<CallId>& calls, const std::map<CallId, size_t>& index) const {
    std::vector<OrderedCall> out(calls.size());
    std::map<std::string, size_t> layer_of;
    for (size_t i = 0; i < calls.size(); ++i) {
      const std::string& name = calls[i].layer;
      out[i].layer = layer_of.emplace(name, layer_of.size()).first->second;
      for (const CallId& need : needs(layers_.at(name).calls[calls[i].node])) {
        if (fed_.count(need) != 0) continue;
        auto found = index.find(need);
        if (found == index.end())
          config_.invalid("layer '{}' is fed by call {} of '{}', which does not exist", name, need.node, need.layer);
        out[i].parents.push_back(found->second);
      }
    }
    return out;
  }

  // The calls that a call takes its tensors from, each once, in the order of its arguments.
  std::vector<CallId> needs(const CallText& call) const {
    std::vector<CallId> all = all_needs(call), out;
    std::set<CallId> seen;
    for (CallId& need : all)
      if (seen.insert(need).second) out.push_back(std::move(need));
    return out;
  }

  std::vector<CallId> all_needs(const CallText& call) const {
    std::vector<CallId> out;
    if (call.legacy) {
      for (const Json* leaf : leaves(*call.args))
        if (!is_legacy_constant(*leaf)) out.push_back(read_reference(*leaf).call);
    } else {
      collect_needs(*call.args, false, out, 0);
    }
    if (call.kwargs != nullptr) collect_needs(*call.kwargs, call.legacy, out, 0);
    return out;
  }

  void collect_needs(const Json& json, bool legacy, std::vector<CallId>& out, int depth) const {
    if (depth > max_argument_depth) config_.invalid("arguments are nested too deep");
    if (legacy && is_legacy_tensor(json)) {
      out.push_back(read_reference(json).call);
    } else if (const Json* tensor = keras_tensor(json)) {
      out.push_back(read_reference(tensor->at("keras_history")).call);
    } else if (json.is_list()) {
      for (const Json& item : json.items()) collect_needs(item, legacy, out, depth + 1);
    } else if (json.is_object()) {
      // Keras flattens dictionaries by sorted key.
      std::map<std::string_view, const Json*> sorted;
      for (const auto& [key, item] : json.members()) sorted.emplace(key, &item);
      for (const auto& [key, item] : sorted) collect_needs(*item, legacy, out, depth + 1);
    }
  }

  // The value of a reference; `tensor` is what the file recorded of it, if anything.
  Signal lookup(const Json& reference, const Json* tensor) {
    TensorId id = read_reference(reference);
    auto found = values_.find(id);
    if (found != values_.end()) {
      Signal signal = found->second;
      if (c_.lowering.unmasked.count(signal.value.id()) != 0) signal.mask = {};
      return signal;
    }
    if (failed_.count(id.call.layer) == 0) config_.invalid("layer '{}' has no output {} of call {}", id.call.layer, id.index, id.call.node);
    const Json* shape = tensor != nullptr ? tensor->find("shape") : nullptr;
    if (shape == nullptr || !shape->is_list() || shape->size() == 0) fail<Reported>("keras", "'{}' failed", id.call.layer);
    const Json* dtype = tensor->find("dtype");
    auto known = dtype_from_numpy(dtype != nullptr && dtype->is_string() ? dtype->as_string() : "float32");
    return {placeholder(c_.lowering, *shape, known.value_or(DType::f32)), {}};
  }

  Argument read_argument(const Json& json, bool legacy) {
    if (legacy && is_legacy_tensor(json)) return lookup(json, nullptr);
    if (const Json* tensor = keras_tensor(json)) {
      Argument out = lookup(tensor->at("keras_history"), tensor);
      const Json* shape = tensor->find("shape");
      if (shape != nullptr && shape->is_list() && shape->size() > 0 && (*shape)[0].is_int()) out.written_rows = (*shape)[0].as_int();
      return out;
    }
    if (json.is_list()) {
      std::vector<Argument> items;
      for (const Json& item : json.items()) items.push_back(read_argument(item, legacy));
      return items;
    }
    if (json.is_object() && !json.has("class_name")) {
      Argument out;
      out.kind = Argument::Kind::object;
      for (const auto& [key, item] : json.members()) {
        out.keys.push_back(key);
        out.items.push_back(read_argument(item, legacy));
      }
      return out;
    }
    return json;
  }

  // The first argument of a legacy call.
  Argument read_structure(const Json& json) {
    if (is_reference(json)) return is_legacy_constant(json) ? Argument(json[2]) : Argument(lookup(json, nullptr));
    Argument out;
    out.kind = json.is_list() ? Argument::Kind::list : Argument::Kind::object;
    if (json.is_list())
      for (const Json& item : json.items()) out.items.push_back(read_structure(item));
    else
      for (const auto& [key, item] : json.members()) {
        out.keys.push_back(key);
        out.items.push_back(read_structure(item));
      }
    return out;
  }

  // Arrays that stand in a call itself. Operations read them as they are, because some must be known; to a layer they are tensors like
  // others.
  void make_tensors(Argument& argument, const Json& layer, bool lists) {
    for (Argument& item : argument.items) make_tensors(item, layer, lists);
    if (argument.kind != Argument::Kind::constant) return;
    const Json& json = argument.constant;
    if (!(lists && json.is_list()) && !is_object_of(json, "__tensor__") && !is_object_of(json, "__numpy__")) return;
    const Config where(json, fmt::format("layer '{}'", layer_name(layer)));
    argument = Argument(Signal{c_.graph.constant(read_array(where, json, "an argument")), {}});
  }

  Arguments read_arguments(const CallText& call, const Json& layer) {
    Arguments out;
    if (call.legacy) {
      Argument first = read_structure(*call.args);
      while (!keeps_lists(layer) && first.kind == Argument::Kind::list && first.items.size() == 1) first = Argument(first.items[0]);
      out.positional.push_back(std::move(first));
    } else {
      for (const Json& argument : call.args->items()) out.positional.push_back(read_argument(argument, false));
    }
    if (call.kwargs != nullptr && call.kwargs->is_object())
      for (const auto& [key, value] : call.kwargs->members()) out.named.emplace_back(key, read_argument(value, call.legacy));
    if (is_operation(layer) || keeps_lists(layer)) return out;
    name_arguments(out, resolve(layer).row->call);
    for (Argument& argument : out.positional) make_tensors(argument, layer, call.legacy);  // legacy: what stands after _CONSTANT_VALUE
    for (auto& [key, argument] : out.named) make_tensors(argument, layer, false);
    return out;
  }

  void run_call(const CallId& call) {
    const LayerEntry& entry = layers_.at(call.layer);
    try {
      resolve(*entry.json);  // said even when the inputs are missing
      Arguments arguments = read_arguments(entry.calls[call.node], *entry.json);
      auto outputs = c_.child(entry.key, *entry.json, arguments).signals;
      for (size_t i = 0; i < outputs.size(); ++i) values_[{call, i}] = outputs[i];
    } catch (const Error& e) {
      report_problem(c_.lowering, e);
      failed_.insert(call.layer);
    }
  }

  Outputs collect_outputs() {
    if (!failed_.empty()) fail<Reported>("keras", "{} has problems", config_.where());
    std::vector<Signal> out;
    for (const TensorId& id : output_references()) {
      auto found = values_.find(id);
      if (found == values_.end()) config_.invalid("output {} of layer '{}' does not exist", id.index, id.call.layer);
      out.push_back(found->second);
    }
    return out;
  }

  Call& c_;
  const Config& config_;
  std::map<std::string, LayerEntry> layers_;
  std::vector<std::string> order_;
  std::map<TensorId, Signal> values_;
  std::set<CallId> fed_;
  std::set<std::string> failed_;
};

}  // namespace

Outputs functional(Call& c) { return FunctionalModel(c).run(); }

}  // namespace tutti::keras
