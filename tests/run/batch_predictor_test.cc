// Any number of samples, whatever the sizes of the batches.
#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/keras/fit/build.h"
#include "tutti/keras/load.h"
#include "tutti/run/best_batch.h"

namespace tutti {
namespace {

const std::string folder = TUTTI_TEST_DATA "/cli_models/";

std::shared_ptr<const keras::Model> model(const std::string& name) {
  return std::make_shared<const keras::Model>(keras::load(folder + name));
}

Tensor samples(const keras::AnyModel& model, int64_t count) {
  Ints extents = model.inputs()[0].shape;
  extents[0] = count;
  Tensor out(DType::f32, extents);
  auto values = out.as<float>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i * 37) % 19) / 19 - 0.5f;
  return out;
}

std::vector<Type> rows_of(const keras::AnyModel& model) {
  const auto& input = model.inputs()[0];
  return {{input.dtype, Ints(input.shape.begin() + 1, input.shape.end())}};
}

TEST(batch_predictor, size_classes) {
  std::vector<int64_t> classes;
  for (int64_t count = 1; count <= 13; ++count) classes.push_back(size_class(count));
  EXPECT_EQ(classes, (std::vector<int64_t>{1, 2, 3, 4, 6, 6, 8, 8, 12, 12, 12, 12, 16}));
  EXPECT_EQ(size_class(37), 48);
  EXPECT_EQ(size_class(49), 64);
}

TEST(batch_predictor, any_sizes_need_few_programs_and_give_the_same_rows) {
  BatchPredictor predictor(model("dense.keras"), {.batch = 64, .device = "cpu"});
  const Tensor all = samples(predictor.model(), 64);
  const Tensor expected = predictor.predict({all})[0];
  const int64_t row = expected.elements() / 64, input_row = all.elements() / 64;
  for (int round = 0; round < 2; ++round) {
    for (int64_t count = 1; count <= 64; ++count) {
      Tensor some(DType::f32, {count, input_row});
      std::copy_n(all.as<float>().begin(), count * input_row, some.as<float>().begin());
      const Tensor got = predictor.predict({some})[0];
      ASSERT_EQ(got.shape()[0], count);
      for (int64_t i = 0; i < count * row; ++i)
        ASSERT_EQ(got.as<float>()[static_cast<size_t>(i)], expected.as<float>()[static_cast<size_t>(i)]) << count << " samples";
    }
    EXPECT_LE(predictor.compilations(), 16);
  }
}

TEST(batch_predictor, a_batch_that_would_leave_the_caches_is_computed_in_parts_and_gives_the_same_rows) {
  // Of one sample the first convolution makes nearly a megabyte.
  const auto net =
      std::make_shared<const keras::Model>(keras::build("conv2d 64 3 relu; max_pool 4; flatten; dense 5 softmax", {64, 64, 3}, 1));
  BatchPredictor alone(net, {.batch = 1, .device = "cpu", .threads = 1});
  struct Case {
    int64_t count;
    int threads;
    size_t batches;
  };
  for (const auto& [count, threads, batches] : {Case{9, 3, 9}, {4, 3, 1}, {8, 1, 8}, {64, 2, 64}, {1, 2, 1}}) {
    const Tensor x = samples(*net, count), expected = alone.predict({x})[0];
    BatchPredictor predictor(net, {.batch = 64, .device = "cpu", .threads = threads});
    PreparedPrediction prepared = predictor.prepare({x});
    EXPECT_EQ(prepared.batches(), batches) << count << " samples";
    EXPECT_EQ(prepared.is_side_by_side(), batches > 1 && threads > 1) << count << " samples";
    prepared.run();
    EXPECT_TRUE(std::ranges::equal(prepared.outputs()[0].bytes(), expected.bytes())) << count << " samples";
  }
}

TEST(batch_predictor, several_batches_are_computed_side_by_side_and_give_the_same_rows) {
  const auto net = std::make_shared<const keras::Model>(keras::build("dense 24 relu; dense 7 softmax", {5}, 1));
  BatchPredictor alone(net, {.batch = 1, .device = "cpu"}), predictor(net, {.batch = 1 << 20, .device = "cpu", .threads = 3});
  for (const int64_t batch : {32, 37}) {  // whose rows are aligned in memory, and whose are not
    const Tensor x = samples(*net, 11 * batch + 3), expected = alone.predict({x})[0];
    PreparedPrediction prepared = predictor.prepare({x}, batch);
    EXPECT_TRUE(prepared.is_side_by_side());
    for (int turn = 0; turn < 50; ++turn) {
      Tensor found = prepared.outputs()[0];
      std::ranges::fill(found.bytes(), std::byte{0xff});
      prepared.run();
      ASSERT_TRUE(std::ranges::equal(found.bytes(), expected.bytes())) << batch << " at a time, turn " << turn;
    }
  }
}

TEST(batch_predictor, few_samples_and_models_that_are_mostly_weights_are_computed_by_all_threads_together) {
  const auto small = std::make_shared<const keras::Model>(keras::build("dense 24 relu; dense 7 softmax", {5}, 1));
  BatchPredictor few(small, {.batch = 32, .device = "cpu", .threads = 2}), weights(small, {.batch = 2, .device = "cpu", .threads = 2}),
      reference(small, {.batch = 32, .device = "reference", .threads = 2});
  EXPECT_FALSE(few.prepare({samples(*small, 63)}).is_side_by_side());
  EXPECT_TRUE(few.prepare({samples(*small, 64)}).is_side_by_side());
  EXPECT_FALSE(weights.prepare({samples(*small, 64)}).is_side_by_side());
  const Tensor x = samples(*small, 70), got = reference.predict({x})[0], expected = few.predict({x})[0];
  for (size_t i = 0; i < got.as<float>().size(); ++i) ASSERT_NEAR(got.as<float>()[i], expected.as<float>()[i], 1e-6);
}

