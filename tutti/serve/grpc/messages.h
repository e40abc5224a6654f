// Between the messages of inference.proto and ours. Each throws a bad_request.
#pragma once

#include <inference.pb.h>

#include "tutti/serve/protocol/call.h"

namespace tutti::serve {

// Tensors from raw_input_contents, all of them, or from typed contents.
Call call_of(const inference::ModelInferRequest& request, const CallLimits& limits);
void fill_answer(const Call& call, const ModelVersion& model, const std::vector<size_t>& wanted, const std::vector<Tensor>& outputs,
                 inference::ModelInferResponse& response);

void fill_metadata(const ModelVersion& model, const std::vector<int64_t>& versions, inference::ModelMetadataResponse& response);
void fill_config(const ModelVersion& model, inference::ModelConfig& config);
void fill_statistics(const VersionInfo& version, inference::ModelStatistics& out);

}  // namespace tutti::serve
