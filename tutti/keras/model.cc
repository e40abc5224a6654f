#include "tutti/keras/model.h"

#include <algorithm>
#include <iterator>

#include "tutti/base/error.h"

namespace tutti::keras {

namespace {

// Tried in turn for extents that only the data know, until the model fits: most do at once, deep convolutional ones want larger images.
constexpr int64_t usual_extents[] = {32, 64, 128, 224, 16, 256, 8, 96, 299, 512, 4, 1};

// Then those of inputs that are not open, for two that meet in an Add must be equal, and all small ones: a Reshape, or what is pooled by 5
// and joined again, wants a certain one or its multiples.
std::vector<int64_t> candidate_extents(const std::vector<ModelInput>& inputs) {
  std::vector<int64_t> out(std::begin(usual_extents), std::end(usual_extents));
  for (const ModelInput& input : inputs)
    std::copy_if(input.shape.begin() + 1, input.shape.end(), std::back_inserter(out), [](int64_t extent) { return extent > 0; });
  for (int64_t extent = 2; extent < 128; ++extent) out.push_back(extent);
  return out;
}

}  // namespace

std::string Model::name() const {
  const Json* config = config_.find("config");
  const Json* name = config != nullptr && config->is_object() ? config->find("name") : nullptr;
  return name != nullptr && name->is_string() ? name->as_string() : "model";
}

Graph Model::lower(const LowerOptions& options) const {
  refuse_problems();
  Graph graph;
  lower_types(graph, input_types(options), options, 0, nullptr);
  return graph;
}

void Model::lower_training(Graph& graph, const LowerOptions& options) const {
  refuse_problems();
  lower_types(graph, input_types(options), options, 0, nullptr);
}

Graph Model::walk(int64_t batch, int64_t extent, std::vector<LayerTrace>& layers) const {
  LowerOptions options{batch, {}, &layers};
  std::vector<std::string> known;
  Graph graph;
  try {
    lower_types(graph, input_types(options, extent), options, extent, &known);
  } catch (const Error&) {
    // Among problems(), or an extent that does not fit: the trace ends there.
  }
  return graph;
}

void Model::lower_types(Graph& graph, const std::vector<Type>& types, const LowerOptions& options, int64_t unknown_extent,
                        std::vector<std::string>* problems) const {
  Lowering lowering(graph, file_);
  lowering.problems = problems;
  lowering.trace = options.trace;
  lowering.batch = options.batch;
  lowering.fit = options.fit;
  lowering.training = options.fit != nullptr && options.fit->training;
  lowering.unknown_extent = unknown_extent;
  std::vector<Argument> inputs;
  for (size_t i = 0; i < types.size(); ++i) inputs.emplace_back(Signal{graph.input(inputs_[i].name, types[i]), {}});
  if (options.fit != nullptr && options.fit->training) {
    options.fit->seed = graph.input("seed", {DType::u64, {}});
    options.fit->step = graph.input("step", {DType::u64, {}});
  }
  if (options.fit != nullptr && options.fit->is_part) {
    options.fit->share = graph.input("share", {DType::f32, {}});
    options.fit->first = graph.input("first", {DType::u64, {}});
  }
  Arguments arguments;
  arguments.positional.push_back(inputs.size() == 1 ? inputs[0] : Argument(inputs));
  auto outputs = lowering.run(config_, *variables_, arguments).signals;
  std::vector<std::string> names = output_names_;
  // What a Sequential ends in may give several, which is known only now. They share its name, and are numbered like others that do.
  if (config_.at("config").find("output_layers") == nullptr)
    while (names.size() < outputs.size()) names.push_back(fmt::format("{}_{}", names[0], names.size()));
  if (outputs.size() != names.size())
    fail<InvalidModel>("keras", "the model gives {} outputs, the file names {}", outputs.size(), names.size());
  if (options.fit != nullptr) {
    options.fit->outputs = outputs;
    return;
  }
  for (size_t i = 0; i < outputs.size(); ++i) graph.output(names[i], outputs[i].value);
}

void Model::declare() {
  std::unique_ptr<Scope> best;
  const bool open = has_open_extents(inputs_);
  bool varied = false;  // other extents have other problems, so that one may have none
  size_t tried = 0;
  for (int64_t extent : candidate_extents(inputs_)) {
    variables_ = std::make_unique<Scope>();
    std::vector<std::string> problems;
    try {
      LowerOptions options;
      Graph graph;
      lower_types(graph, input_types(options, extent), options, extent, &problems);
      while (output_names_.size() < graph.outputs().size()) {
        output_names_.push_back(graph.outputs()[output_names_.size()].name);
        target_names_.push_back(output_names_.back());
      }
    } catch (const Reported&) {
    } catch (const Error& e) {
      problems.push_back(e.what());
    }
    varied = varied || (best != nullptr && problems != problems_);
    if (best == nullptr || problems.size() < problems_.size()) {
      best = std::move(variables_);
      problems_ = std::move(problems);
      probe_extent_ = extent;
    }
    if (problems_.empty() || !open || (++tried >= std::size(usual_extents) && !varied)) break;
  }
  variables_ = std::move(best);
}

}  // namespace tutti::keras
