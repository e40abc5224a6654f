// Who computes the parts of a batch: threads of this process, ranks that a launcher has started, or devices of one plugin. ParallelFit asks
// for one step after another, and does not know which.
#pragma once

#include "tutti/run/communicator.h"
#include "tutti/run/parallel_part.h"
#include "tutti/run/parallel_plan.h"

namespace tutti {

class Replicas : public StateValues {
 public:
  virtual void begin() {}  // before the first step of a run
  virtual void end() {}    // after the last, whatever it came to
  // The trainer's next batch: all parts and, of training, the update of the whole. The results of each replica, until the next step. Throws
  // Error when one of them fails; then none goes on.
  virtual std::vector<const PartResults*> step(const Trainer& trainer) = 0;
  // Whether all go on: one decision of all.
  virtual bool agree(bool goes_on) { return goes_on; }
  virtual std::vector<Timeline*> details() { return {}; }  // what else is traced of them
  virtual std::vector<Timeline*> timelines() = 0;          // of the replicas in this process
  virtual Json json() const { return Json::object(); }     // what was chosen and measured, for those who ask
};

struct ReplicaSettings {
  const Trainer& trainer;
  std::shared_ptr<PartPrograms> programs;
  ParallelPlan plan;
  PartOptions parts;
  bool keeps_spans = false;
  int64_t bucket = 0;  // bytes that ranks exchange at once; 0: by measurement
  Exchange exchange = Exchange::memory;
};
// Threads that share the memory of weights and optimizer variables: each updates its own range of them.
std::unique_ptr<Replicas> thread_replicas(const ReplicaSettings& settings);
// This process is one of them. Where all share memory, and are to, they do as threads; else they exchange gradients by messages.
std::unique_ptr<Replicas> rank_replicas(const ReplicaSettings& settings, std::shared_ptr<RankGroup> ranks);
std::unique_ptr<Replicas> shared_replicas(const ReplicaSettings& settings, std::shared_ptr<RankGroup> ranks);  // nullptr: they do not
// One program on all of these at once, and on those of the other ranks, wherever the batch can be divided evenly.
std::unique_ptr<Replicas> launched_replicas(const ReplicaSettings& settings, std::vector<std::shared_ptr<Device>> devices,
                                            std::shared_ptr<RankGroup> ranks);

// Of a sum of all gradients, each replica sends and gets all but its own part, twice.
double exchanged_bytes(const PartPrograms& programs, int64_t replicas);

}  // namespace tutti
