// The program of a forecast: windows of a scaled series in; every member's forecast, their mean and their quantiles out. A member that
// predicts fewer steps than are asked for is rolled forward on its own predictions, on the device, in one scan.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tutti/keras/any_model.h"

namespace tutti {

// A model that reads a window, [batch, lags, columns] or flat [batch, lags * columns], and predicts the target's next steps, [batch, steps]
// ([batch] and [batch, steps, 1] as well).
struct WindowModel {
  std::string name;  // for messages
  std::shared_ptr<const keras::AnyModel> model;
  double weight = 1;  // in the mean
  int64_t lags = 0, columns = 1;
  int64_t steps = 1;  // that it predicts at once
  bool flat = false;
  Shape input_shape(int64_t batch) const { return flat ? Shape{batch, lags * columns} : Shape{batch, lags, columns}; }
};

// `lags` 0: as many as the model says itself. Throws InvalidArgument when the model is none of the kind.
WindowModel window_model(std::string name, std::shared_ptr<const keras::AnyModel> model, int64_t lags, int64_t columns);

struct ForecastShape {
  int64_t batch = 1, lags = 1, columns = 1, horizon = 1;
  std::vector<double> quantiles = {};
  bool ignore_nan = false;  // among the members; else a NaN is the result
};

// Inputs: windows f32 [batch, lags, columns], the target being column 0; where there are features and a member rolls, their future, f32
// [batch, horizon, columns - 1]. Outputs, f32: members [member, batch, horizon], mean [batch, horizon], and if there are any quantiles
// [quantile, batch, horizon]. A member with fewer lags reads the last ones. `trace` tells arrange() where the members are.
Graph forecast_graph(const std::vector<WindowModel>& members, const ForecastShape& shape, std::vector<keras::LayerTrace>* trace = nullptr);

}  // namespace tutti
