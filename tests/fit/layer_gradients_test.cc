// Every kind of layer held against finite differences while it trains, in double: models of the Keras cases, each chosen because it has a
// layer, or a mode of it, that the ones before had not; gradients of all its weights and float inputs, each along a random direction.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "tutti/base/error.h"
#include "tutti/data/npz.h"
#include "tutti/device/device.h"
#include "tutti/graph/build.h"
#include "tutti/graph/compose.h"
#include "tutti/graph/cost.h"
#include "tutti/keras/fit/training.h"
#include "tutti/keras/lower.h"
#include "tutti/transform/differentiate.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

// Whose gradient is not that of the function, on purpose: Keras stops it on the way.
const std::set<std::string> stops_gradients = {"SpectralNormalization", "StopGradient"};
constexpr int per_class = 2;              // models
constexpr int64_t most_work = 2'000'000;  // FLOPs of a forward pass: the reference device takes them one by one

DType wide(DType dtype) { return dtype == DType::f32 ? DType::f64 : dtype; }
Type wide(const Type& type) { return {wide(type.dtype), type.shape}; }

// The same graph with f64 for f32, and with inputs for weights and states. Random bits become f32 first.
struct Widened {
  Graph graph;
  std::vector<Value> values;    // by id of the given graph
  std::vector<Tensor> initial;  // by input; of the given inputs empty
};

Widened widened(const Graph& from, bool is_body = false) {
  Widened out;
  out.values.resize(from.value_count());
  for (const Node& node : from.nodes()) {
    const auto map = [&](size_t i, Value value) { out.values[at(node.results[i])] = value; };
    if (node.op == Op::parameter) {
      map(0,
          out.graph.parameter(is_body ? role(node) : Graph::Role::input, node.attributes.text("name"), wide(from.type(node.results[0]))));
      out.initial.push_back(node.literal.empty() ? Tensor() : node.literal.converted(wide(node.literal.dtype())));
      continue;
    }
    if (node.op == Op::constant) {
      map(0, out.graph.constant(node.literal.converted(wide(node.literal.dtype()))));
      continue;
    }
    if (node.op == Op::iota) {
      map(0, out.graph.iota(wide(from.type(node.results[0])), node.attributes.integer("dimension")));
      continue;
    }
    std::vector<Value> operands;
    for (ValueId id : node.operands) operands.push_back(out.values[at(id)]);
    Attributes attributes = node.attributes;
    const bool from_bits = node.op == Op::bitcast_convert && is_integer(operands[0].dtype());
    if (attributes.has("dtype") && attributes.text("dtype") == "f32" && !from_bits) attributes.set("dtype", "f64");
    std::shared_ptr<const Graph> body;
    if (node.body != nullptr) {
      Widened inner = widened(*node.body, true);
      for (const auto& output : node.body->outputs()) inner.graph.output(output.name, inner.values[at(output.value)]);
      body = std::make_shared<const Graph>(std::move(inner.graph));
    }
    const auto results = out.graph.add(node.op, operands, attributes, body);
    for (size_t i = 0; i < results.size(); ++i) map(i, from_bits ? convert(results[i], wide(results[i].dtype())) : results[i]);
  }
  return out;
}

// Not where numbers are rounded to 16 bits on the way, which are steps, or taken apart as bits.
bool can_be_widened(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::bitcast_convert && is_float(graph.type(node.operands[0]).dtype) && is_integer(graph.type(node.results[0]).dtype))
      return false;
    for (ValueId id : node.results)
      if (const DType dtype = graph.type(id).dtype; dtype == DType::f16 || dtype == DType::bf16) return false;
    if (node.body != nullptr && !can_be_widened(*node.body)) return false;
  }
  return true;
}

void classes_of(const Json& json, std::set<std::string>& out) {
  if (json.is_list())
    for (const Json& item : json.items()) classes_of(item, out);
  if (!json.is_object()) return;
  if (const Json* name = json.find("class_name"); name != nullptr && name->is_string()) {
    std::string kind = name->as_string();
    // Modes that make other graphs of the same layer.
    if (const Json* config = json.find("config"); config != nullptr && config->is_object())
      for (const char* mode :
           {"padding", "data_format", "activation", "merge_mode", "reset_after", "return_sequences", "go_backwards", "score_mode"})
        if (const Json* value = config->find(mode); value != nullptr && !value->is_object())
          out.insert(kind + " " + mode + " " + value->dump());
    out.insert(kind);
  }
  for (const auto& [key, value] : json.members()) classes_of(value, out);
}

