#include "tutti/run/pipeline.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/start_thread.h"
#include "tutti/base/stopwatch.h"
#include "tutti/data/rows.h"
#include "tutti/run/bounded_queue.h"

namespace tutti {

namespace {

// Adds up where a thread's time goes.
class StageTime {
 public:
  void to(double& sum) {
    const double now = watch_.seconds();
    sum += now - last_;
    last_ = now;
  }

 private:
  Stopwatch watch_;
  double last_ = 0;
};

}  // namespace

class Pipeline::Run {
 public:
  Run(std::vector<Type> rows, const PipelineOptions& options, PipelineStages stages)
      : options_(options),
        rows_(std::move(rows)),
        stages_(std::move(stages)),
        batches_(std::max<int64_t>((options.queue + options.batch - 1) / options.batch, 1) + (options.ahead ? 2 : 1)),
        tasks_(static_cast<size_t>(options.queue)),
        free_(static_cast<size_t>(batches_)),
        begun_(static_cast<size_t>(batches_)),
        finished_(2) {
    if (options.batch < 1 || options.workers < 1 || options.queue < 1)
      fail<InvalidArgument>("pipeline", "batch, workers and queue are at least 1; got {}, {} and {}", options.batch, options.workers,
                            options.queue);
    for (int64_t i = 0; i < batches_; ++i) {
      pool_.push_back(std::make_unique<FillingBatch>());
      for (const Type& row : rows_) pool_.back()->inputs.emplace_back(row.dtype, with_rows(options.batch, row.shape));
      free_.push(pool_.back().get());
    }
    counters_[source].name = "source";
    counters_[workers].name = "workers";
    counters_[workers].threads = options.workers;
    counters_[device].name = "device";
    counters_[writer].name = "writer";
  }

