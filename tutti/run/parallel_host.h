// One replica that computes in host memory: its part of each batch, its states, and its share of the update.
#pragma once

#include "tutti/run/parallel_replicas.h"

namespace tutti {

// What a replica does once all parts' sums are there.
struct HostUpdate {
  std::unique_ptr<Program> program;
  std::vector<std::unique_ptr<Buffer>> views;
  std::vector<Buffer*> inputs;
};

struct HostReplica {
  HostReplica(const ReplicaSettings& settings, size_t rank_of_all)
      : rank(rank_of_all),
        timeline(static_cast<int>(rank), settings.keeps_spans),
        kernels(static_cast<int>(rank), settings.keeps_spans, Timeline::Lane::kernels) {}
  size_t rank;
  Timeline timeline, kernels;
  StateBuffers states, updated;  // as its part sees them, and as its update does
  std::unique_ptr<PartWorker> worker;
  HostUpdate update;
  std::exception_ptr failure;
};

// Replica `rank` with its states, those that are divided in `shared`, and its program of the update: part `rank` of all, or of those that
// see no other's memory the whole. Its sums lie in `sums`, or in memory of its own.
std::unique_ptr<HostReplica> make_host_replica(const ReplicaSettings& settings, size_t rank, bool divides, Collective& collective,
                                               StateBuffers& shared, SumBuffers sums = {});
// Its update reads the sums of all replicas, of its own range.
void see_all_sums(const ReplicaSettings& settings, HostReplica& replica, const std::vector<SumBuffers>& sums);
void update_range(const ReplicaSettings& settings, HostReplica& replica);

// Another replica's results, one after another, which are as many as `own`.
PartResults shaped_like(const PartResults& own, const double* values);

Tensor read_state(const ReplicaSettings& settings, const HostReplica& replica, size_t state);
void write_state(const ReplicaSettings& settings, HostReplica& replica, size_t state, const Tensor& value);

}  // namespace tutti
