// Every layer of the table with every option set to values that no Keras would write: it lowers to a sound graph or is refused with an
// Error, and quickly. The sanitizer rings see the rest.
#include <gtest/gtest.h>

#include <ctime>
#include <set>

#include "tutti/base/error.h"
#include "tutti/keras/lower.h"

namespace tutti::keras {
namespace {

// Something valid for the options that layers require; the cell and the layer of wrappers included.
Json ordinary_options() {
  return Json::parse(R"({
    "units": 3, "filters": 4, "kernel_size": 2, "pool_size": 2, "output_size": 2, "input_dim": 5, "output_dim": 3, "target_shape": [-1],
    "dims": [2, 1], "n": 2, "axes": 1, "activation": "relu", "equation": "...x,xy->...y", "output_shape": [3], "num_heads": 2, "key_dim": 3,
    "head_dim": 2, "num_query_heads": 2, "num_key_value_heads": 1, "rate": 0.1, "stddev": 0.1, "alpha": 0.2, "groups": 1, "scale": 2,
    "height": 3, "width": 3, "num_tokens": 5, "bin_boundaries": [0.0, 1.0], "factor": 0.1, "max_tokens": 5, "vocabulary": [1, 2], "size": 2, "fft_length": 16,
    "sequence_stride": 4, "frame_length": 8, "frame_step": 4,
    "layer": {"class_name": "Dense", "config": {"name": "inner", "units": 3}},
    "cell": {"class_name": "LSTMCell", "config": {"name": "inner", "units": 3}},
    "cells": [{"class_name": "GRUCell", "config": {"name": "inner", "units": 3}}]
  })");
}

std::vector<Json> hostile_values() {
  std::vector<Json> out;
  for (const char* text : {"null",
                           "true",
                           "0",
                           "-1",
                           "-2",
                           "7",
                           "1000000",
                           "4611686018427387904",
                           "9223372036854775807",
                           "-9223372036854775808",
                           "0.5",
                           "-0.5",
                           "1e300",
                           "-1e300",
                           "NaN",
                           "Infinity",
                           "\"\"",
                           "\"same\"",
                           "\"channels_first\"",
                           "\"no such thing\"",
                           "[]",
                           "[0]",
                           "[-1]",
                           "[1, 1]",
                           "[0, 0]",
                           "[-5, 9]",
                           "[[1, 1], [1, 1]]",
                           "[[-1, 9], [0]]",
                           "[9223372036854775807, 9223372036854775807]",
                           "[-9223372036854775808, 1]",
                           "[1, 2, 3, 4, 5, 6, 7, 8, 9]",
                           "[null]",
                           "[\"a\", 1]",
                           "{}",
                           "{\"class_name\": \"Dense\"}",
                           "{\"class_name\": \"Dense\", \"config\": {\"units\": -1}}",
                           "{\"class_name\": \"function\", \"config\": \"relu\"}",
                           "{\"class_name\": \"DTypePolicy\", \"config\": {\"name\": \"int4/0_from_float32\"}}"})
    out.push_back(Json::parse(text));
  return out;
}

// Lowers one layer on inputs of a shape; what is refused is fine, what breaks is not.
void lower_layer(const LayerRow& row, const Json& config, const Shape& shape, size_t inputs, int keras_major) {
  Graph graph;
  FileFacts file;
  file.keras_major = keras_major;
  Lowering lowering(graph, file);
  Scope scope;
  std::vector<Argument> tensors;
  for (size_t i = 0; i < inputs; ++i)
    tensors.emplace_back(Signal{graph.input("x" + std::to_string(i), {DType::f32, shape}),
                                shape.rank() > 1 ? graph.input("m" + std::to_string(i), {DType::boolean, {shape[0], shape[1]}}) : Value{}});
  Arguments arguments;
  arguments.positional.push_back(inputs == 1 ? tensors[0] : Argument(tensors));
  Json layer = Json::object();
  layer.set("class_name", std::string(row.name));
  layer.set("config", config);
  try {
    Outputs outputs = lowering.run(layer, scope, arguments);
    for (size_t i = 0; i < outputs.signals.size(); ++i) graph.output("y" + std::to_string(i), outputs.signals[i].value);
    verify(graph);
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {
  }
}

class HostileConfigs : public testing::TestWithParam<const LayerRow*> {};

TEST_P(HostileConfigs, are_lowered_or_refused) {
  const LayerRow& row = *GetParam();
  const Json ordinary = ordinary_options();
  auto options = words(row.options);
  Json base = Json::object();
  for (const auto& key : options)
    if (const Json* value = ordinary.find(key)) base.set(std::string(key), *value);
  options.emplace_back("dtype");
  struct Inputs {
    Shape shape;
    size_t count;
  };
  const Inputs all[] = {{{}, 1},        {{2}, 1},       {{2, 4}, 1},       {{2, 4}, 2},         {{2, 0}, 1},
                        {{2, 4, 3}, 1}, {{2, 4, 3}, 2}, {{2, 4, 4, 3}, 1}, {{2, 4, 4, 4, 3}, 1}};
  const auto values = hostile_values();
  for (const auto& [shape, count] : all)
    for (const auto& key : options)
      for (const Json& value : values) {
        Json config = base;
        config.set(std::string(key), value);
        SCOPED_TRACE(config.dump());
        std::clock_t start = std::clock();  // of this process: the machine may be busy
        ASSERT_NO_THROW(lower_layer(row, config, shape, count, value.is_int() && value.as_int() % 2 != 0 ? 2 : 3));
        ASSERT_LT(std::clock() - start, 2 * CLOCKS_PER_SEC);
      }
}

// One of each: other names of a layer are rows of the same function.
std::vector<const LayerRow*> different_rows() {
  std::vector<const LayerRow*> out;
  std::set<std::pair<LayerFunction, std::string_view>> seen;
  for (const auto& family : layer_families())
    for (const auto& row : family.rows)
      if (row.function != nullptr && seen.emplace(row.function, row.options).second) out.push_back(&row);
  return out;
}

INSTANTIATE_TEST_SUITE_P(layers, HostileConfigs, testing::ValuesIn(different_rows()),
                         [](const auto& p) { return std::string(p.param->name); });

}  // namespace
}  // namespace tutti::keras