std::vector<double> run(Program& program, Device& device, const std::vector<Tensor>& inputs, std::vector<Tensor>* outputs = nullptr) {
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<Buffer*> from, to;
  for (const Tensor& input : inputs) {
    from.push_back(buffers.emplace_back(device.allocate(input.type())).get());
    device.to_device(input.bytes(), *from.back());
  }
  for (const Type& type : program.output_types()) to.push_back(buffers.emplace_back(device.allocate(type)).get());
  program.run(from, to);
  Tensor loss(program.output_types()[0]);
  device.to_host(*to[0], loss.bytes());
  for (size_t i = 1; outputs != nullptr && i < to.size(); ++i) device.to_host(*to[i], outputs->emplace_back(to[i]->type()).bytes());
  return {loss.as<double>()[0]};
}

class LayerGradients {
 public:
  // Whether the model can be checked at all; then it is.
  bool check(const fs::path& folder, const keras::Model& model) {
    const std::vector<Tensor> given = inputs_of(folder, model);
    if (given.empty()) return false;
    keras::Fit fit;
    const auto trained = keras::trainable_variables(model);
    fit.trained = {trained.begin(), trained.end()};
    Graph graph;
    std::vector<Shape> shapes;
    for (const Tensor& input : given) shapes.push_back(input.shape());
    try {
      model.lower_training(graph, {given[0].shape()[0], shapes, nullptr, &fit});
    } catch (const Error&) {
      return false;  // refused while training, or a model that cannot be lowered so
    }
    if (cost(graph).flops > most_work || !can_be_widened(graph)) return false;
    Widened wide_graph = widened(graph);
    Graph& g = wide_graph.graph;
    const auto now = [&](Value old) { return wide_graph.values[at(old.id())]; };
    Value loss;
    const auto add = [&](Value part) { loss = loss ? loss + part : part; };
    for (const auto& output : fit.outputs) {
      const Value y = now(output.value);
      if (y.dtype() != DType::f64) continue;
      const Value flat = reshape(y, {y.shape().elements()});
      add(sum(flat * unary(Op::cosine, iota(g, flat.type(), 0) * 1.3 + 0.4), {0}));
    }
    if (!loss) return false;
    for (const auto& [scope, activity] : fit.activities) add(now(activity));
    if (fit.penalty) add(now(fit.penalty));
    std::vector<ValueId> by;
    std::vector<size_t> places;  // among the inputs
    const auto parameters = g.parameters(Graph::Role::input);
    std::vector<Tensor> at_point = wide_graph.initial;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Type& type = g.type(parameters[i]->results[0]);
      const std::string& name = parameters[i]->attributes.text("name");
      const bool is_data = at_point[i].empty();
      if (is_data) at_point[i] = i < given.size() ? given[i].converted(type.dtype) : Tensor::scalar<uint64_t>(7);
      const bool is_trained = std::any_of(trained.begin(), trained.end(), [&](const auto* v) { return v->path == name; });
      if (type.dtype != DType::f64 || (is_data ? i >= given.size() : !is_trained)) continue;
      by.push_back(parameters[i]->results[0]);
      places.push_back(i);
    }
    if (by.empty()) return false;
    const auto device = open_device("reference");
    Graph plain = g.clone();
    plain.output("loss", Value(&plain, loss.id()));
    Differentiated step = differentiate(g, loss.id(), by);
    step.graph.output("loss", step.now(loss.id()));
    for (size_t i = 0; i < by.size(); ++i) step.graph.output("gradient", step.gradient(i));
    const auto forward = device->compile(plain), backward = device->compile(step.graph);
    // Near a kink or a jump neither is right: then another point and direction are tried.
    std::string complaint;
    for (int attempt = 0; attempt < 4; ++attempt) {
      complaint = compare(*device, *forward, *backward, at_point, places, g);
      if (complaint.empty()) return true;
      for (size_t place : places)
        for (double& x : at_point[place].as<double>()) x += x == 0 ? 0 : 0.01 * normal_(random_);
    }
    ADD_FAILURE() << folder << ": " << complaint;
    return true;
  }

 private:
  static std::vector<Tensor> inputs_of(const fs::path& folder, const keras::Model& model) {
    const NpzReader file(folder / "data.npz");
    std::vector<Tensor> out;
    for (size_t i = 0; i < model.inputs().size(); ++i) {
      const std::string name = "in_" + std::to_string(i);
      if (std::find(file.names().begin(), file.names().end(), name) == file.names().end()) return {};
      Tensor all = file.open(name).all();
      Ints extents = all.shape().extents();
      extents[0] = std::min<int64_t>(extents[0], 4);
      Tensor some(all.dtype(), extents);
      std::copy_n(all.bytes().begin(), some.bytes().size(), some.bytes().begin());
      out.push_back(some.converted(model.inputs()[i].dtype));
    }
    return out;
  }

  std::string compare(Device& device, Program& forward, Program& backward, const std::vector<Tensor>& at_point,
                      const std::vector<size_t>& places, const Graph& graph) {
    std::vector<Tensor> gradients;
    const double loss = run(backward, device, at_point, &gradients)[0];
    if (!std::isfinite(loss)) return "";  // nothing to compare
    for (size_t k = 0; k < places.size(); ++k) {
      constexpr double step = 1e-6;
      Tensor direction(at_point[places[k]].type());
      double expected = 0, size = 0;
      for (size_t i = 0; i < direction.as<double>().size(); ++i) {
        // Zeros may stand for what is masked, or be there to be padded by: they stay.
        const double d = at_point[places[k]].as<double>()[i] == 0 ? 0 : normal_(random_);
        direction.as<double>()[i] = d;
        expected += d * gradients[k].as<double>()[i];
        size += std::fabs(d * gradients[k].as<double>()[i]);
      }
      const auto moved = [&](double by) {
        std::vector<Tensor> inputs = at_point;
        inputs[places[k]] = Tensor(direction.type());
        for (size_t i = 0; i < direction.as<double>().size(); ++i)
          inputs[places[k]].as<double>()[i] = at_point[places[k]].as<double>()[i] + by * direction.as<double>()[i];
        return run(forward, device, inputs)[0];
      };
      const double found = (moved(step) - moved(-step)) / (2 * step);
      if (!(std::fabs(found - expected) <= 1e-5 * (size + std::fabs(found)) + 1e-7 * (1 + std::fabs(loss))))
        return fmt::format("{}: the gradient says {}, finite differences {}",
                           graph.parameters(Graph::Role::input)[places[k]]->attributes.text("name"), expected, found);
    }
    return "";
  }

  std::mt19937 random_{11};
  std::normal_distribution<double> normal_;
};

