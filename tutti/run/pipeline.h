// Many workers, one owner of the device: items become samples on worker threads, each written into its place in a batch; the calling
// thread computes batch after batch while the next ones fill; results are written in the order of the items, each exactly once.
//
//   source -> workers -> batches -> device (the caller's thread) -> writer
//
// Everything between them is bounded, so memory does not depend on how many items there are. An item that fails takes only its own row.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tutti/base/tensor.h"
#include "tutti/data/items.h"

namespace tutti {

struct PipelineOptions {
  int64_t batch = 32;  // samples handed to compute() at once
  int64_t workers = 1;
  int64_t queue = 64;                        // samples on their way to the device, at most: rounded up to batches, and two at least
  std::chrono::milliseconds max_wait{1000};  // a batch for which a slow source has nothing goes as it is after so long
  bool ahead = false;  // a batch is begun before the last one's results are asked for: of a device that computes by itself
};

// A batch with its results.
struct FinishedBatch {
  std::vector<std::string> names;   // of its items, in order
  std::vector<std::string> errors;  // why an item failed; "" for those that did not
  std::vector<Tensor> outputs;      // [samples, ...]; rows of failed items mean nothing
  int64_t samples = 0;
};

// Gives the results of a batch, [count, ...] an output: waits for them where the device computes by itself.
using PipelineResults = std::function<std::vector<Tensor>()>;

// The stages' work. prepare() is called from many threads at once, the others from one each.
struct PipelineStages {
  ItemSource* source = nullptr;
  std::function<void(const Item& item, Slots slots)> prepare;  // throws: this item failed
  // Of samples, an input each: [count, row...], count at most the batch. May return before they are computed.
  std::function<PipelineResults(const std::vector<Tensor>& samples)> compute;
  std::function<void(const FinishedBatch& batch)> write;
};

// Of one stage's threads together.
struct StageCounters {
  std::string name;
  int64_t threads = 1, items = 0;  // batches, for device and writer
  double busy = 0, waiting_for_input = 0, waiting_for_output = 0;
  int64_t queue = 0, deepest = 0;  // places in the queue before it, and how many were taken at most
};

class Pipeline {
 public:
  // `rows`: one sample of each input.
  Pipeline(std::vector<Type> rows, const PipelineOptions& options, PipelineStages stages);
  ~Pipeline();
  // Until the source ends, or `stop` is set: then what was begun is finished. What source, compute or write throw is thrown here when all
  // threads have ended; batches before it are written.
  void run(const std::atomic<bool>& stop);
  std::vector<StageCounters> counters() const;  // so far; from any thread

 private:
  class Run;
  std::unique_ptr<Run> run_;
};

}  // namespace tutti
