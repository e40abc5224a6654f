// What the files of a case hold, for its tests: arrays, facts, the model.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tutti/base/file.h"
#include "tutti/base/json.h"
#include "tutti/data/npz.h"
#include "tutti/keras/model.h"

namespace tutti {

inline Json read_json(const std::string& file) {
  const auto bytes = read_all(*open_file(file), 1 << 20);
  return Json::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// PREFIX0, PREFIX1, ...
inline std::vector<Tensor> numbered_arrays(const NpzReader& file, const std::string& prefix) {
  std::vector<Tensor> out;
  const auto has = [&](const std::string& name) { return std::find(file.names().begin(), file.names().end(), name) != file.names().end(); };
  for (std::string name; has(name = prefix + std::to_string(out.size()));) out.push_back(file.open(name).all());
  return out;
}

// The same model with floats a little off, for each number in another way.
inline keras::Model with_other_weights(const std::string& file, int number = 1) {
  keras::Model model = keras::load(file);
  for (keras::Variable* variable : model.variables().flatten()) {
    if (variable->value.empty() || variable->value.dtype() != DType::f32) continue;
    Tensor other(variable->type);
    std::transform(variable->value.as<float>().begin(), variable->value.as<float>().end(), other.as<float>().begin(),
                   [&](float x) { return (1 - 0.1f * static_cast<float>(number)) * x + 0.01f; });
    variable->value = std::move(other);
  }
  return model;
}

}  // namespace tutti
