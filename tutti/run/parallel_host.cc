#include "tutti/run/parallel_host.h"

#include <algorithm>

#include "tutti/base/denormals.h"
#include "tutti/device/host.h"
#include "tutti/transform/replicate.h"

namespace tutti {

std::unique_ptr<HostReplica> make_host_replica(const ReplicaSettings& settings, size_t rank, bool divides, Collective& collective,
                                               StateBuffers& shared, SumBuffers sums) {
  const auto& programs = settings.programs;
  const ParallelPlan& plan = settings.plan;
  auto replica = std::make_unique<HostReplica>(settings, rank);
  Device& device = *programs->device();
  const int64_t parts = divides ? plan.replicas : 1, part = divides ? static_cast<int64_t>(rank) : 0;
  const SharedUpdate update = share_update(programs->update(), part, parts);
  const auto& names = programs->states();
  const std::vector<Tensor> values = settings.trainer.first_values(names);
  const auto filled = [&](const Tensor& value) {
    std::shared_ptr<Buffer> buffer = device.allocate(value.type());
    device.to_device(value.bytes(), *buffer);
    return buffer;
  };
  for (size_t i = 0; i < names.size(); ++i) {
    const bool divided = std::find(update.divided_states.begin(), update.divided_states.end(), names[i]) != update.divided_states.end();
    if (!divided) {
      replica->states[names[i]] = replica->updated[names[i]] = filled(values[i]);
      continue;
    }
    std::shared_ptr<Buffer>& whole = shared[names[i]];
    if (whole == nullptr) whole = filled(values[i]);
    replica->states[names[i]] = whole;
    const ElementRange range = range_of_part(values[i].elements(), part, parts);
    replica->updated[names[i]] =
        std::make_shared<HostView>(Type{values[i].dtype(), {range.size()}}, whole, range.begin * byte_size(values[i].dtype()));
  }
  CompileSettings compiled;
  compiled.threads = plan.threads;
  compiled.states = &replica->updated;
  replica->update.program = device.compile(update.graph, compiled);
  replica->worker = std::make_unique<PartWorker>(
      programs, Division{rank, static_cast<size_t>(plan.replicas), static_cast<size_t>(plan.accumulate)}, replica->states,
      plan.replicas > 1 ? &collective : nullptr, replica->timeline, replica->kernels, std::move(sums));
  return replica;
}

void see_all_sums(const ReplicaSettings& settings, HostReplica& replica, const std::vector<SumBuffers>& sums) {
  const auto& whole = settings.programs->sums();
  const auto& types = replica.update.program->input_types();
  for (size_t i = 0; i < whole.size(); ++i)
    for (const SumBuffers& other : sums) {
      const Type& type = types[replica.update.inputs.size()];
      const bool divided = !(type == whole[i]);
      const auto range = range_of_part(whole[i].shape.elements(), static_cast<int64_t>(replica.rank), settings.plan.replicas);
      const int64_t first = divided ? range.begin * byte_size(type.dtype) : 0;
      replica.update.views.push_back(std::make_unique<HostView>(type, other[i], first));
      replica.update.inputs.push_back(replica.update.views.back().get());
    }
}

void update_range(const ReplicaSettings& settings, HostReplica& replica) {
  {
    const Timeline::Span span(replica.timeline, Phase::exchange);
    replica.timeline.slow_down_exchange(exchanged_bytes(*settings.programs, settings.plan.replicas));
  }
  const Timeline::Span span(replica.timeline, Phase::update);
  const FlushDenormals flushing;
  replica.update.program->run(replica.update.inputs, {});
}

PartResults shaped_like(const PartResults& own, const double* values) {
  PartResults out;
  for (const auto& output : own) {
    out.emplace_back(values, values + output.size());
    values += output.size();
  }
  return out;
}

Tensor read_state(const ReplicaSettings& settings, const HostReplica& replica, size_t state) {
  Buffer& buffer = *replica.states.at(settings.programs->states()[state]);
  Tensor out(buffer.type());
  settings.programs->device()->to_host(buffer, out.bytes());
  return out;
}

void write_state(const ReplicaSettings& settings, HostReplica& replica, size_t state, const Tensor& value) {
  settings.programs->device()->to_device(value.bytes(), *replica.states.at(settings.programs->states()[state]));
}

double exchanged_bytes(const PartPrograms& programs, int64_t replicas) {
  double bytes = 0;
  for (const Type& type : programs.sums()) bytes += static_cast<double>(type.bytes());
  return 2 * bytes * static_cast<double>(replicas - 1) / static_cast<double>(replicas);
}

}  // namespace tutti
