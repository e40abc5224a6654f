// Models as the Open Inference Protocol describes them: metadata, and Triton's model configuration and statistics.
#include "tutti/serve/protocol/datatype.h"
#include "tutti/serve/protocol/v2_json.h"

namespace tutti::serve {

namespace {

Json ints_as_json(const Ints& ints, size_t from = 0) {
  Json out = Json::list();
  for (size_t i = from; i < ints.size(); ++i) out.push(ints[i]);
  return out;
}

Json tensors_as_json(const std::vector<TensorInfo>& tensors) {
  Json out = Json::list();
  for (const TensorInfo& tensor : tensors)
    out.push(JsonMembers{{"name", tensor.name}, {"datatype", v2_name(tensor.dtype)}, {"shape", ints_as_json(tensor.shape)}});
  return out;
}

// Triton's configuration has extents without the batch where the model can be batched, and its own names of types: TYPE_FP32.
Json tensors_as_config(const std::vector<TensorInfo>& tensors, bool batched) {
  Json out = Json::list();
  for (const TensorInfo& tensor : tensors)
    out.push(JsonMembers{{"name", tensor.name},
                         {"data_type", fmt::format("TYPE_{}", v2_name(tensor.dtype))},
                         {"dims", ints_as_json(tensor.shape, batched ? 1 : 0)}});
  return out;
}

Json timed_as_json(int64_t count, int64_t nanoseconds) { return JsonMembers{{"count", count}, {"ns", nanoseconds}}; }
Json timed_as_json(const Timed& timed) { return timed_as_json(timed.count, timed.nanoseconds); }

Json statistics_as_json(const VersionInfo& version) {
  const Statistics& all = version.statistics;
  Json batches = Json::list();
  for (const auto& [samples, batch] : all.batches)
    batches.push(JsonMembers{{"batch_size", samples},
                             {"compute_input", timed_as_json(batch.count, batch.input_ns)},
                             {"compute_infer", timed_as_json(batch.count, batch.compute_ns)},
                             {"compute_output", timed_as_json(batch.count, batch.output_ns)}});
  return JsonMembers{{"name", version.name},
                     {"version", std::to_string(version.version)},
                     {"last_inference", all.last_milliseconds},
                     {"inference_count", all.samples},
                     {"execution_count", all.executions},
                     {"inference_stats", JsonMembers{{"success", timed_as_json(all.success)},
                                                     {"fail", timed_as_json(all.fail)},
                                                     {"queue", timed_as_json(all.queue)},
                                                     {"compute_input", timed_as_json(all.input)},
                                                     {"compute_infer", timed_as_json(all.compute)},
                                                     {"compute_output", timed_as_json(all.output)}}},
                     {"batch_stats", std::move(batches)}};
}

}  // namespace

Json v2_metadata(const ModelVersion& model, const std::vector<int64_t>& versions) {
  Json numbers = Json::list();
  for (int64_t version : versions) numbers.push(std::to_string(version));
  return JsonMembers{{"name", model.name()},
                     {"versions", std::move(numbers)},
                     {"platform", "tutti_keras"},
                     {"inputs", tensors_as_json(model.inputs())},
                     {"outputs", tensors_as_json(model.outputs())}};
}

Json v2_config(const ModelVersion& model) {
  const bool batched = model.is_batched();
  Json out = JsonMembers{{"name", model.name()},
                         {"platform", "tutti_keras"},
                         {"backend", "tutti"},
                         {"max_batch_size", batched ? model.largest_batch() : 0},
                         {"input", tensors_as_config(model.inputs(), batched)},
                         {"output", tensors_as_config(model.outputs(), batched)}};
  if (batched) out.set("dynamic_batching", Json::object());
  return out;
}

Json v2_statistics(const std::vector<VersionInfo>& versions) {
  Json models = Json::list();
  for (const VersionInfo& version : versions)
    if (version.state == ModelState::ready) models.push(statistics_as_json(version));
  return JsonMembers{{"model_stats", std::move(models)}};
}

std::string_view v2_state(ModelState state) {
  switch (state) {
    case ModelState::loading: return "LOADING";
    case ModelState::ready: return "READY";
    default: return "UNAVAILABLE";
  }
}

}  // namespace tutti::serve
