// keras.callbacks.ReduceLROnPlateau.
#pragma once

#include "tutti/base/json.h"
#include "tutti/run/monitor.h"

namespace tutti {

class ReduceOnPlateau {
 public:
  // `options` is a table of the constructor's arguments. Throws InvalidArgument for others.
  explicit ReduceOnPlateau(const Json& options);

  const std::string& monitor() const { return monitor_.column(); }
  void learn(bool rises) { monitor_.learn(rises); }  // what is monitored
  // The learning rate from here on.
  float after_epoch(double value, float rate);
  // What it remembers, for a checkpoint.
  Json memory() const;
  void remember(const Json& memory);

 private:
  explicit ReduceOnPlateau(const keras::Config& config);
  Monitor monitor_;
  double factor_, least_;
  int64_t patience_, cooldown_;
  std::optional<double> best_;
  int64_t wait_ = 0, cooling_ = 0;
};

}  // namespace tutti
