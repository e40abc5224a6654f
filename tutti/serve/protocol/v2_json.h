// The Open Inference Protocol (KServe V2) over REST: inference requests and answers as JSON, with the binary tensor extension, where
// tensors follow the JSON as plain bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tutti/serve/protocol/call.h"

namespace tutti::serve {

// `json_bytes`: Inference-Header-Content-Length, how much of the body is JSON; the body's size without the header. Throws bad_request, or
// InvalidArgument for what is no JSON.
Call parse_v2(std::string_view body, size_t json_bytes, const CallLimits& limits);

// Of Triton's extensions of the protocol, what the server metadata name.
inline constexpr const char* v2_extensions[] = {"binary_tensor_data", "model_configuration", "model_repository", "schedule_policy",
                                                "statistics"};

// JSON, then the bytes of the tensors in their order.
struct V2Answer {
  std::string json;
  std::vector<Tensor> binary;
};
V2Answer write_v2(const Call& call, const ModelVersion& model, const std::vector<size_t>& wanted, const std::vector<Tensor>& outputs);

// Metadata, configuration and statistics of a model as the protocol and Triton's extensions have them.
Json v2_metadata(const ModelVersion& model, const std::vector<int64_t>& versions);
Json v2_config(const ModelVersion& model);
Json v2_statistics(const std::vector<VersionInfo>& versions);
// READY, LOADING, UNAVAILABLE
std::string_view v2_state(ModelState state);

}  // namespace tutti::serve