TEST(layer_gradients, agree_with_finite_differences) {
  std::map<std::string, int> seen;
  LayerGradients gradients;
  int models = 0;
  const fs::path data(TUTTI_TEST_DATA);
  std::vector<fs::path> folders;
  // Not the operations, which have cases of their own: at zero, as the data are there, some have no gradient.
  for (const auto& family : fs::directory_iterator(data / "keras_cases"))
    if (const std::string name = family.path().filename(); family.is_directory() && !name.starts_with("long_") && name != "operations")
      for (const auto& entry : fs::directory_iterator(family)) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  for (const fs::path& folder : folders) {
    const fs::path file = folder / "model.keras";
    if (!fs::exists(file) || !fs::exists(folder / "data.npz") || fs::file_size(file) > (64 << 10)) continue;
    try {
      const keras::Model model = keras::load(file);
      std::set<std::string> classes;
      classes_of(model.config(), classes);
      const bool is_new = std::any_of(classes.begin(), classes.end(), [&](const std::string& name) { return seen[name] < per_class; });
      // Attention of Keras 2 adds -1e9 to what it masks, which leaves too few digits for differences.
      if (!is_new || !model.problems().empty() || model.keras_version().starts_with("2")) continue;
      if (std::any_of(classes.begin(), classes.end(), [](const std::string& name) { return stops_gradients.contains(name); })) continue;
      if (!gradients.check(folder, model)) continue;
      for (const std::string& name : classes) ++seen[name];
      ++models;
    } catch (const Unsupported&) {  // no rule: operations that no layer trains through
    }
  }
  EXPECT_GT(models, 200);
  for (const char* kind : {"Dense",
                           "EinsumDense",
                           "Embedding",
                           "Conv1D",
                           "Conv2D",
                           "Conv3D",
                           "Conv2DTranspose",
                           "DepthwiseConv2D",
                           "SeparableConv2D",
                           "LSTM",
                           "GRU",
                           "SimpleRNN",
                           "ConvLSTM2D",
                           "Bidirectional",
                           "TimeDistributed",
                           "BatchNormalization",
                           "LayerNormalization",
                           "GroupNormalization",
                           "RMSNormalization",
                           "MultiHeadAttention",
                           "GroupQueryAttention",
                           "Attention",
                           "AdditiveAttention",
                           "PReLU",
                           "MaxPooling2D",
                           "AveragePooling2D",
                           "UpSampling2D",
                           "Resizing"})
    EXPECT_GT(seen[kind], 0) << kind;
}

}  // namespace
}  // namespace tutti
