#include "tutti/keras/model.h"

#include <algorithm>

#include "tutti/base/error.h"

namespace tutti::keras {

namespace {

// Tried in turn for extents that only the data know, until the model fits: most do at once, deep convolutional ones want larger images.
constexpr int64_t candidate_extents[] = {32, 64, 128, 224, 16, 256, 8, 96, 299, 512, 4, 1};

bool has_open_extents(const ModelInput& input) { return std::find(input.shape.begin() + 1, input.shape.end(), -1) != input.shape.end(); }

std::string join_lines(const std::vector<std::string>& lines) {
  std::string out;
  for (const auto& line : lines) out += (out.empty() ? "" : "; ") + line;
  return out;
}

}  // namespace

std::string Model::name() const {
  const Json* config = config_.find("config");
  const Json* name = config != nullptr && config->is_object() ? config->find("name") : nullptr;
  return name != nullptr && name->is_string() ? name->as_string() : "model";
}

std::vector<Type> Model::input_types(const LowerOptions& options) const { return resolve_inputs(options, {}); }

std::vector<Type> Model::resolve_inputs(const LowerOptions& options, std::optional<int64_t> unknown_extent) const {
  if (options.batch < 0) fail<InvalidArgument>("model", "a batch is not negative; got {}", options.batch);
  if (!options.input_shapes.empty() && options.input_shapes.size() != inputs_.size())
    fail<InvalidArgument>("model", "{} inputs need as many shapes; got {}", inputs_.size(), options.input_shapes.size());
  std::vector<Type> out;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const ModelInput& input = inputs_[i];
    Ints extents = input.shape;
    extents[0] = options.batch;
    const Shape* given = options.input_shapes.empty() ? nullptr : &options.input_shapes[i];
    if (given != nullptr && given->rank() != static_cast<int64_t>(extents.size()))
      fail<InvalidArgument>("model", "input '{}' is {} (-1: any); got {}", input.name, to_string(input.shape), to_string(*given));
    for (size_t axis = 1; axis < extents.size(); ++axis) {
      if (given != nullptr && extents[axis] >= 0 && (*given)[static_cast<int64_t>(axis)] != extents[axis])
        fail<InvalidArgument>("model", "input '{}' is {} (-1: any); got {}", input.name, to_string(input.shape), to_string(*given));
      if (extents[axis] >= 0) continue;
      if (given == nullptr && !unknown_extent)
        fail<InvalidArgument>("model", "input '{}' is {}, so its shape must be given", input.name, to_string(input.shape));
      extents[axis] = given != nullptr ? (*given)[static_cast<int64_t>(axis)] : *unknown_extent;
    }
    out.push_back({input.dtype, extents});
  }
  return out;
}

Graph Model::lower(const LowerOptions& options) const {
  if (!problems_.empty())
    fail<Unsupported>("model", "{} problem{}: {}", problems_.size(), problems_.size() == 1 ? "" : "s", join_lines(problems_));
  Graph graph;
  lower_types(graph, resolve_inputs(options, {}), options, 0, nullptr);
  return graph;
}

Graph Model::walk(int64_t batch, int64_t extent, std::vector<LayerTrace>& layers) const {
  LowerOptions options{batch, {}, &layers};
  std::vector<std::string> known;
  Graph graph;
  try {
    lower_types(graph, resolve_inputs(options, extent), options, extent, &known);
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
  lowering.unknown_extent = unknown_extent;
  std::vector<Argument> inputs;
  for (size_t i = 0; i < types.size(); ++i) inputs.emplace_back(Signal{graph.input(inputs_[i].name, types[i]), {}});
  Arguments arguments;
  arguments.positional.push_back(inputs.size() == 1 ? inputs[0] : Argument(inputs));
  auto outputs = lowering.run(config_, *variables_, arguments).signals;
  if (outputs.size() != output_names_.size())
    fail<InvalidModel>("keras", "the model gives {} outputs, the file names {}", outputs.size(), output_names_.size());
  for (size_t i = 0; i < outputs.size(); ++i) graph.output(output_names_[i], outputs[i].value);
}

void Model::declare() {
  bool open = std::any_of(inputs_.begin(), inputs_.end(), has_open_extents);
  std::unique_ptr<Scope> best;
  for (int64_t extent : candidate_extents) {
    variables_ = std::make_unique<Scope>();
    std::vector<std::string> problems;
    try {
      LowerOptions options;
      Graph graph;
      lower_types(graph, resolve_inputs(options, extent), options, extent, &problems);
    } catch (const Reported&) {
    } catch (const Error& e) {
      problems.push_back(e.what());
    }
    if (best == nullptr || problems.size() < problems_.size()) {
      best = std::move(variables_);
      problems_ = std::move(problems);
      probe_extent_ = extent;
    }
    if (problems_.empty() || !open) break;
  }
  variables_ = std::move(best);
}

}  // namespace tutti::keras
