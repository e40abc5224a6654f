#include "tutti/serve/protocol/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "tutti/serve/protocol/tensor_json.h"

namespace tutti::serve {

namespace {

std::vector<std::string> names_of(const std::vector<TensorInfo>& tensors) {
  std::vector<std::string> out;
  for (const TensorInfo& tensor : tensors) out.push_back(tensor.name);
  return out;
}

}  // namespace

Tensor tensor_from_bytes(std::string_view bytes, DType dtype, const Ints& extents, std::string_view what) {
  Type type{dtype, checked_shape(extents, what)};
  if (bytes.size() != static_cast<uint64_t>(type.bytes()))
    refuse(FailureKind::bad_request, "{} is {}, {} bytes; got {}", what, to_string(type), type.bytes(), bytes.size());
  Tensor out(std::move(type));
  if (dtype == DType::boolean)
    std::transform(bytes.begin(), bytes.end(), out.bytes().begin(), [](char c) { return std::byte(c != 0); });
  else if (!bytes.empty())
    std::memcpy(out.bytes().data(), bytes.data(), bytes.size());
  return out;
}

int priority_from_v2(int64_t priority) {
  if (priority < 0) refuse(FailureKind::bad_request, "a priority is 0 or more; got {}", priority);
  return priority == 0 ? 0 : static_cast<int>(std::max<int64_t>(101 - std::min<int64_t>(priority, 201), -100));
}

std::optional<std::chrono::microseconds> timeout_from_v2(int64_t microseconds) {
  if (microseconds < 0) refuse(FailureKind::bad_request, "a timeout is 0 microseconds or more; got {}", microseconds);
  if (microseconds == 0) return {};
  return std::chrono::microseconds(std::min<int64_t>(microseconds, 86'400'000'000));
}

void check_tensor_name(std::string_view name, std::string_view what, const CallLimits& limits) {
  if (name.size() > limits.name_bytes)
    refuse(FailureKind::bad_request, "{} has a name of {} bytes, at most {}", what, name.size(), limits.name_bytes);
}

int64_t version_from(std::string_view text) {
  if (text.empty()) return -1;
  int64_t version = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc() || end != text.data() + text.size() || version < 0)
    refuse(FailureKind::not_found, "a version is a number; got '{}'", escape(text, 40));
  return version;
}

std::vector<Tensor> inputs_in_order(Call& call, const ModelVersion& model) {
  const std::vector<TensorInfo>& wanted = model.inputs();
  if (call.inputs.size() != wanted.size())
    refuse(FailureKind::bad_request, "model '{}' takes {} input{} ({}); got {}", model.name(), wanted.size(), wanted.size() == 1 ? "" : "s",
           fmt::join(names_of(wanted), ", "), call.inputs.size());
  std::vector<Tensor> out(wanted.size());
  for (Call::Input& input : call.inputs) {
    auto found = std::find_if(wanted.begin(), wanted.end(), [&](const TensorInfo& info) { return info.name == input.name; });
    if (found == wanted.end())
      refuse(FailureKind::bad_request, "model '{}' has no input '{}'{}; it takes {}", model.name(), escape(input.name, 60),
             did_you_mean(input.name, names_of(wanted)), fmt::join(names_of(wanted), ", "));
    Tensor& slot = out[static_cast<size_t>(found - wanted.begin())];
    if (!slot.empty()) refuse(FailureKind::bad_request, "input '{}' is given twice", escape(input.name, 60));
    slot = std::move(input.tensor);
  }
  return out;
}

std::vector<size_t> wanted_outputs(const Call& call, const ModelVersion& model) {
  const std::vector<TensorInfo>& known = model.outputs();
  std::vector<size_t> out;
  for (const WantedOutput& wanted : call.outputs) {
    auto found = std::find_if(known.begin(), known.end(), [&](const TensorInfo& info) { return info.name == wanted.name; });
    if (found == known.end())
      refuse(FailureKind::bad_request, "model '{}' has no output '{}'{}; it gives {}", model.name(), escape(wanted.name, 60),
             did_you_mean(wanted.name, names_of(known)), fmt::join(names_of(known), ", "));
    auto index = static_cast<size_t>(found - known.begin());
    if (std::find(out.begin(), out.end(), index) != out.end())
      refuse(FailureKind::bad_request, "output '{}' is asked for twice", escape(wanted.name, 60));
    out.push_back(index);
  }
  if (call.outputs.empty())
    for (size_t i = 0; i < known.size(); ++i) out.push_back(i);
  return out;
}

Request request_of(Call& call, std::shared_ptr<ModelVersion> model) {
  Request request;
  request.inputs = inputs_in_order(call, *model);
  request.model = std::move(model);
  request.priority = call.priority;
  if (call.timeout) request.deadline = Clock::now() + *call.timeout;
  return request;
}

}  // namespace tutti::serve
