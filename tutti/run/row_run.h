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
  // Of models whose samples are independent. `rows`: one sample of each input; at most `piece` at a time, in batches.
  RowRun(BatchPredictor& predictor, std::vector<Type> rows, int64_t piece, int64_t batch, RowStages stages);
  // The next so many, at most a piece. Throws what fetch() or write() throw; what was written is a beginning of the piece then.
  void run(int64_t first, int64_t count);
  // Seconds of all threads together; of whole pieces.
  std::vector<StageCounters> counters() const;

 private:
  BatchPredictor& predictor_;
  const std::vector<Type> rows_;
  const int64_t piece_, batch_;
  const RowStages stages_;
  PreparedPrediction whole_;  // a piece, again and again
  int64_t done_ = 0, batches_ = 0;
  std::atomic<int64_t> fetching_ = 0, writing_ = 0;  // nanoseconds
  double seconds_ = 0;
};

}  // namespace tutti
