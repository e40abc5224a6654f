// Between the messages of inference.proto and ours. Each throws a bad_request.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <inference.pb.h>

#include "tutti/serve/protocol/call.h"
#include "tutti/serve/protocol/memory_budget.h"

namespace tutti::serve {

// A message as it came, perhaps compressed: gRPC itself would decompress it whatever comes out of it. At most so many bytes, which are
// claimed first.
void parse_message(const grpc::ByteBuffer& bytes, size_t most_bytes, MemoryClaim& claim, google::protobuf::MessageLite& message);
// As gRPC sends it.
grpc::ByteBuffer serialized(const google::protobuf::MessageLite& message);

// Tensors from raw_input_contents, all of them, or from typed contents.
Call call_of(const inference::ModelInferRequest& request, const CallLimits& limits);
void fill_answer(const Call& call, const ModelVersion& model, const std::vector<size_t>& wanted, const std::vector<Tensor>& outputs,
                 inference::ModelInferResponse& response);

void fill_metadata(const ModelVersion& model, const std::vector<int64_t>& versions, inference::ModelMetadataResponse& response);
void fill_config(const ModelVersion& model, inference::ModelConfig& config);
void fill_statistics(const VersionInfo& version, inference::ModelStatistics& out);

}  // namespace tutti::serve
