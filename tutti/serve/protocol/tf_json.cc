#include "tutti/serve/protocol/tf_json.h"

#include <fmt/format.h>

#include "tutti/serve/protocol/datatype.h"
#include "tutti/serve/protocol/tensor_json.h"

namespace tutti::serve {

namespace {

std::string named(const TensorInfo& input) { return fmt::format("input '{}'", input.name); }

const TensorInfo& known_input(const std::vector<TensorInfo>& inputs, std::string_view name) {
  std::vector<std::string> names;
  for (const TensorInfo& input : inputs) {
    if (input.name == name) return input;
    names.push_back(input.name);
  }
  refuse(FailureKind::bad_request, "there is no input '{}'{}; the model takes {}", escape(name, 60), did_you_mean(name, names),
         fmt::join(names, ", "));
}

const TensorInfo& only_input(const std::vector<TensorInfo>& inputs, std::string_view form) {
  if (inputs.size() != 1)
    refuse(FailureKind::bad_request, "the model takes {} inputs: '{}' must name them, as in {{\"{}\": ...}}", inputs.size(), form,
           inputs.at(0).name);
  return inputs[0];
}

// {"a": 1} for each sample becomes a list of the values of a.
Json column_of(const JsonList& rows, const TensorInfo& input) {
  JsonList values;
  values.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].is_object()) refuse(FailureKind::bad_request, "instance {} must be an object, as the first; got {}", i, rows[i].kind());
    const Json* value = rows[i].find(input.name);
    if (!value) refuse(FailureKind::bad_request, "instance {} has no '{}'", i, input.name);
    values.push_back(*value);
  }
  return values;
}

void parse_rows(const Json& instances, const std::vector<TensorInfo>& inputs, Call& call) {
  if (!instances.is_list() || instances.size() == 0)
    refuse(FailureKind::bad_request, "'instances' must be a list of samples, at least one; got {}",
           instances.is_list() ? "none" : instances.kind());
  const JsonList& rows = instances.items();
  if (!rows[0].is_object()) {
    const TensorInfo& input = only_input(inputs, "instances");
    call.inputs.push_back({input.name, tensor_from_nested(instances, input.dtype, named(input))});
    return;
  }
  for (const Json& row : rows)
    if (row.is_object())
      for (const auto& [name, value] : row.members()) known_input(inputs, name);
  for (const TensorInfo& input : inputs)
    call.inputs.push_back({input.name, tensor_from_nested(column_of(rows, input), input.dtype, named(input))});
}

void parse_columns(const Json& columns, const std::vector<TensorInfo>& inputs, Call& call) {
  if (!columns.is_object()) {
    const TensorInfo& input = only_input(inputs, "inputs");
    call.inputs.push_back({input.name, tensor_from_nested(columns, input.dtype, named(input))});
    return;
  }
  for (const auto& [name, value] : columns.members()) {
    const TensorInfo& input = known_input(inputs, name);
    call.inputs.push_back({input.name, tensor_from_nested(value, input.dtype, named(input))});
  }
}

// Of outputs that stand side by side, a row an instance: one that has others would lend them what is not theirs.
int64_t rows_of_all(const std::vector<TensorInfo>& infos, const std::vector<Tensor>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Shape& shape = outputs[i].shape();
    if (shape.rank() == 0 || infos.at(i).shape[0] >= 0 || shape[0] != outputs[0].shape()[0])
      refuse(FailureKind::bad_request,
             "output '{}' is {}, not a row for each instance; hint: 'inputs' instead of 'instances', which whole outputs answer",
             infos.at(i).name, to_string(outputs[i].type()));
  }
  return outputs.at(0).shape()[0];
}

