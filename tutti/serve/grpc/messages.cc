#include "tutti/serve/grpc/messages.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include <limits>

#include "tutti/serve/protocol/compression.h"
#include "tutti/serve/protocol/datatype.h"
#include "tutti/serve/protocol/tensor_json.h"
#include "tutti/serve/protocol/v2_json.h"

namespace tutti::serve {

namespace {

// A message that was compressed says so in a flag that gRPC keeps to itself. But none of ours begins like such a stream: gzip's first byte
// is no tag, and zlib's would be that of a field 15.
std::string_view encoding_of(std::string_view begin) {
  if (begin.size() < 2) return "";
  const auto first = static_cast<uint8_t>(begin[0]), second = static_cast<uint8_t>(begin[1]);
  if (first == 0x1f && second == 0x8b) return "gzip";
  return first == 0x78 && (first * 256 + second) % 31 == 0 ? "deflate" : "";
}

int64_t number_of(const inference::InferParameter& value, std::string_view key) {
  switch (value.parameter_choice_case()) {
    case inference::InferParameter::kInt64Param: return value.int64_param();
    case inference::InferParameter::kUint64Param:
      return static_cast<int64_t>(std::min<uint64_t>(value.uint64_param(), std::numeric_limits<int64_t>::max()));
    default: refuse(FailureKind::bad_request, "parameter '{}' is a whole number", key);
  }
}

template <class T, class Values>
void copy_typed(Tensor& out, const Values& values, std::string_view what) {
  if (values.size() != out.elements())
    refuse(FailureKind::bad_request, "{} is {}, {} elements; its contents have {} of that type", what, to_string(out.type()),
           out.elements(), values.size());
  T* at = out.as<T>().data();
  for (auto value : values) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      if (!std::in_range<T>(value))
        refuse(FailureKind::bad_request, "{} has elements of type {}; got {}", what, name(dtype_of<T>()), value);
    }
    *at++ = static_cast<T>(value);
  }
}

int64_t count_of(const inference::InferTensorContents& contents, DType dtype) {
  switch (dtype) {
    case DType::boolean: return contents.bool_contents_size();
    case DType::i8:
    case DType::i16:
    case DType::i32: return contents.int_contents_size();
    case DType::i64: return contents.int64_contents_size();
    case DType::u8:
    case DType::u16:
    case DType::u32: return contents.uint_contents_size();
    case DType::u64: return contents.uint64_contents_size();
    case DType::f32: return contents.fp32_contents_size();
    case DType::f64: return contents.fp64_contents_size();
    default: return 0;
  }
}

Tensor tensor_from_contents(const inference::InferTensorContents& contents, DType dtype, const Ints& extents, std::string_view what) {
  const Type type{dtype, checked_shape(extents, what)};
  if (dtype == DType::f16 || dtype == DType::bf16)
    refuse(FailureKind::bad_request, "{} has datatype {}, which has no typed contents; send raw_input_contents", what, v2_name(dtype));
  // Before it has memory.
  if (const int64_t count = count_of(contents, dtype); count != type.shape.elements())
    refuse(FailureKind::bad_request, "{} is {}, {} elements; its contents have {} of that type", what, to_string(type),
           type.shape.elements(), count);
  Tensor out(type);
  switch (dtype) {
    case DType::boolean: copy_typed<bool>(out, contents.bool_contents(), what); break;
    case DType::i8: copy_typed<int8_t>(out, contents.int_contents(), what); break;
    case DType::i16: copy_typed<int16_t>(out, contents.int_contents(), what); break;
    case DType::i32: copy_typed<int32_t>(out, contents.int_contents(), what); break;
    case DType::i64: copy_typed<int64_t>(out, contents.int64_contents(), what); break;
    case DType::u8: copy_typed<uint8_t>(out, contents.uint_contents(), what); break;
    case DType::u16: copy_typed<uint16_t>(out, contents.uint_contents(), what); break;
    case DType::u32: copy_typed<uint32_t>(out, contents.uint_contents(), what); break;
    case DType::u64: copy_typed<uint64_t>(out, contents.uint64_contents(), what); break;
    case DType::f32: copy_typed<float>(out, contents.fp32_contents(), what); break;
    default: copy_typed<double>(out, contents.fp64_contents(), what); break;
  }
  return out;
}

