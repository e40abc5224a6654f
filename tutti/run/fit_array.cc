#include "tutti/run/fit_array.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "tutti/base/start_thread.h"
#include "tutti/device/host.h"

namespace tutti {

namespace {

// `words` of four bytes a row; 0: `row` bytes, whatever they are.
template <size_t words>
void copy_some_rows(const std::byte* from, std::span<const int64_t> rows, size_t row, std::byte* to) {
  if constexpr (words > 0) row = 4 * words;
  for (int64_t index : rows) {
    std::memcpy(to, from + static_cast<size_t>(index) * row, row);
    to += row;
  }
}

// Short rows are most of what small models take: their length is known when this is compiled.
template <size_t... words>
void copy_rows(const std::byte* from, std::span<const int64_t> rows, size_t row, std::byte* to, std::index_sequence<words...>) {
  using Copy = void (*)(const std::byte*, std::span<const int64_t>, size_t, std::byte*);
  static constexpr Copy copies[] = {copy_some_rows<words>...};
  const bool is_short = row % 4 == 0 && row / 4 < sizeof...(words);
  copies[is_short ? row / 4 : 0](from, rows, row, to);
}

// Each the one behind the one before, as where nothing is shuffled.
bool are_neighbours(std::span<const int64_t> rows) {
  int64_t differences = 0;
  for (size_t i = 0; i < rows.size(); ++i) differences |= rows[i] - rows[0] - static_cast<int64_t>(i);
  return differences == 0;
}

// Threads that read for all jobs; started when the first one needs them.
class ReaderThreads {
 public:
  static ReaderThreads& get() {
    static ReaderThreads threads;
    return threads;
  }
  void add(std::function<void()> work) {
    {
      std::lock_guard lock(mutex_);
      work_.push_back(std::move(work));
    }
    some_.notify_one();
  }
  ~ReaderThreads() {
    for (auto& thread : threads_) thread.request_stop();
  }

 private:
  ReaderThreads() {
    const int count = std::clamp(thread_limit(), 1, 8);
    for (int i = 0; i < count; ++i) threads_.push_back(start_thread<std::jthread>([this](std::stop_token stop) { read(stop); }));
  }
  void read(const std::stop_token& stop) {
    for (;;) {
      std::unique_lock lock(mutex_);
      if (!some_.wait(lock, stop, [&] { return !work_.empty(); })) return;
      const auto work = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      work();
    }
  }
  std::mutex mutex_;
  std::condition_variable_any some_;
  std::deque<std::function<void()>> work_;
  std::vector<std::jthread> threads_;
};

}  // namespace

class FitArray::Ahead {
  // Rows that are read before they are asked for.
  struct ExpectedRows {
    explicit ExpectedRows(std::span<const int64_t> which) : rows(which.begin(), which.end()) {}
    const std::vector<int64_t> rows;
    std::mutex mutex;
    std::condition_variable done_now;
    bool done = false;
    Tensor values;
    std::exception_ptr error;

    void read(const RowSource& source, Type type) {
      Tensor got;
      std::exception_ptr failed;
      try {
        got = Tensor(std::move(type));
        source.read(rows, got.bytes());
      } catch (...) {
        failed = std::current_exception();
      }
      {
        std::lock_guard lock(mutex);
        values = std::move(got);
        error = failed;
        done = true;
      }
      done_now.notify_all();
    }
    void wait() {
      std::unique_lock lock(mutex);
      done_now.wait(lock, [&] { return done; });
      if (error) std::rethrow_exception(error);
    }
    // Where these begin among them, if they are all here, one behind another.
    std::optional<size_t> find(std::span<const int64_t> wanted) const {
      const auto at = std::search(rows.begin(), rows.end(), wanted.begin(), wanted.end());
      return at == rows.end() ? std::nullopt : std::optional(static_cast<size_t>(at - rows.begin()));
    }
  };

 public:
  void expect(const std::shared_ptr<const RowSource>& source, std::vector<int64_t> rows, Type type) {
    std::lock_guard lock(mutex_);
    for (const auto& one : expected_)
      if (one->rows == rows) return;
    if (expected_.size() == most_ahead) expected_.pop_front();
    auto one = std::make_shared<ExpectedRows>(rows);
    expected_.push_back(one);
    ReaderThreads::get().add([one, source, type = std::move(type)] { one->read(*source, type); });
  }
  bool copy(std::span<const int64_t> rows, std::span<std::byte> to) {
    std::shared_ptr<ExpectedRows> found;
    size_t first = 0;
    {
      std::lock_guard lock(mutex_);
      for (const auto& one : expected_)
        if (const auto at = one->find(rows)) {
          found = one;
          first = *at;
          break;
        }
      if (found == nullptr) return false;
      if (first + rows.size() == found->rows.size()) std::erase(expected_, found);
    }
    found->wait();
    const size_t row = found->values.bytes().size() / found->rows.size();
    std::ranges::copy(found->values.bytes().subspan(first * row, to.size()), to.begin());
    return true;
  }

 private:
  std::mutex mutex_;
  std::deque<std::shared_ptr<ExpectedRows>> expected_;
};

FitArray::FitArray(Tensor all) : row_{all.dtype(), row_of(all.shape())}, samples_(all.shape()[0]), all_(std::move(all)) {}

FitArray::FitArray(std::shared_ptr<const RowSource> source)
    : row_{source->type().dtype, row_of(source->type().shape)}, samples_(source->type().shape[0]), source_(std::move(source)) {}

Type FitArray::type(int64_t samples) const { return {row_.dtype, with_rows(samples, row_.shape)}; }

FitArray FitArray::part(int64_t first, int64_t count) const {
  FitArray out = *this;
  out.first_ += first;
  out.samples_ = count;
  out.ahead_ = nullptr;
  return out;
}

FitArray FitArray::with_row(const Shape& row) const {
  FitArray out = *this;
  out.row_.shape = row;
  return out;
}

void FitArray::copy(std::span<const int64_t> rows, std::span<std::byte> to) const {
  const auto row = static_cast<size_t>(row_.bytes());
  if (source_ == nullptr) {
    const std::byte* all = all_.bytes().data() + static_cast<size_t>(first_) * row;
    if (rows.empty()) return;
    if (are_neighbours(rows)) return void(std::memcpy(to.data(), all + static_cast<size_t>(rows[0]) * row, rows.size() * row));
    return copy_rows(all, rows, row, to.data(), std::make_index_sequence<33>());
  }
  std::vector<int64_t> places(rows.begin(), rows.end());
  for (int64_t& place : places) place += first_;
  if (ahead_ == nullptr || !ahead_->copy(places, to)) source_->read(places, to);
}

void FitArray::expect(std::span<const int64_t> rows) {
  if (!waits() || rows.empty()) return;
  if (ahead_ == nullptr) ahead_ = std::make_shared<Ahead>();
  std::vector<int64_t> places(rows.begin(), rows.end());
  for (int64_t& place : places) place += first_;
  ahead_->expect(source_, std::move(places), type(std::ssize(rows)));
}

}  // namespace tutti
