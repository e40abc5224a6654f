#include "tutti/run/weight_pool.h"

#include <gtest/gtest.h>

#include "tests/device/random_data.h"

namespace tutti {
namespace {

keras::Model dense_model() {
  return keras::from_config(
      Json::parse(R"({"class_name": "Sequential", "module": "keras", "registered_name": null, "config": {"name": "s", "layers": [
    {"class_name": "InputLayer", "module": "keras.layers", "config": {"batch_shape": [null, 3], "dtype": "float32", "name": "x"}},
    {"class_name": "Dense", "module": "keras.layers", "config": {"name": "d", "units": 2, "activation": "linear", "use_bias": true}}]}})"),
      "3.15.1");
}

keras::Model with_values(unsigned kernel, unsigned bias) {
  keras::Model model = dense_model();
  auto variables = model.variables().flatten();
  variables[0]->value = random_tensor(variables[0]->type, kernel);
  variables[1]->value = random_tensor(variables[1]->type, bias);
  return model;
}

TEST(weight_pool, weights_of_models_alike_lie_side_by_side_and_equal_ones_are_shared) {
  WeightPool pool(4);
  std::vector<keras::Model> models;
  for (unsigned m = 0; m < 4; ++m) models.push_back(with_values(m, 9));
  for (const keras::Model& model : models) pool.add(model);
  std::vector<Tensor> kernels;
  for (unsigned m = 0; m < 4; ++m) {
    const auto variables = models[m].variables().flatten();
    kernels.push_back(variables[0]->value);
    const Tensor expected = random_tensor(variables[0]->type, m);
    EXPECT_TRUE(std::equal(expected.bytes().begin(), expected.bytes().end(), kernels.back().bytes().begin()));
    EXPECT_EQ(variables[1]->value.bytes().data(), models[0].variables().flatten()[1]->value.bytes().data());
  }
  EXPECT_EQ(Tensor::stacked(kernels).bytes().data(), kernels[0].bytes().data());
}

TEST(weight_pool, weights_that_differ_late_move_together) {
  WeightPool pool(3);
  std::vector<keras::Model> models;
  for (unsigned m = 0; m < 3; ++m) models.push_back(with_values(1, m < 2 ? 5 : 6));
  for (const keras::Model& model : models) pool.add(model);
  std::vector<Tensor> biases;
  for (const keras::Model& model : models) biases.push_back(model.variables().flatten()[1]->value);
  EXPECT_EQ(Tensor::stacked(biases).bytes().data(), biases[0].bytes().data());
  const Tensor last = random_tensor(biases[2].type(), 6);
  EXPECT_TRUE(std::equal(last.bytes().begin(), last.bytes().end(), biases[2].bytes().begin()));
}

}  // namespace
}  // namespace tutti