inference::DataType config_type(DType dtype) {
  inference::DataType out = inference::TYPE_INVALID;
  inference::DataType_Parse("TYPE_" + std::string(v2_name(dtype)), &out);
  return out;
}

void fill_duration(inference::StatisticDuration& out, int64_t count, int64_t nanoseconds) {
  out.set_count(static_cast<uint64_t>(count));
  out.set_ns(static_cast<uint64_t>(nanoseconds));
}
void fill_duration(inference::StatisticDuration& out, const Timed& timed) { fill_duration(out, timed.count, timed.nanoseconds); }

}  // namespace

void parse_message(const grpc::ByteBuffer& bytes, size_t most_bytes, MemoryClaim& claim, google::protobuf::MessageLite& message) {
  claim.grow(bytes.Length());
  std::vector<grpc::Slice> slices;
  if (!bytes.Dump(&slices).ok()) refuse(FailureKind::failed, "the message cannot be read");
  std::string begin;
  for (size_t i = 0; i < slices.size() && begin.size() < 2; ++i)
    begin.append(reinterpret_cast<const char*>(slices[i].begin()), std::min<size_t>(slices[i].size(), 2));
  bool good = false;
  if (const std::string_view encoding = encoding_of(begin); !encoding.empty()) {
    std::string text;
    text.reserve(bytes.Length());
    for (const grpc::Slice& slice : slices) text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    good = message.ParseFromString(decompressed(text, encoding, most_bytes, claim));
  } else {
    grpc::ByteBuffer same = bytes;  // its slices are shared
    grpc::ProtoBufferReader reader(&same);
    good = reader.status().ok() && message.ParseFromZeroCopyStream(&reader);
  }
  if (!good) refuse(FailureKind::bad_request, "the bytes are no message of {}", message.GetTypeName());
}

grpc::ByteBuffer serialized(const google::protobuf::MessageLite& message) {
  grpc::Slice slice(message.ByteSizeLong());
  message.SerializeWithCachedSizesToArray(const_cast<uint8_t*>(slice.begin()));
  return {&slice, 1};
}

Call call_of(const inference::ModelInferRequest& request, const CallLimits& limits) {
  const auto too_many = [&](int count, std::string_view what) {
    if (count > static_cast<int64_t>(limits.tensors)) refuse(FailureKind::bad_request, "{} {}, at most {}", count, what, limits.tensors);
  };
  too_many(request.inputs_size(), "inputs");
  too_many(request.outputs_size(), "outputs");
  check_tensor_name(request.id(), "id", limits);
  Call call;
  call.id = request.id();
  if (request.parameters().contains("sequence_id"))
    refuse(FailureKind::bad_request, "the request is part of a sequence; that extension is not offered");
  if (auto at = request.parameters().find("priority"); at != request.parameters().end())
    call.priority = priority_from_v2(number_of(at->second, "priority"));
  if (auto at = request.parameters().find("timeout"); at != request.parameters().end())
    call.timeout = timeout_from_v2(number_of(at->second, "timeout"));
  const int raw = request.raw_input_contents_size();
  if (raw != 0 && raw != request.inputs_size())
    refuse(FailureKind::bad_request, "raw_input_contents has {} tensors for {} inputs: all of them are raw, or none", raw,
           request.inputs_size());
  for (int i = 0; i < request.inputs_size(); ++i) {
    const auto& input = request.inputs(i);
    check_tensor_name(input.name(), "an input", limits);
    const std::string what = fmt::format("input '{}'", escape(input.name(), 60));
    if (input.parameters().contains("shared_memory_region"))
      refuse(FailureKind::bad_request, "{} is in shared memory; that extension is off, send the data (local clients: --socket)", what);
    const DType dtype = dtype_from_v2(input.datatype(), what);
    const Ints shape(input.shape().begin(), input.shape().end());
    if (raw != 0 && input.has_contents()) refuse(FailureKind::bad_request, "{} has both typed and raw contents", what);
    call.inputs.push_back({input.name(), raw != 0 ? tensor_from_bytes(request.raw_input_contents(i), dtype, shape, what)
                                                  : tensor_from_contents(input.contents(), dtype, shape, what)});
  }
  for (const auto& output : request.outputs()) {
    check_tensor_name(output.name(), "an output", limits);
    if (auto at = output.parameters().find("classification");
        at != output.parameters().end() && number_of(at->second, "classification") != 0)
      refuse(FailureKind::bad_request, "output '{}' is asked for as classification; that extension is not offered",
             escape(output.name(), 60));
    if (output.parameters().contains("shared_memory_region"))
      refuse(FailureKind::bad_request, "output '{}' is asked for in shared memory; that extension is off", escape(output.name(), 60));
    call.outputs.push_back({output.name(), true});
  }
  return call;
}

