// What the library promises to many threads; the thread sanitizer watches.
#include <gtest/gtest.h>

#include <thread>

#include "tutti/tutti.h"

namespace tutti {
namespace {

std::vector<float> pattern(int64_t count, int seed) {
  std::vector<float> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>((i * 31 + static_cast<size_t>(seed) * 17) % 101) / 101;
  return out;
}

TEST(threads, contexts_of_one_program_predict_at_the_same_time) {
  CompiledModel predict = compile(load(TUTTI_TEST_DATA "/docs_demo/spots.keras"), {.threads = 1});
  const int64_t in = predict.input_types()[0].shape.elements(), out = predict.output_types()[0].shape.elements();
  constexpr int workers = 4, rounds = 20;
  std::vector<std::vector<float>> expected;
  for (int w = 0; w < workers; ++w) {
    expected.emplace_back(static_cast<size_t>(out));
    predict(pattern(in, w), expected.back());
  }
  std::vector<CompiledModel> contexts;
  for (int w = 0; w < workers; ++w) contexts.push_back(predict.context());
  std::vector<int> wrong(workers);
  {
    std::vector<std::jthread> threads;
    for (int w = 0; w < workers; ++w)
      threads.emplace_back([&, w] {
        std::vector<float> input = pattern(in, w), got(static_cast<size_t>(out));
        for (int round = 0; round < rounds; ++round) {
          contexts[static_cast<size_t>(w)](input, got);
          wrong[static_cast<size_t>(w)] += got != expected[static_cast<size_t>(w)];
        }
      });
  }
  EXPECT_EQ(wrong, std::vector<int>(workers));
}

TEST(threads, models_are_loaded_and_compiled_at_the_same_time) {
  Model shared = load(TUTTI_TEST_DATA "/docs_demo/spots.keras");
  std::vector<std::vector<float>> results(4);
  {
    std::vector<std::jthread> threads;
    for (size_t w = 0; w < results.size(); ++w)
      threads.emplace_back([&, w] {
        CompiledModel predict = compile(w % 2 == 0 ? shared : load(TUTTI_TEST_DATA "/docs_demo/spots.h5"), {.threads = 1});
        results[w].resize(static_cast<size_t>(predict.output_types()[0].shape.elements()));
        predict(pattern(predict.input_types()[0].shape.elements(), 1), results[w]);
      });
  }
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

}  // namespace
}  // namespace tutti