  void operator()(const std::atomic<bool>& stop) {
    std::vector<std::thread> threads;
    guarded([&] {
      threads.push_back(start_thread([&] { guarded([&] { feed(stop); }); }));
      for (int64_t i = 0; i < options_.workers; ++i) threads.push_back(start_thread([&] { work(); }));
      threads.push_back(start_thread([&] { guarded([&] { write(); }); }));
      compute();
    });
    finished_.close();
    for (auto& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
    if (source_failure_) std::rethrow_exception(source_failure_);
  }

  std::vector<StageCounters> counters() const {
    std::vector<StageCounters> out;
    {
      std::scoped_lock lock(mutex_);
      out.assign(counters_.begin(), counters_.end());
    }
    const auto queue = [&](Stage stage, const auto& before) {
      out[stage].queue = static_cast<int64_t>(before.capacity());
      out[stage].deepest = static_cast<int64_t>(before.deepest());
    };
    queue(workers, tasks_);
    queue(device, begun_);
    queue(writer, finished_);
    return out;
  }

 private:
  enum Stage : uint8_t { source, workers, device, writer };
  // Samples on their way: slots are filled by workers in any order.
  struct FillingBatch {
    std::vector<Tensor> inputs;  // [batch, row...]
    int64_t samples = 0;
    std::vector<std::string> names, errors;
    int64_t open = 0;  // items not yet prepared, and one more until the source has given the batch up
    FinishedBatch result = {};
  };
  struct Task {
    Item item;
    FillingBatch* batch = nullptr;
    size_t index = 0;   // of the item in its batch
    int64_t first = 0;  // of its samples
  };

  // The first failure ends everything: nobody waits for what will not come.
  template <class F>
  void guarded(F&& f) {
    try {
      f();
    } catch (...) {
      {
        std::scoped_lock lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
        failed_ = true;
      }
      filled_.notify_all();
      tasks_.abandon();
      free_.close();
      begun_.close();
      finished_.close();
    }
  }

  // Adds what a thread did since it last did so.
  void add(Stage stage, StageCounters& own) {
    std::scoped_lock lock(mutex_);
    StageCounters& sum = counters_[stage];
    sum.items += own.items;
    sum.busy += own.busy;
    sum.waiting_for_input += own.waiting_for_input;
    sum.waiting_for_output += own.waiting_for_output;
    own = {};
  }

  void feed(const std::atomic<bool>& stop) {
    StageTime time;
    StageCounters own;
    FillingBatch* batch = nullptr;  // in the device's queue already, which waits until it is let go
    const auto let_go = [&] {
      if (batch != nullptr) close_slot(*batch);
      batch = nullptr;
    };
    std::chrono::steady_clock::time_point begun;
    try {
      while (!stop) {
        Item item;
        using std::chrono::milliseconds;
        const auto waited = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begun);
        constexpr milliseconds glance{50};  // so often `stop` is looked at
        const auto found =
            stages_.source->next(item, batch == nullptr ? glance : std::clamp(options_.max_wait - waited, milliseconds(0), glance));
        time.to(own.busy);
        if (found == ItemSource::Next::end) break;
        if (found == ItemSource::Next::none_yet) {
          if (batch != nullptr && waited >= options_.max_wait) let_go();
          continue;
        }
        if (item.samples < 1 || item.samples > options_.batch)
          fail<InvalidArgument>("pipeline", "an item has 1 to {} samples, a batch; got {}", options_.batch, item.samples);
        if (batch != nullptr && batch->samples + item.samples > options_.batch) let_go();
        if (batch == nullptr) {
          auto fresh = free_.pop();
          if (!fresh) break;
          batch = *fresh;
          batch->names.clear(), batch->errors.clear(), batch->samples = 0, batch->open = 1;
          begun = std::chrono::steady_clock::now();
          begun_.push(batch);
        }
        Task task{.item = {}, .batch = batch, .index = batch->names.size(), .first = batch->samples};
        {
          std::scoped_lock lock(mutex_);
          batch->names.push_back(item.name);
          batch->errors.emplace_back();
          batch->samples += item.samples;
          ++batch->open;
        }
        own.items += item.samples;
        task.item = std::move(item);
        if (!tasks_.push(std::move(task))) break;
        if (batch->samples == options_.batch) let_go();
        time.to(own.waiting_for_output);
        add(source, own);
      }
    } catch (...) {
      source_failure_ = std::current_exception();  // what came before it is finished first
    }
    let_go();
    tasks_.close();
    begun_.close();
    add(source, own);
  }

  void close_slot(FillingBatch& batch) {
    std::scoped_lock lock(mutex_);
    if (--batch.open == 0) filled_.notify_all();
  }