Json signature_of(const std::vector<TensorInfo>& tensors) {
  Json out = Json::object();
  for (const TensorInfo& tensor : tensors) {
    Json dims = Json::list();
    for (int64_t extent : tensor.shape) dims.push(JsonMembers{{"size", std::to_string(extent)}, {"name", ""}});
    out.set(tensor.name, JsonMembers{{"dtype", tensorflow_name(tensor.dtype)},
                                     {"tensor_shape", JsonMembers{{"dim", std::move(dims)}, {"unknown_rank", false}}},
                                     {"name", tensor.name}});
  }
  return out;
}

}  // namespace

TfCall parse_tf(std::string_view body, const std::vector<TensorInfo>& inputs, const CallLimits& limits) {
  const Json json = Json::parse(body, {.bytes = body.size(), .depth = limits.json_depth, .values = limits.json_values});
  if (!json.is_object()) refuse(FailureKind::bad_request, "the request must be an object; got {}", json.kind());
  if (const Json* signature = json.find("signature_name"); signature && !signature->is_null()) {
    if (!signature->is_string() || (signature->as_string() != "serving_default" && !signature->as_string().empty()))
      refuse(FailureKind::bad_request, "the one signature is 'serving_default'; got {}", escape(signature->dump(), 60));
  }
  const Json *instances = json.find("instances"), *columns = json.find("inputs");
  if (!instances == !columns)
    refuse(FailureKind::bad_request, "a request has either 'instances' (a row each) or 'inputs' (a column each); got {}",
           instances ? "both" : "neither");
  TfCall out;
  out.rows = instances != nullptr;
  if (instances)
    parse_rows(*instances, inputs, out.call);
  else
    parse_columns(*columns, inputs, out.call);
  return out;
}

std::string write_tf(const TfCall& call, const ModelVersion& model, const std::vector<Tensor>& outputs) {
  const std::vector<TensorInfo>& infos = model.outputs();
  std::string text = call.rows ? "{\"predictions\":" : "{\"outputs\":";
  // A model of one output answers its values, one of several an object with their names: of each row, or of all.
  const auto append_object = [&](auto&& append_value) {
    text += '{';
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (i > 0) text += ',';
      append_quoted(text, infos.at(i).name);
      text += ':';
      append_value(outputs[i]);
    }
    text += '}';
  };
  if (outputs.size() == 1) {
    append_nested(text, outputs[0]);
  } else if (call.rows) {
    const int64_t rows = rows_of_all(infos, outputs);
    text += '[';
    for (int64_t row = 0; row < rows; ++row) {
      if (row > 0) text += ',';
      append_object([&](const Tensor& output) { append_row(text, output, row); });
    }
    text += ']';
  } else {
    append_object([&](const Tensor& output) { append_nested(text, output); });
  }
  text += '}';
  return text;
}

Json tf_status(const std::vector<VersionInfo>& versions) {
  Json list = Json::list();
  for (const VersionInfo& version : versions) {
    const bool failed = version.state == ModelState::failed;
    const std::string_view state = version.state == ModelState::ready     ? "AVAILABLE"
                                   : version.state == ModelState::loading ? "LOADING"
                                                                          : "END";
    list.push(
        JsonMembers{{"version", std::to_string(version.version)},
                    {"state", state},
                    {"status", JsonMembers{{"error_code", failed ? "FAILED_PRECONDITION" : "OK"}, {"error_message", version.reason}}}});
  }
  return JsonMembers{{"model_version_status", std::move(list)}};
}

Json tf_metadata(const ModelVersion& model) {
  Json signature = JsonMembers{
      {"inputs", signature_of(model.inputs())}, {"outputs", signature_of(model.outputs())}, {"method_name", "tensorflow/serving/predict"}};
  return JsonMembers{
      {"model_spec", JsonMembers{{"name", model.name()}, {"signature_name", ""}, {"version", std::to_string(model.version())}}},
      {"metadata", JsonMembers{{"signature_def", JsonMembers{{"signature_def", JsonMembers{{"serving_default", std::move(signature)}}}}}}}};
}

}  // namespace tutti::serve