// Of a loop over time each thread has its own samples from the first step to the last.
TEST(batch_predictor, one_batch_of_a_recurrent_model_is_divided_between_the_threads) {
  const auto net = std::make_shared<const keras::Model>(keras::build("lstm 16; dense 3", {12, 4}, 1));
  BatchPredictor alone(net, {.batch = 1, .device = "cpu"}), two(net, {.batch = 64, .device = "cpu", .threads = 2}),
      one(net, {.batch = 64, .device = "cpu", .threads = 1});
  for (const int64_t count : {16, 33, 64}) {
    const Tensor x = samples(*net, count);
    PreparedPrediction prepared = two.prepare({x});
    prepared.run();
    EXPECT_TRUE(prepared.is_side_by_side());
    EXPECT_EQ(prepared.batches(), 2u);
    EXPECT_TRUE(std::ranges::equal(prepared.outputs()[0].bytes(), alone.predict({x})[0].bytes())) << count;
  }
  EXPECT_EQ(two.prepare({samples(*net, 15)}).batches(), 1u);
  EXPECT_EQ(one.prepare({samples(*net, 64)}).batches(), 1u);
}

TEST(batch_predictor, models_that_mix_samples_are_cut_where_keras_cuts_them) {
  BatchPredictor predictor(model("centred.keras"), {.batch = 64, .device = "cpu"}),
      exact(model("centred.keras"), {.batch = 4, .device = "cpu"});
  const Tensor x = samples(predictor.model(), 10);
  PreparedPrediction prepared = predictor.prepare({x}, 4);
  prepared.run();
  EXPECT_FALSE(prepared.is_side_by_side());
  EXPECT_TRUE(std::ranges::equal(prepared.outputs()[0].bytes(), exact.predict({x})[0].bytes()));
}

TEST(batch_predictor, the_first_sizes_get_programs_of_their_own) {
  BatchPredictor predictor(model("dense.keras"), {.batch = 32, .device = "cpu"});
  for (int64_t count : {37, 37, 5, 37}) predictor.predict({samples(predictor.model(), count)});
  EXPECT_EQ(predictor.compilations(), 2);  // 32 and 5: the rest of 37 and the batch of 5
}

TEST(batch_predictor, models_that_mix_samples_are_never_padded) {
  BatchPredictor predictor(model("batch_mean.keras"), {.batch = 64, .device = "cpu"}),
      fresh(model("batch_mean.keras"), {.batch = 64, .device = "reference"});
  for (int64_t count : {1, 2, 3, 5, 7, 9, 11, 13}) {
    const Tensor x = samples(predictor.model(), count), got = predictor.predict({x})[0], expected = fresh.predict({x})[0];
    ASSERT_EQ(got.shape(), expected.shape());
    for (size_t i = 0; i < got.as<float>().size(); ++i) ASSERT_NEAR(got.as<float>()[i], expected.as<float>()[i], 1e-6);
  }
  EXPECT_EQ(predictor.compilations(), 8);
}

TEST(batch_predictor, no_samples_give_empty_outputs) {
  BatchPredictor predictor(model("dense.keras"), {.batch = 8, .device = "cpu"});
  EXPECT_EQ(predictor.predict({samples(predictor.model(), 0)})[0].shape()[0], 0);
}

TEST(best_batch, small_models_get_larger_batches_than_in_keras) {
  BatchPredictor predictor(model("dense.keras"), {.batch = 1 << 20, .device = "cpu"});
  const auto rows = rows_of(predictor.model());
  const int64_t best = best_batch(predictor, rows, int64_t{1} << 40);  // however long a compilation takes, it is worth it
  EXPECT_GT(best, 32);
  EXPECT_LE(best_batch(predictor, rows, 1000), 250) << "several batches of what there is";
  EXPECT_EQ(best_batch(predictor, rows, 100), 32);
  const int64_t before = predictor.compilations();
  predictor.prepare(made_of(rows, 4 * best), best).run();
  EXPECT_EQ(predictor.compilations(), before) << "what was measured is kept";
}

TEST(best_batch, models_that_mix_samples_stay_as_in_keras) {
  BatchPredictor predictor(model("batch_mean.keras"), {.batch = 1 << 20, .device = "cpu"});
  EXPECT_EQ(best_batch(predictor, rows_of(predictor.model()), 10'000'000), 32);
}

TEST(best_batch, of_images_some_megabytes_are_enough_on_the_processor) {
  const auto net = std::make_shared<const keras::Model>(keras::build("flatten; dense 2", {224, 224, 3}, 1));
  BatchPredictor predictor(net, {.batch = 1 << 20, .device = "cpu"});
  EXPECT_EQ(best_batch(predictor, rows_of(*net), 1000), 16);
}

TEST(best_batch, large_samples_get_smaller_ones) {
  BatchPredictor predictor(model("dense.keras"), {.batch = 1 << 20, .device = "cpu"});
  EXPECT_EQ(best_batch(predictor, {{DType::f32, {1024, 1024, 4}}}, 1000), 3);
  EXPECT_EQ(best_batch(predictor, {{DType::f32, {1024, 1024, 64}}}, 1000), 1);
}

}  // namespace
}  // namespace tutti
