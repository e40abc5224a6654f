#include "tutti/serve/protocol/v2_json.h"

#include <charconv>

#include "tutti/serve/protocol/datatype.h"
#include "tutti/serve/protocol/tensor_json.h"

namespace tutti::serve {

namespace {

// Takes tensors from the bytes behind the JSON, front to back.
class BinaryTail {
 public:
  explicit BinaryTail(std::string_view bytes) : bytes_(bytes) {}
  std::string_view take(int64_t size, std::string_view what) {
    if (size < 0 || static_cast<uint64_t>(size) > bytes_.size())
      refuse(FailureKind::bad_request, "{}: binary_data_size is {}, but {} bytes are left behind the JSON", what, size, bytes_.size());
    auto out = bytes_.substr(0, static_cast<size_t>(size));
    bytes_.remove_prefix(out.size());
    return out;
  }
  size_t left() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
};

// What may be left out; some clients write null then.
const Json* optional_member(const Json& of, std::string_view key) {
  const Json* found = of.find(key);
  return found != nullptr && found->is_null() ? nullptr : found;
}

const Json* parameter(const Json& of, std::string_view key) {
  const Json* parameters = optional_member(of, "parameters");
  if (!parameters) return nullptr;
  if (!parameters->is_object()) refuse(FailureKind::bad_request, "parameters must be an object; got {}", parameters->kind());
  return optional_member(*parameters, key);
}

bool flag(const Json* value, std::string_view key, bool fallback) {
  if (!value) return fallback;
  if (!value->is_bool()) refuse(FailureKind::bad_request, "parameter '{}' is true or false; got {}", key, value->kind());
  return value->as_bool();
}

// Numbers of parameters, which some clients send as strings.
int64_t whole(const Json& value, std::string_view key) {
  if (value.is_int()) return value.as_int();
  if (value.is_string()) {
    const std::string& text = value.as_string();
    int64_t number = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (!text.empty() && error == std::errc() && end == text.data() + text.size()) return number;
  }
  refuse(FailureKind::bad_request, "parameter '{}' is a whole number; got {}", key, escape(value.dump(), 40));
}

std::string text_of(const Json& value, std::string_view what, const CallLimits& limits) {
  if (!value.is_string()) refuse(FailureKind::bad_request, "{} must be a string; got {}", what, value.kind());
  check_tensor_name(value.as_string(), what, limits);
  return value.as_string();
}

const JsonList& list_of(const Json& value, std::string_view what, const CallLimits& limits) {
  if (!value.is_list()) refuse(FailureKind::bad_request, "'{}' must be a list; got {}", what, value.kind());
  if (value.size() > limits.tensors)
    refuse(FailureKind::bad_request, "'{}' has {} tensors, at most {}", what, value.size(), limits.tensors);
  return value.items();
}

// What an object of the request must have.
const Json& member(const Json& of, std::string_view key, std::string_view what) {
  if (!of.is_object()) refuse(FailureKind::bad_request, "{} must be an object; got {}", what, of.kind());
  const Json* found = of.find(key);
  if (!found) refuse(FailureKind::bad_request, "{} has no '{}'", what, key);
  return *found;
}

Call::Input parse_input(const Json& input, size_t index, BinaryTail& tail, const CallLimits& limits) {
  Call::Input out;
  out.name = text_of(member(input, "name", fmt::format("input {}", index)), fmt::format("the name of input {}", index), limits);
  const std::string what = fmt::format("input '{}'", escape(out.name, 60));
  const Json& datatype = member(input, "datatype", what);
  const DType dtype = dtype_from_v2(datatype.is_string() ? datatype.as_string() : datatype.dump(), what);
  const Ints shape = ints_from_json(member(input, "shape", what), what);
  if (parameter(input, "shared_memory_region"))
    refuse(FailureKind::bad_request, "{} is in shared memory; that extension is off, send the data (local clients: --socket)", what);
  const Json* data = optional_member(input, "data");
  if (const Json* size = parameter(input, "binary_data_size")) {
    if (data) refuse(FailureKind::bad_request, "{} has both data and binary_data_size", what);
    out.tensor = tensor_from_bytes(tail.take(whole(*size, "binary_data_size"), what), dtype, shape, what);
  } else {
    if (!data) refuse(FailureKind::bad_request, "{} has neither data nor binary_data_size", what);
    out.tensor = tensor_from_json(*data, dtype, shape, what);
  }
  return out;
}

WantedOutput parse_output(const Json& output, size_t index, bool binary, const CallLimits& limits) {
  WantedOutput out;
  out.name = text_of(member(output, "name", fmt::format("output {}", index)), fmt::format("the name of output {}", index), limits);
  if (const Json* classes = parameter(output, "classification"); classes && whole(*classes, "classification") != 0)
    refuse(FailureKind::bad_request, "output '{}' is asked for as classification; that extension is not offered", escape(out.name, 60));
  if (parameter(output, "shared_memory_region"))
    refuse(FailureKind::bad_request, "output '{}' is asked for in shared memory; that extension is off", escape(out.name, 60));
  out.binary = flag(parameter(output, "binary_data"), "binary_data", binary);
  return out;
}

}  // namespace

Call parse_v2(std::string_view body, size_t json_bytes, const CallLimits& limits) {
  if (json_bytes > body.size())
    refuse(FailureKind::bad_request, "Inference-Header-Content-Length is {}, the body has {} bytes", json_bytes, body.size());
  const Json json =
      Json::parse(body.substr(0, json_bytes), {.bytes = json_bytes, .depth = limits.json_depth, .values = limits.json_values});
  if (!json.is_object()) refuse(FailureKind::bad_request, "the request must be an object; got {}", json.kind());
  BinaryTail tail(body.substr(json_bytes));
  Call call;
  if (const Json* id = optional_member(json, "id")) call.id = text_of(*id, "id", limits);
  if (const Json* sequence = parameter(json, "sequence_id"); sequence && *sequence != Json(0) && *sequence != Json(""))
    refuse(FailureKind::bad_request, "the request is part of a sequence; that extension is not offered");
  if (const Json* priority = parameter(json, "priority")) call.priority = priority_from_v2(whole(*priority, "priority"));
  if (const Json* timeout = parameter(json, "timeout")) call.timeout = timeout_from_v2(whole(*timeout, "timeout"));
  call.binary_outputs = flag(parameter(json, "binary_data_output"), "binary_data_output", false);
  for (const Json& input : list_of(member(json, "inputs", "the request"), "inputs", limits))
    call.inputs.push_back(parse_input(input, call.inputs.size(), tail, limits));
  if (const Json* outputs = optional_member(json, "outputs"))
    for (const Json& output : list_of(*outputs, "outputs", limits))
      call.outputs.push_back(parse_output(output, call.outputs.size(), call.binary_outputs, limits));
  if (tail.left() > 0) refuse(FailureKind::bad_request, "{} bytes are left behind the last binary tensor", tail.left());
  return call;
}

V2Answer write_v2(const Call& call, const ModelVersion& model, const std::vector<size_t>& wanted, const std::vector<Tensor>& outputs) {
  V2Answer out;
  std::string& json = out.json;
  json = "{\"model_name\":";
  append_quoted(json, model.name());
  json += fmt::format(",\"model_version\":\"{}\"", model.version());
  if (!call.id.empty()) {
    json += ",\"id\":";
    append_quoted(json, call.id);
  }
  json += ",\"outputs\":[";
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Tensor& tensor = outputs.at(wanted[i]);
    if (i > 0) json += ',';
    json += "{\"name\":";
    append_quoted(json, model.outputs()[wanted[i]].name);
    json += ",\"datatype\":\"";
    json += v2_name(tensor.dtype());
    json += "\",\"shape\":[";
    for (int64_t axis = 0; axis < tensor.shape().rank(); ++axis) {
      if (axis > 0) json += ',';
      json += std::to_string(tensor.shape()[axis]);
    }
    json += ']';
    if (call.outputs.empty() ? call.binary_outputs : call.outputs[i].binary) {
      json += fmt::format(",\"parameters\":{{\"binary_data_size\":{}}}}}", tensor.type().bytes());
      out.binary.push_back(tensor);
    } else {
      json += ",\"data\":";
      append_flat(json, tensor);
      json += '}';
    }
  }
  json += "]}";
  return out;
}

}  // namespace tutti::serve
