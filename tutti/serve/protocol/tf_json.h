// TensorFlow Serving's REST protocol: predict requests in row form ("instances") and column form ("inputs"), answers, status, metadata.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tutti/serve/protocol/call.h"

namespace tutti::serve {

struct TfCall {
  Call call;
  bool rows = false;  // "instances": the answer is "predictions", a row each; else "outputs"
};

// Values have no types in this protocol: they are read as the model's. Throws bad_request, or InvalidArgument for what is no JSON.
TfCall parse_tf(std::string_view body, const std::vector<TensorInfo>& inputs, const CallLimits& limits);
std::string write_tf(const TfCall& call, const ModelVersion& model, const std::vector<Tensor>& outputs);

Json tf_status(const std::vector<VersionInfo>& versions);
Json tf_metadata(const ModelVersion& model);

}  // namespace tutti::serve
