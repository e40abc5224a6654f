#include "tutti/run/row_run.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

namespace tutti {

namespace {

// Batches that threads take in order and finish in any order. They are handed on in order, at least `enough` at a time but for the last
// ones, by whoever makes them enough; until then each has a place, which a later one waits for.
class InOrder {
 public:
  InOrder(int64_t batches, int64_t places, int64_t enough, std::function<void(int64_t first, int64_t count)> hand_on)
      : batches_(batches), enough_(enough), hand_on_(std::move(hand_on)), finished_(static_cast<size_t>(places), false) {}

  // The next one, when its place is free. Nothing when there are no more, or one has failed.
  std::optional<int64_t> next() {
    std::unique_lock lock(mutex_);
    if (next_ == batches_) return {};
    const int64_t mine = next_++;
    handed_on_.wait(lock, [&] { return failure_ != nullptr || mine - out_ < places(); });
    return failure_ ? std::nullopt : std::optional(mine);
  }

  void finished(int64_t batch) {
    std::unique_lock lock(mutex_);
    finished_[place_of(batch)] = true;
    while (finished_[place_of(end_)]) finished_[place_of(end_++)] = false;
    if (std::exchange(handing_on_, true)) return;
    while (end_ - out_ >= enough_ && !failure_) hand_on(lock);
    handing_on_ = false;
  }

  // What is thrown in the end; the first one.
  void failed(std::exception_ptr failure) {
    std::scoped_lock lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
    handed_on_.notify_all();
  }

  // When no thread is at work any more. Gives how many were handed on.
  int64_t finish() {
    std::unique_lock lock(mutex_);
    while (out_ < end_ && !failure_) hand_on(lock);
    if (failure_) std::rethrow_exception(failure_);
    return out_;
  }

  size_t place_of(int64_t batch) const { return static_cast<size_t>(batch) % finished_.size(); }

 private:
  int64_t places() const { return static_cast<int64_t>(finished_.size()); }
  void hand_on(std::unique_lock<std::mutex>& lock) {
    const int64_t some = std::min(end_ - out_, places() - static_cast<int64_t>(place_of(out_)));  // that lie side by side
    lock.unlock();
    hand_on_(out_, some);
    lock.lock();
    out_ += some;
    handed_on_.notify_all();
  }

  const int64_t batches_, enough_;
  const std::function<void(int64_t, int64_t)> hand_on_;
  std::mutex mutex_;
  std::condition_variable handed_on_;
  std::vector<bool> finished_;  // by place, of those behind end_
  int64_t next_ = 0;            // is taken next,
  int64_t end_ = 0;             // all before it are finished,
  int64_t out_ = 0;             // all before it are handed on
  bool handing_on_ = false;
  std::exception_ptr failure_;
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

RowRun::RowRun(BatchPredictor& predictor, const std::vector<Type>& rows, int64_t batch, int64_t places, RowStages stages)
    : batch_(batch), stages_(std::move(stages)), places_(predictor.prepare(rows, places * batch, batch)) {}

int64_t RowRun::run(int64_t first, int64_t count, const std::atomic<bool>& stop) {
  constexpr int64_t pages = 256 << 10;  // that a system writes at little more than the cost of copying them
  const auto places = static_cast<int64_t>(places_.batches());
  int64_t batch_bytes = 1;
  for (const Tensor& tensor : places_.outputs()) batch_bytes += tensor.type().bytes() / places;
  const auto rows_to = [&](int64_t batch) { return std::min(batch * batch_, count); };

  InOrder order(
      (count + batch_ - 1) / batch_, places, std::clamp<int64_t>(pages / batch_bytes, 1, (places + 1) / 2),
      [&](int64_t begin, int64_t some) {
        const AddedTime time(writing_);
        const int64_t written = rows_to(begin + some) - rows_to(begin);
        std::vector<std::span<const std::byte>> outputs;
        for (const Tensor& tensor : places_.outputs()) {
          const auto bytes = tensor.bytes();
          const auto row = bytes.size() / static_cast<size_t>(places * batch_);
          outputs.push_back(bytes.subspan(static_cast<size_t>(begin % places * batch_) * row, static_cast<size_t>(written) * row));
        }
        stages_.write(written, outputs);
      });
  const auto compute = [&](int64_t batch, int thread) {
    const int64_t begin = batch * batch_, some = rows_to(batch + 1) - begin;
    auto slots = places_.inputs(order.place_of(batch), thread);
    {
      const AddedTime time(fetching_);
      for (auto& slot : slots) {
        const auto given = slot.first(slot.size() / static_cast<size_t>(batch_) * static_cast<size_t>(some));
        std::ranges::fill(slot.subspan(given.size()), std::byte{0});  // of a batch that is not full
        slot = given;
      }
      stages_.fetch(first + begin, some, slots);
    }
    const AddedTime time(computing_);
    places_.compute(order.place_of(batch), thread);
    rows_ += some, ++batches_;
  };
  places_.side_by_side([&](int thread) {
    try {
      while (!stop) {
        std::optional<int64_t> batch;
        {
          const AddedTime time(waiting_);
          batch = order.next();
        }
        if (!batch) return;
        compute(*batch, thread);
        order.finished(*batch);
      }
    } catch (...) {
      order.failed(std::current_exception());
    }
  });
  return rows_to(order.finish());
}

std::vector<StageCounters> RowRun::counters() const {
  const auto stage = [&](std::string name, int64_t items, int64_t busy, int64_t waiting) {
    StageCounters out;
    out.name = std::move(name), out.threads = places_.threads(), out.items = items;
    out.busy = static_cast<double>(busy) * 1e-9, out.waiting_for_output = static_cast<double>(waiting) * 1e-9;
    return out;
  };
  return {stage("source", rows_, fetching_, 0), stage("device", batches_, computing_, waiting_), stage("writer", batches_, writing_, 0)};
}

}  // namespace tutti