void fill_answer(const Call& call, const ModelVersion& model, const std::vector<size_t>& wanted, const std::vector<Tensor>& outputs,
                 inference::ModelInferResponse& response) {
  response.set_model_name(model.name());
  response.set_model_version(std::to_string(model.version()));
  response.set_id(call.id);
  for (size_t index : wanted) {
    const Tensor& tensor = outputs.at(index);
    auto& output = *response.add_outputs();
    output.set_name(model.outputs()[index].name);
    output.set_datatype(std::string(v2_name(tensor.dtype())));
    for (int64_t extent : tensor.shape()) output.add_shape(extent);
    response.add_raw_output_contents(tensor.bytes().data(), tensor.bytes().size());
  }
}

void fill_metadata(const ModelVersion& model, const std::vector<int64_t>& versions, inference::ModelMetadataResponse& response) {
  response.set_name(model.name());
  for (int64_t version : versions) response.add_versions(std::to_string(version));
  response.set_platform("tutti_keras");
  const auto fill = [](auto& out, const TensorInfo& tensor) {
    out.set_name(tensor.name);
    out.set_datatype(std::string(v2_name(tensor.dtype)));
    for (int64_t extent : tensor.shape) out.add_shape(extent);
  };
  for (const TensorInfo& tensor : model.inputs()) fill(*response.add_inputs(), tensor);
  for (const TensorInfo& tensor : model.outputs()) fill(*response.add_outputs(), tensor);
}

void fill_config(const ModelVersion& model, inference::ModelConfig& config) {
  const bool batched = model.is_batched();
  config.set_name(model.name());
  config.set_platform("tutti_keras");
  config.set_backend("tutti");
  config.set_max_batch_size(batched ? static_cast<int32_t>(model.largest_batch()) : 0);
  const auto fill = [&](auto& out, const TensorInfo& tensor) {
    out.set_name(tensor.name);
    out.set_data_type(config_type(tensor.dtype));
    for (size_t axis = batched ? 1 : 0; axis < tensor.shape.size(); ++axis) out.add_dims(tensor.shape[axis]);
  };
  for (const TensorInfo& tensor : model.inputs()) fill(*config.add_input(), tensor);
  for (const TensorInfo& tensor : model.outputs()) fill(*config.add_output(), tensor);
  if (batched) config.mutable_dynamic_batching();
}

void fill_statistics(const VersionInfo& version, inference::ModelStatistics& out) {
  const Statistics& all = version.statistics;
  out.set_name(version.name);
  out.set_version(std::to_string(version.version));
  out.set_last_inference(static_cast<uint64_t>(all.last_milliseconds));
  out.set_inference_count(static_cast<uint64_t>(all.samples));
  out.set_execution_count(static_cast<uint64_t>(all.executions));
  auto& sums = *out.mutable_inference_stats();
  fill_duration(*sums.mutable_success(), all.success);
  fill_duration(*sums.mutable_fail(), all.fail);
  fill_duration(*sums.mutable_queue(), all.queue);
  fill_duration(*sums.mutable_compute_input(), all.input);
  fill_duration(*sums.mutable_compute_infer(), all.compute);
  fill_duration(*sums.mutable_compute_output(), all.output);
  for (const auto& [samples, batch] : all.batches) {
    auto& one = *out.add_batch_stats();
    one.set_batch_size(static_cast<uint64_t>(samples));
    fill_duration(*one.mutable_compute_input(), batch.count, batch.input_ns);
    fill_duration(*one.mutable_compute_infer(), batch.count, batch.compute_ns);
    fill_duration(*one.mutable_compute_output(), batch.count, batch.output_ns);
  }
}

}  // namespace tutti::serve
