// Rows that are known by their numbers, read, computed and written by the same threads: what comes in and goes out of a small model stays
// in the cache of the thread that computes it, and nobody waits for another's hand. A pipeline is for items that cost something to prepare.
#pragma once

#include <atomic>

#include "tutti/data/items.h"
#include "tutti/run/batch_predictor.h"
#include "tutti/run/pipeline.h"

namespace tutti {

struct RowStages {
  // Writes rows from `first` on into slots, an input each. Called from many threads at once.
  std::function<void(int64_t first, int64_t count, Slots slots)> fetch;
  // Takes the next rows of each output. One call after another, in the order of the rows, from any thread.
  std::function<void(int64_t count, std::span<const std::span<const std::byte>> outputs)> write;
};

class RowRun {
 public:
  // Of models whose samples are independent. `rows`: one sample of each input. Results of so many batches have a place until they are
  // written.
  RowRun(BatchPredictor& predictor, const std::vector<Type>& rows, int64_t batch, int64_t places, RowStages stages);
  // So many rows, or fewer when `stop` is set: then what was begun is finished. Throws what fetch() or write() throw; what was written is a
  // beginning of the rows then. Gives how many were written.
  int64_t run(int64_t first, int64_t count, const std::atomic<bool>& stop);
  // Seconds of all threads together, so far; from any thread.
  std::vector<StageCounters> counters() const;

 private:
  const int64_t batch_;
  const RowStages stages_;
  const PreparedPrediction places_;
  std::atomic<int64_t> rows_ = 0, batches_ = 0;
  std::atomic<int64_t> fetching_ = 0, computing_ = 0, writing_ = 0, waiting_ = 0;  // nanoseconds
};

}  // namespace tutti
