// A sample's results are its own: the same to the last bit alone and in any batch.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "tests/sanitized.h"
#include "tutti/tutti.h"

namespace tutti {
namespace {

// Samples that differ, for models of one float32 input whose extents are all known.
std::vector<Tensor> samples_for(const Model& model, int64_t count) {
  if (!model.problems().empty() || model.inputs().size() != 1 || model.inputs()[0].dtype != DType::f32) return {};
  Ints extents = model.inputs()[0].shape;
  if (extents.empty() || extents[0] != -1) return {};
  extents[0] = count;
  for (int64_t extent : extents)
    if (extent < 1) return {};
  Tensor x(DType::f32, Shape(extents));
  std::span<float> values = x.as<float>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i * 7919) % 1009) / 504 - 1;
  return {x};
}

TEST(batch, a_sample_gives_the_same_bits_alone_and_among_others) {
  constexpr uintmax_t largest = sanitized ? 500'000 : 24'000'000;  // bytes: the smaller networks do the same as the larger ones
  int compared = 0;
  for (const char* family :
       {"convolution", "core", "forecasting", "long_applications", "nesting", "pooling", "recurrent", "transformers"}) {
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(TUTTI_TEST_DATA "/keras_cases") / family)) {
      const auto file = entry.path() / "model.keras";
      if (!std::filesystem::exists(file) || std::filesystem::file_size(file) > largest) continue;
      const Model model = load(file.string());
      const std::vector<Tensor> x = samples_for(model, 5);
      if (x.empty()) continue;
      const std::vector<Tensor> alone = model.predict(x, 1), three = model.predict(x, 3), all = model.predict(x, 5);
      ++compared;
      for (size_t i = 0; i < alone.size(); ++i) {
        const auto want = alone[i].bytes();
        EXPECT_EQ(std::memcmp(want.data(), three[i].bytes().data(), want.size()), 0) << file << ", output " << i << ", batches of 3";
        EXPECT_EQ(std::memcmp(want.data(), all[i].bytes().data(), want.size()), 0) << file << ", output " << i << ", a batch of 5";
      }
    }
  }
  EXPECT_GT(compared, 200);
}

}  // namespace
}  // namespace tutti
