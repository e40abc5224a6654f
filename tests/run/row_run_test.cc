// Rows that the threads of the device read and write themselves.
#include <gtest/gtest.h>

#include <thread>

#include "tutti/base/error.h"
#include "tutti/keras/fit/build.h"
#include "tutti/run/row_run.h"

namespace tutti {
namespace {

struct Table {
  std::shared_ptr<const keras::Model> net = std::make_shared<const keras::Model>(keras::build("dense 24 relu; dense 7 softmax", {5}, 1));
  std::vector<Type> rows{{DType::f32, {5}}};
  Tensor x, expected;
  explicit Table(int64_t count) : x(DType::f32, {count, 5}) {
    auto values = x.as<float>();
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i * 37) % 19) / 19 - 0.5f;
    expected = BatchPredictor(net, {.batch = 1, .device = "cpu"}).predict({x})[0];
  }
  void fetch(int64_t first, int64_t count, Slots slots) const {
    std::ranges::copy(x.bytes().subspan(static_cast<size_t>(first * 20), static_cast<size_t>(count * 20)), slots[0].begin());
  }
};

TEST(row_run, rows_come_in_order_whatever_the_threads_do) {
  const Table table(1000);
  for (const int threads : {1, 3})
    for (const int64_t batch : {32, 37}) {  // whose rows are aligned in memory, and whose are not
      BatchPredictor predictor(table.net, {.batch = 1 << 20, .device = "cpu", .threads = threads});
      std::vector<std::byte> found;
      std::atomic<int64_t> calls = 0;
      RowRun run(predictor, table.rows, batch, 8,
                 {.fetch =
                      [&](int64_t first, int64_t count, Slots slots) {
                        if (++calls % 5 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
                        table.fetch(first, count, slots);
                      },
                  .write =
                      [&](int64_t count, std::span<const std::span<const std::byte>> outputs) {
                        ASSERT_EQ(outputs[0].size(), static_cast<size_t>(count) * 28);
                        found.insert(found.end(), outputs[0].begin(), outputs[0].end());
                      }});
      const std::atomic<bool> stop = false;
      EXPECT_EQ(run.run(0, 600, stop), 600);
      EXPECT_EQ(run.run(600, 400, stop), 400);
      ASSERT_TRUE(std::ranges::equal(found, table.expected.bytes())) << threads << " threads, " << batch << " at a time";
      const auto counters = run.counters();
      ASSERT_EQ(counters.size(), 3u);
      EXPECT_EQ(counters[0].items, 1000);
      EXPECT_EQ(counters[1].items, (600 + batch - 1) / batch + (400 + batch - 1) / batch);
      for (const StageCounters& stage : counters) EXPECT_GT(stage.busy, 0) << stage.name;
    }
}

TEST(row_run, of_rows_that_fail_only_a_beginning_is_written) {
  constexpr int64_t rows = 60'000;
  const Table table(rows);
  for (const bool reading : {true, false}) {
    BatchPredictor predictor(table.net, {.batch = 1 << 20, .device = "cpu", .threads = 2});
    std::vector<std::byte> found;
    RowRun run(predictor, table.rows, 32, 20,
               {.fetch =
                    [&](int64_t first, int64_t count, Slots slots) {
                      if (reading && first >= rows / 2) throw InvalidArgument("test", "no more rows");
                      table.fetch(first, count, slots);
                    },
                .write =
                    [&](int64_t, std::span<const std::span<const std::byte>> outputs) {
                      if (!reading && !found.empty()) throw InvalidArgument("test", "no more room");
                      found.insert(found.end(), outputs[0].begin(), outputs[0].end());
                    }});
    const std::atomic<bool> stop = false;
    EXPECT_THROW(run.run(0, rows, stop), InvalidArgument);
    ASSERT_LT(found.size(), table.expected.bytes().size());
    ASSERT_TRUE(std::ranges::equal(found, table.expected.bytes().first(found.size())));
    EXPECT_GT(found.size(), 0u);
  }
}

TEST(row_run, what_was_begun_is_finished_when_it_is_stopped) {
  const Table table(10'000);
  BatchPredictor predictor(table.net, {.batch = 1 << 20, .device = "cpu", .threads = 3});
  std::vector<std::byte> found;
  std::atomic<bool> stop = false;
  RowRun run(predictor, table.rows, 32, 6,
             {.fetch =
                  [&](int64_t first, int64_t count, Slots slots) {
                    if (first >= 3000) stop = true;
                    table.fetch(first, count, slots);
                  },
              .write =
                  [&](int64_t, std::span<const std::span<const std::byte>> outputs) {
                    std::this_thread::sleep_for(std::chrono::microseconds(100));  // the others wait for a place
                    found.insert(found.end(), outputs[0].begin(), outputs[0].end());
                  }});
  const int64_t written = run.run(0, 10'000, stop);
  EXPECT_GT(written, 3000);
  EXPECT_LT(written, 10'000);
  ASSERT_EQ(found.size(), static_cast<size_t>(written) * 28);
  EXPECT_TRUE(std::ranges::equal(found, table.expected.bytes().first(found.size())));
}

}  // namespace
}  // namespace tutti
