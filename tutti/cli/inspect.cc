// tutti inspect
#include <filesystem>
#include <memory>

#include "tutti/base/json.h"
#include "tutti/base/saturate.h"
#include "tutti/cli/console.h"
#include "tutti/cli/model_argument.h"
#include "tutti/cli/verbs.h"
#include "tutti/keras/summary.h"

namespace tutti::cli {

namespace {

using keras::OpenType;
using keras::Summary;

// As Keras prints it: (None, 28, 28, 1).
std::string shape_text(const Ints& shape) {
  std::string out = "(";
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + (shape[i] < 0 ? "None" : std::to_string(shape[i]));
  return out + (shape.size() == 1 ? ",)" : ")");
}

Json open_shape_json(const Ints& shape) {
  Json out = Json::list();
  for (int64_t extent : shape) out.push(extent < 0 ? Json() : Json(extent));
  return out;
}

Json value_json(const std::string& name, const OpenType& type) {
  return JsonMembers{{"name", name}, {"dtype", numpy_name(type.dtype)}, {"shape", open_shape_json(type.shape)}};
}

std::string value_line(const char* title, const std::string& name, const OpenType& type) {
  return fmt::format("{:<11} {}: {} {}\n", title, escape(name), numpy_name(type.dtype), shape_text(type.shape));
}

// A serialized loss, metric or optimizer in a few words: "mse", "Adam", "[accuracy, MeanAbsoluteError]".
std::string words(const Json& json, int depth = 0) {
  if (json.is_string()) return json.as_string();
  if (json.is_null() || depth > 8) return "";
  std::string out;
  if (json.is_list()) {
    for (const Json& item : json.items())
      if (std::string one = words(item, depth + 1); !one.empty()) out += (out.empty() ? "" : ", ") + one;
    return out;
  }
  if (!json.is_object()) return json.dump();
  if (const Json* name = json.find("class_name"); name != nullptr && name->is_string()) {
    const Json* config = json.find("config");
    return name->as_string() == "function" && config != nullptr ? words(*config, depth + 1) : name->as_string();
  }
  for (const auto& [key, item] : json.members())
    if (std::string one = words(item, depth + 1); !one.empty()) out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", key, one);
  return out;
}

// {"optimizer", "learning_rate", "loss", "metrics"}, or null.
Json compile_json(const Json& compiled) {
  if (!compiled.is_object()) return {};
  auto part = [&](const char* key) {
    const Json* found = compiled.find(key);
    return found != nullptr ? words(*found) : std::string();
  };
  const Json* optimizer = compiled.find("optimizer");
  if ((optimizer == nullptr || optimizer->is_null()) && part("loss").empty()) return {};
  Json out = JsonMembers{{"optimizer", optimizer != nullptr ? words(*optimizer) : ""}};
  const Json* config = optimizer != nullptr && optimizer->is_object() ? optimizer->find("config") : nullptr;
  const Json* rate = config != nullptr && config->is_object() ? config->find("learning_rate") : nullptr;
  out.set("learning_rate", rate == nullptr ? Json() : rate->is_number() ? *rate : Json(words(*rate)));
  out.set("loss", part("loss"));
  out.set("metrics", part("metrics"));
  return out;
}

std::string compile_text(const Json& compiled) {
  if (compiled.is_null()) return "no";
  std::string out = fmt::format("optimizer {}", compiled.at("optimizer").as_string());
  if (const Json& rate = compiled.at("learning_rate"); !rate.is_null())
    out += fmt::format(" (learning rate {})", rate.is_number() ? fmt::format("{:.6g}", rate.as_number()) : rate.as_string());
  out += fmt::format(", loss {}", compiled.at("loss").as_string());
  if (!compiled.at("metrics").as_string().empty()) out += fmt::format(", metrics {}", compiled.at("metrics").as_string());
  return escape(out, 400);
}

Json to_json(const std::string& path, const keras::Model& model, const Summary& summary) {
  Json out = JsonMembers{{"file", path}, {"name", model.name()}, {"keras_version", model.keras_version()}};
  Json inputs = Json::list(), outputs = Json::list(), layers = Json::list(), unsupported = Json::list();
  for (const auto& input : model.inputs()) inputs.push(value_json(input.name, {input.dtype, input.shape}));
  for (size_t i = 0; i < summary.outputs.size() && i < model.output_names().size(); ++i)
    outputs.push(value_json(model.output_names()[i], summary.outputs[i]));
  for (const auto& layer : summary.layers) {
    Json row = JsonMembers{{"name", layer.name}, {"class", layer.class_name}, {"depth", layer.depth}};
    row.set("shape", layer.outputs.empty() ? Json() : open_shape_json(layer.outputs[0].shape));
    row.set("dtype", layer.outputs.empty() ? Json() : Json(numpy_name(layer.outputs[0].dtype)));
    row.set("outputs", static_cast<int64_t>(layer.outputs.size()));
    row.set("parameters", layer.parameters);
    row.set("trainable_parameters", layer.trainable);
    row.set("flops", layer.flops);
    row.set("calls", layer.calls);
    layers.push(row);
  }
  for (const auto& problem : model.problems()) unsupported.push(problem);
  out.set("inputs", inputs);
  out.set("outputs", outputs);
  out.set("layers", layers);
  out.set("parameters", summary.parameters);
  out.set("trainable_parameters", summary.trainable);
  out.set("parameter_bytes", summary.parameter_bytes);
  out.set("flops", summary.flops);
  out.set("bytes", summary.bytes);
  out.set("open_extent", summary.open_extents ? Json(model.probe_extent()) : Json());
  out.set("compile", compile_json(model.compile_config()));
  out.set("unsupported", unsupported);
  return out;
}

std::string layer_table(const Summary& summary) {
  std::vector<std::vector<std::string>> rows{{"LAYER", "CLASS", "OUTPUT", "PARAMETERS", "TRAINABLE", "FLOPS"}};
  for (const auto& layer : summary.layers) {
    std::string shape = layer.outputs.empty() ? "?" : shape_text(layer.outputs[0].shape);
    if (layer.outputs.size() > 1) shape += fmt::format(" and {} more", layer.outputs.size() - 1);
    std::string trainable = layer.parameters == 0                 ? ""
                            : layer.trainable == layer.parameters ? "yes"
                            : layer.trainable == 0                ? "no"
                                                                  : grouped(layer.trainable);
    std::string name = std::string(static_cast<size_t>(2 * layer.depth), ' ') + escape(layer.name, 60);
    if (layer.calls > 1) name += fmt::format(" (called {} times)", layer.calls);
    rows.push_back({name, escape(layer.class_name, 40), shape, grouped(layer.parameters), trainable,
                    layer.flops > 0 ? human_count(static_cast<double>(layer.flops)) : "-"});
  }
  return format_table(rows, {false, false, false, true, false, true});
}

std::string to_text(const std::string& path, const keras::Model& model, const Summary& summary) {
  std::string out =
      fmt::format("{}: '{}', Keras {}\n\n{}\n", escape(path), escape(model.name()), escape(model.keras_version()), layer_table(summary));
  for (const auto& input : model.inputs()) out += value_line("input", input.name, {input.dtype, input.shape});
  for (size_t i = 0; i < summary.outputs.size() && i < model.output_names().size(); ++i)
    out += value_line("output", model.output_names()[i], summary.outputs[i]);
  out += fmt::format("{:<11} {} ({} trainable), {}\n", "parameters", grouped(summary.parameters), grouped(summary.trainable),
                     human_bytes(summary.parameter_bytes));
  out +=
      fmt::format("{:<11} {} FLOPs, {} read and written, for one sample{}\n", "cost", human_count(static_cast<double>(summary.flops)),
                  human_bytes(summary.bytes), summary.open_extents ? fmt::format(" with {} for open extents", model.probe_extent()) : "");
  out += fmt::format("{:<11} {}\n", "compiled", compile_text(compile_json(model.compile_config())));
  if (model.problems().empty()) return out;
  out += fmt::format("\nnot supported ({}):\n", model.problems().size());
  for (const auto& problem : model.problems()) out += fmt::format("  {}\n", problem);
  return out;
}

struct MemberSummary {
  std::string name, class_name;
  int64_t parameters = 0, bytes = 0, flops = 0;
  void add(const MemberSummary& other) {
    parameters += other.parameters;
    bytes += other.bytes;
    flops = saturating_add(flops, other.flops);
  }
};

// An ensemble within the ensemble is what its members are together.
MemberSummary summarize_member(const Ensemble::Member& member) {
  MemberSummary out{member.name, std::string(Ensemble::class_name)};
  if (const auto* ensemble = dynamic_cast<const Ensemble*>(member.model.get())) {
    for (const auto& inner : ensemble->members()) out.add(summarize_member(inner));
  } else if (const auto* model = dynamic_cast<const keras::Model*>(member.model.get())) {
    const Summary summary = keras::summarize(*model);
    out = {member.name, model->config().at("class_name").as_string(), summary.parameters, summary.parameter_bytes, summary.flops};
  }
  return out;
}

void print_ensemble(Console& console, const std::string& path, const Ensemble& ensemble) {
  std::vector<MemberSummary> members;
  MemberSummary all;
  for (const auto& member : ensemble.members()) all.add(members.emplace_back(summarize_member(member)));
  const std::vector<OpenType> types = keras::output_types(ensemble);
  if (console.json) {
    Json inputs = Json::list(), outputs = Json::list(), rows = Json::list(), reduce = Json::list(), unsupported = Json::list();
    for (const auto& input : ensemble.inputs()) inputs.push(value_json(input.name, {input.dtype, input.shape}));
    for (size_t i = 0; i < types.size(); ++i) outputs.push(value_json(ensemble.output_names()[i], types[i]));
    for (const auto& one : members)
      rows.push(JsonMembers{{"name", one.name}, {"class", one.class_name}, {"parameters", one.parameters}, {"flops", one.flops}});
    for (const auto& reduction : ensemble.options().reductions) reduce.push(reduction.text());
    for (const auto& problem : ensemble.problems()) unsupported.push(problem);
    Json out = JsonMembers{{"file", path}, {"name", ensemble.name()}, {"inputs", inputs}, {"outputs", outputs}, {"members", rows}};
    out.set("reduce", reduce);
    out.set("parameters", all.parameters);
    out.set("parameter_bytes", all.bytes);
    out.set("flops", all.flops);
    out.set("unsupported", unsupported);
    console.print(out.dump(2) + "\n");
    return;
  }
  std::vector<std::vector<std::string>> table{{"MEMBER", "CLASS", "PARAMETERS", "FLOPS"}};
  for (const auto& one : members)
    table.push_back(
        {escape(one.name, 60), escape(one.class_name, 40), grouped(one.parameters), human_count(static_cast<double>(one.flops))});
  std::string out =
      fmt::format("{}: an ensemble of {}\n\n{}\n", escape(path), members.size(), format_table(table, {false, false, true, true}));
  for (const auto& input : ensemble.inputs()) out += value_line("input", input.name, {input.dtype, input.shape});
  for (size_t i = 0; i < types.size(); ++i) out += value_line("output", ensemble.output_names()[i], types[i]);
  out += fmt::format("{:<11} {}, {}\n", "parameters", grouped(all.parameters), human_bytes(all.bytes));
  for (const auto& problem : ensemble.problems()) out += fmt::format("not supported: {}\n", problem);
  console.print(out);
}

void print_model(Console& console, const std::string& path) {
  const auto loaded = load_with_progress(console, path);
  const keras::AnyModel& model = *loaded;
  if (const auto* ensemble = dynamic_cast<const Ensemble*>(&model)) {
    print_ensemble(console, path, *ensemble);
  } else {
    const auto& own = dynamic_cast<const keras::Model&>(model);
    const Summary summary = keras::summarize(own);
    console.print(console.json ? to_json(path, own, summary).dump(2) + "\n" : to_text(path, own, summary));
  }
  if (!model.problems().empty())
    fail<Unsupported>("inspect", "'{}' has {} problem{}, listed above", path, model.problems().size(),
                      model.problems().size() == 1 ? "" : "s");
}

}  // namespace

Action inspect(Options& options) {
  auto path = std::make_shared<std::string>();
  options.argument(*path, "MODEL", model_help);
  options.footer("Exit code 1 when the model cannot run here: the table is printed all the same, with everything that is not supported.");
  return [path](Console& console) { print_model(console, *path); };
}

}  // namespace tutti::cli