  // Where all stages share the cores, a batch is computed by several threads that wait for each other, and goes first: whoever took a core
  // from one of them would cost the others' time too. The rest is done while the device waits.
  static void give_way() {
#ifdef __linux__
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), ::getpriority(PRIO_PROCESS, 0) + 10);
#endif
  }

  // Nothing thrown leaves it: a worker that is gone would be waited for.
  void work() {
    give_way();
    StageTime time;
    StageCounters own;
    std::vector<std::span<std::byte>> slots(rows_.size());
    while (auto task = tasks_.pop()) {
      time.to(own.waiting_for_input);
      for (size_t i = 0; i < rows_.size(); ++i) {
        const auto row = static_cast<size_t>(rows_[i].bytes());
        slots[i] =
            task->batch->inputs[i].bytes().subspan(static_cast<size_t>(task->first) * row, static_cast<size_t>(task->item.samples) * row);
      }
      std::string error;
      try {
        stages_.prepare(task->item, slots);
      } catch (const std::bad_alloc&) {
        error = "[memory] not enough memory for it";
      } catch (const std::exception& e) {
        error = e.what();
      } catch (...) {
        error = "[pipeline] an unknown error";
      }
      if (!error.empty()) {
        for (auto slot : slots) std::fill(slot.begin(), slot.end(), std::byte{0});
        std::scoped_lock lock(mutex_);
        task->batch->errors[task->index] = std::move(error);
      }
      own.items += task->item.samples;
      close_slot(*task->batch);
      time.to(own.busy);
      add(workers, own);
    }
    add(workers, own);
  }

  // A batch that is begun, and how to get its results.
  struct Begun {
    FillingBatch* batch;
    PipelineResults results;
  };

  void compute() {
    StageTime time;
    StageCounters own;
    std::optional<Begun> last;
    for (;;) {
      std::optional<FillingBatch*> next = begun_.try_pop();
      if (last && !(next && is_filled(**next))) {  // nothing to begin: no reason to let results wait
        if (!finish(*std::exchange(last, {}), time, own)) break;
      }
      if (!next) next = begun_.pop();
      if (!next) break;
      FillingBatch& filling = **next;
      {
        std::unique_lock lock(mutex_);
        filled_.wait(lock, [&] { return failed_ || filling.open == 0; });
        if (failed_) break;
      }
      time.to(own.waiting_for_input);
      Begun begun{&filling, stages_.compute(samples_of(filling))};
      if (last && !finish(*std::exchange(last, {}), time, own)) break;
      if (options_.ahead)
        last = std::move(begun);
      else if (!finish(begun, time, own))
        break;
    }
    add(device, own);
  }

  bool is_filled(const FillingBatch& batch) {
    std::scoped_lock lock(mutex_);
    return batch.open == 0;
  }

  // False when nobody wants results any more.
  bool finish(const Begun& begun, StageTime& time, StageCounters& own) {
    FillingBatch& batch = *begun.batch;
    batch.result.outputs = begun.results();
    batch.result.samples = batch.samples;
    batch.result.names = std::move(batch.names);
    batch.result.errors = std::move(batch.errors);
    ++own.items;
    time.to(own.busy);
    const bool wanted = finished_.push(&batch);
    time.to(own.waiting_for_output);
    add(device, own);
    return wanted;
  }

  // The filled slots: the batch's own memory, or for a short batch a copy of its beginning.
  std::vector<Tensor> samples_of(const FillingBatch& batch) const {
    if (batch.samples == options_.batch) return batch.inputs;
    std::vector<Tensor> out;
    for (size_t i = 0; i < rows_.size(); ++i) {
      auto bytes = out.emplace_back(rows_[i].dtype, with_rows(batch.samples, rows_[i].shape)).bytes();
      std::copy_n(batch.inputs[i].bytes().begin(), bytes.size(), bytes.begin());
    }
    return out;
  }

  void write() {
    give_way();
    StageTime time;
    StageCounters own;
    while (auto batch = finished_.pop()) {
      time.to(own.waiting_for_input);
      const FinishedBatch result = std::move((*batch)->result);
      free_.push(*batch);
      stages_.write(result);
      ++own.items;
      time.to(own.busy);
      add(writer, own);
    }
    add(writer, own);
  }

  const PipelineOptions options_;
  const std::vector<Type> rows_;
  const PipelineStages stages_;
  const int64_t batches_;
  BoundedQueue<Task> tasks_;
  BoundedQueue<FillingBatch*> free_, begun_, finished_;
  std::vector<std::unique_ptr<FillingBatch>> pool_;  // lives as long as any worker may write into it
  mutable std::mutex mutex_;                         // of what follows and of the batches' names, errors and open slots
  std::condition_variable filled_;
  std::exception_ptr failure_, source_failure_;
  bool failed_ = false;
  std::array<StageCounters, 4> counters_;
};

Pipeline::Pipeline(std::vector<Type> rows, const PipelineOptions& options, PipelineStages stages)
    : run_(std::make_unique<Run>(std::move(rows), options, std::move(stages))) {}

Pipeline::~Pipeline() = default;

void Pipeline::run(const std::atomic<bool>& stop) { (*run_)(stop); }

std::vector<StageCounters> Pipeline::counters() const { return run_->counters(); }

}  // namespace tutti
