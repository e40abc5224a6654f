#include "tutti/run/pipeline.h"

#include <mutex>
#include <thread>

#include "tests/scratch.h"
#include "tutti/base/error.h"
#include "tutti/run/bounded_queue.h"

namespace tutti {
namespace {

// Items "0", "1", ...; each becomes its number, the device adds one half.
class Numbers : public ItemSource {
 public:
  explicit Numbers(int64_t count) : count_(count) {}
  Next next(Item& item, std::chrono::milliseconds) override {
    if (at_ == breaks_at) fail<InvalidArgument>("input", "the source broke");
    if (at_ == count_) return Next::end;
    if (at_ == pauses_at && std::chrono::steady_clock::now() - begin_ < std::chrono::milliseconds(300)) return Next::none_yet;
    item.name = std::to_string(at_++);
    return Next::item;
  }
  int64_t given() const { return at_; }
  int64_t breaks_at = -1, pauses_at = -1;

 private:
  std::atomic<int64_t> at_ = 0;
  int64_t count_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

struct Made {
  std::vector<std::string> names, errors;
  std::vector<float> rows;
  std::vector<size_t> batches;
};

void become(const Item& item, Slots slots) { *reinterpret_cast<float*>(slots[0].data()) = std::stof(item.name); }

PipelineResults add_half(const std::vector<Tensor>& samples) {
  Tensor out(samples[0].type());
  for (size_t i = 0; i < out.as<float>().size(); ++i) out.as<float>()[i] = samples[0].as<float>()[i] + 0.5F;
  return [out] { return std::vector<Tensor>{out}; };
}

PipelineStages stages_into(Made& made, ItemSource& source) {
  return {&source, become, add_half, [&made](const FinishedBatch& batch) {
            made.names.insert(made.names.end(), batch.names.begin(), batch.names.end());
            made.errors.insert(made.errors.end(), batch.errors.begin(), batch.errors.end());
            auto rows = batch.outputs[0].as<float>();
            made.rows.insert(made.rows.end(), rows.begin(), rows.end());
            made.batches.push_back(batch.names.size());
          }};
}

void run(const PipelineOptions& options, PipelineStages stages) {
  const std::atomic<bool> never = false;
  Pipeline({{DType::f32, {1}}}, options, std::move(stages)).run(never);
}

void expect_counting(const Made& made, int64_t count) {
  ASSERT_EQ(made.names.size(), static_cast<size_t>(count));
  for (size_t i = 0; i < made.names.size(); ++i) {
    ASSERT_EQ(made.names[i], std::to_string(i));
    ASSERT_EQ(made.rows[i], static_cast<float>(i) + 0.5F);
  }
}

TEST(pipeline, gives_every_item_once_in_order_whatever_the_workers_do) {
  for (int64_t workers : {1, 2, 8})
    for (int64_t queue : {1, 3, 64})
      for (int64_t batch : {1, 4, 32})
        for (int64_t count : {0, 1, 4, 101}) {
          Made made;
          Numbers source(count);
          auto stages = stages_into(made, source);
          stages.prepare = [](const Item& item, Slots slots) {
            if (item.name.ends_with('3')) std::this_thread::sleep_for(std::chrono::microseconds(200));
            become(item, slots);
          };
          run({.batch = batch, .workers = workers, .queue = queue}, stages);
          expect_counting(made, count);
        }
}

TEST(pipeline, a_failed_item_takes_only_its_own_row) {
  Made made;
  Numbers source(50);
  auto stages = stages_into(made, source);
  stages.prepare = [](const Item& item, Slots slots) {
    become(item, slots);
    if (item.name == "7") fail<InvalidArgument>("image", "is broken");
    if (item.name == "8") throw 8;
    if (item.name == "49") throw std::bad_alloc();
  };
  run({.batch = 4, .workers = 3, .queue = 2}, stages);
  ASSERT_EQ(made.errors.size(), 50);
  EXPECT_EQ(made.errors[7], "[image] is broken");
  EXPECT_EQ(made.rows[7], 0.5F) << "a failed item's slot is zero";
  EXPECT_PRED2(contains, made.errors[8], "unknown");
  EXPECT_PRED2(contains, made.errors[49], "memory");
  EXPECT_EQ(std::count(made.errors.begin(), made.errors.end(), ""), 47);
  EXPECT_EQ(made.rows[9], 9.5F);
}

TEST(pipeline, what_is_on_its_way_is_bounded_behind_a_slow_writer) {
  Made made;
  Numbers source(400);
  auto stages = stages_into(made, source);
  int64_t most = 0;
  stages.write = [&, write = stages.write](const FinishedBatch& batch) {
    most = std::max(most, source.given() - static_cast<int64_t>(made.names.size()));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    write(batch);
  };
  run({.batch = 4, .workers = 2, .queue = 8}, stages);
  expect_counting(made, 400);
  // Three batches fill, one more is being written, and the source holds one item.
  EXPECT_LE(most, 4 * 4 + 1);
  EXPECT_GE(most, 4);
}

TEST(pipeline, failures_of_device_and_writer_end_it_and_are_thrown) {
  for (const std::string stage : {"compute", "write"}) {
    Made made;
    Numbers source(1000);
    auto stages = stages_into(made, source);
    int calls = 0;
    const auto fail_later = [&] {
      if (++calls == 3) fail<DeviceError>(stage, "lost");
    };
    if (stage == "compute")
      stages.compute = [&](const std::vector<Tensor>& samples) { return fail_later(), add_half(samples); };
    else
      stages.write = [&, write = stages.write](const FinishedBatch& batch) { fail_later(), write(batch); };
    EXPECT_EQ(message_of<DeviceError>([&] { run({.batch = 4, .workers = 2, .queue = 1}, stages); }), "[" + stage + "] lost");
    EXPECT_LE(made.names.size(), 8);
    expect_counting(made, static_cast<int64_t>(made.names.size()));
  }
}

TEST(pipeline, what_came_before_a_source_broke_is_written) {
  Made made;
  Numbers source(100);
  source.breaks_at = 37;
  EXPECT_PRED2(contains, message_of<InvalidArgument>([&] { run({.batch = 8}, stages_into(made, source)); }), "the source broke");
  expect_counting(made, 37);
}

TEST(pipeline, stop_finishes_what_is_begun) {
  Made made;
  Numbers source(1'000'000'000);
  std::atomic<bool> stop = false;
  auto stages = stages_into(made, source);
  stages.write = [&, write = stages.write](const FinishedBatch& batch) {
    write(batch);
    if (made.names.size() > 50) stop = true;
  };
  Pipeline pipeline({{DType::f32, {1}}}, {.batch = 4, .workers = 2, .queue = 8}, stages);
  pipeline.run(stop);
  EXPECT_GT(made.names.size(), 50);
  EXPECT_LT(made.names.size(), 200);
  expect_counting(made, source.given());
  const auto counters = pipeline.counters();
  ASSERT_EQ(counters.size(), 4);
  EXPECT_EQ(counters[1].name, "workers");
  EXPECT_EQ(counters[1].items, source.given());
  EXPECT_EQ(counters[0].items, source.given());
  EXPECT_EQ(counters[3].items, static_cast<int64_t>(made.batches.size()));
  EXPECT_LE(counters[1].deepest, counters[1].queue);
}

TEST(pipeline, a_batch_does_not_wait_for_a_slow_source) {
  Made made;
  Numbers source(10);
  source.pauses_at = 6;
  run({.batch = 32, .workers = 1, .queue = 64, .max_wait = std::chrono::milliseconds(20)}, stages_into(made, source));
  expect_counting(made, 10);
  EXPECT_EQ(made.batches, (std::vector<size_t>{6, 4}));
}

TEST(pipeline, a_batch_that_waits_for_workers_is_filled) {
  Made made;
  Numbers source(12);
  auto stages = stages_into(made, source);
  stages.prepare = [](const Item& item, Slots slots) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    become(item, slots);
  };
  run({.batch = 4, .workers = 1, .queue = 1, .max_wait = std::chrono::milliseconds(0)}, stages);
  EXPECT_EQ(made.batches, (std::vector<size_t>{4, 4, 4}));
}

// Rows 0, 1, ... of a table, in pieces of 1, 2, 3, 1, 2, ... rows.
class Ranges : public ItemSource {
 public:
  explicit Ranges(int64_t rows) : rows_(rows) {}
  Next next(Item& item, std::chrono::milliseconds) override {
    if (at_ == rows_) return Next::end;
    item = {.name = "", .first = at_, .samples = std::min(rows_ - at_, piece_)};
    at_ += item.samples;
    piece_ = piece_ % 3 + 1;
    return Next::item;
  }

