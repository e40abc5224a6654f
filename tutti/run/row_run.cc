#include "tutti/run/row_run.h"

#include <chrono>
#include <map>
#include <mutex>
#include <utility>

#include "tutti/base/stopwatch.h"

namespace tutti {

namespace {

// Hands on in order what threads finish in any order, at least `enough` rows at a time but for the last ones. Whoever makes them enough
// hands them on; nobody waits.
class InOrder {
 public:
  InOrder(int64_t rows, int64_t enough, std::function<void(int64_t first, int64_t count)> take)
      : rows_(rows), enough_(enough), take_(std::move(take)) {}

  void finished(int64_t first, int64_t count) {
    std::unique_lock lock(mutex_);
    waiting_.emplace(first, count);
    for (auto one = waiting_.begin(); one != waiting_.end() && one->first == end_; one = waiting_.erase(one)) end_ += one->second;
    if (taking_) return;
    taking_ = true;  // for good, if take_ throws: what comes behind a gap is not wanted
    while (end_ - taken_ >= enough_ || (end_ == rows_ && taken_ < end_)) {
      const int64_t begin = std::exchange(taken_, end_), some = end_ - begin;
      lock.unlock();
      take_(begin, some);
      lock.lock();
    }
    taking_ = false;
  }

 private:
  const int64_t rows_, enough_;
  const std::function<void(int64_t, int64_t)> take_;
  std::mutex mutex_;
  std::map<int64_t, int64_t> waiting_;  // first: count; behind a gap
  int64_t end_ = 0, taken_ = 0;         // rows without a gap, and those of them that are handed on
  bool taking_ = false;
};

class AddedTime {
 public:
  explicit AddedTime(std::atomic<int64_t>& sum) : sum_(sum) {}
  ~AddedTime() { sum_ += (std::chrono::steady_clock::now() - begin_) / std::chrono::nanoseconds(1); }
  AddedTime(const AddedTime&) = delete;
  AddedTime& operator=(const AddedTime&) = delete;

 private:
  std::atomic<int64_t>& sum_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

RowRun::RowRun(BatchPredictor& predictor, std::vector<Type> rows, int64_t piece, int64_t batch, RowStages stages)
    : predictor_(predictor),
      rows_(std::move(rows)),
      piece_(piece),
      batch_(batch),
      stages_(std::move(stages)),
      whole_(predictor.prepare(rows_, piece, batch)) {}

void RowRun::run(int64_t first, int64_t count) {
  std::optional<PreparedPrediction> rest;
  if (count != piece_) rest = predictor_.prepare(rows_, count, batch_);
  PreparedPrediction& prepared = rest ? *rest : whole_;
  const Stopwatch watch;
  constexpr int64_t pages = 256 << 10;  // that a system writes at little more than the cost of copying them
  int64_t row_bytes = 1;
  for (const Tensor& tensor : prepared.outputs()) row_bytes += tensor.type().bytes() / count;
  InOrder order(count, pages / row_bytes, [&](int64_t begin, int64_t some) {
    const AddedTime time(writing_);
    std::vector<std::span<const std::byte>> outputs;
    for (const Tensor& tensor : prepared.outputs()) {
      const auto bytes = tensor.bytes();
      const auto row = bytes.size() / static_cast<size_t>(count);
      outputs.push_back(bytes.subspan(static_cast<size_t>(begin) * row, static_cast<size_t>(some) * row));
    }
    stages_.write(some, outputs);
  });
  const auto fetch = [&](int64_t begin, int64_t some, Slots slots) {
    const AddedTime time(fetching_);
    stages_.fetch(first + begin, some, slots);
  };
  prepared.run(fetch, [&](int64_t begin, int64_t some) { order.finished(begin, some); });
  done_ += count;
  batches_ += (count + batch_ - 1) / batch_;
  seconds_ += watch.seconds();
}

std::vector<StageCounters> RowRun::counters() const {
  const int64_t threads = whole_.threads();
  const double fetching = static_cast<double>(fetching_) * 1e-9, writing = static_cast<double>(writing_) * 1e-9;
  const auto stage = [&](std::string name, int64_t items, double busy) {
    StageCounters out;
    out.name = std::move(name), out.threads = threads, out.items = items, out.busy = busy;
    return out;
  };
  return {stage("source", done_, fetching), stage("device", batches_, static_cast<double>(threads) * seconds_ - fetching - writing),
          stage("writer", batches_, writing)};
}

}  // namespace tutti