 private:
  int64_t rows_, at_ = 0, piece_ = 1;
};

TEST(pipeline, items_may_be_several_samples_of_several_inputs) {
  Ranges source(100);
  std::vector<float> sums;
  std::vector<int64_t> sizes;
  const PipelineStages stages{
      .source = &source,
      .prepare =
          [](const Item& item, Slots slots) {
            ASSERT_EQ(slots[0].size(), static_cast<size_t>(item.samples) * sizeof(float));
            ASSERT_EQ(slots[1].size(), static_cast<size_t>(item.samples) * 2 * sizeof(int32_t));
            for (int64_t i = 0; i < item.samples; ++i) {
              reinterpret_cast<float*>(slots[0].data())[i] = 0.5F;
              reinterpret_cast<int32_t*>(slots[1].data())[2 * i] = static_cast<int32_t>(item.first + i);
              reinterpret_cast<int32_t*>(slots[1].data())[2 * i + 1] = 1000;
            }
          },
      .compute =
          [](const std::vector<Tensor>& samples) {
            Tensor out(samples[0].type());
            for (size_t i = 0; i < out.as<float>().size(); ++i)
              out.as<float>()[i] =
                  samples[0].as<float>()[i] + static_cast<float>(samples[1].as<int32_t>()[2 * i] + samples[1].as<int32_t>()[2 * i + 1]);
            return [out] { return std::vector<Tensor>{out}; };
          },
      .write =
          [&](const FinishedBatch& batch) {
            auto rows = batch.outputs[0].as<float>();
            ASSERT_EQ(batch.samples, static_cast<int64_t>(rows.size()));
            sums.insert(sums.end(), rows.begin(), rows.end());
            sizes.push_back(batch.samples);
          },
  };
  const std::atomic<bool> never = false;
  Pipeline pipeline({{DType::f32, {}}, {DType::i32, {2}}}, {.batch = 4, .workers = 3, .queue = 5}, stages);
  pipeline.run(never);
  ASSERT_EQ(sums.size(), 100);
  for (size_t i = 0; i < sums.size(); ++i) ASSERT_EQ(sums[i], static_cast<float>(i) + 1000.5F);
  EXPECT_EQ(sizes[0], 3) << "1 and 2 samples; 3 more would be too many";
  EXPECT_EQ(pipeline.counters()[1].items, 100);
}

TEST(pipeline, a_batch_may_be_begun_before_the_results_of_the_last_one_are_asked_for) {
  Made made;
  Numbers source(40);
  auto stages = stages_into(made, source);
  int begun = 0, most = 0;
  stages.compute = [&](const std::vector<Tensor>& samples) -> PipelineResults {
    most = std::max(most, ++begun);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the next batch is filled meanwhile
    return [&, results = add_half(samples)] {
      --begun;
      return results();
    };
  };
  for (const bool ahead : {false, true}) {
    made = {};
    Numbers again(40);
    stages.source = &again;
    run({.batch = 4, .workers = 2, .queue = 16, .ahead = ahead}, stages);
    expect_counting(made, 40);
    EXPECT_EQ(begun, 0);
    EXPECT_EQ(most, ahead ? 2 : 1);
  }
}

TEST(pipeline, an_item_larger_than_a_batch_is_refused) {
  Ranges source(100);
  PipelineStages stages;
  stages.source = &source;
  stages.prepare = [](const Item&, Slots) {};
  stages.compute = [](const std::vector<Tensor>& samples) { return [samples] { return samples; }; };
  stages.write = [](const FinishedBatch&) {};
  EXPECT_PRED2(contains, message_of<InvalidArgument>([&] { run({.batch = 2}, stages); }), "1 to 2 samples");
}

TEST(bounded_queue, closed_gives_what_is_in_it_and_takes_no_more) {
  BoundedQueue<int> queue(2);
  EXPECT_TRUE(queue.push(1));
  EXPECT_TRUE(queue.push(2));
  std::thread waits([&] { EXPECT_FALSE(queue.push(3)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  queue.close();
  waits.join();
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.pop(), 2);
  EXPECT_EQ(queue.pop(), std::nullopt);
  EXPECT_EQ(queue.deepest(), 2);
}

}  // namespace
}  // namespace tutti
