// keras.callbacks.EarlyStopping.
#pragma once

#include "tutti/base/json.h"
#include "tutti/run/monitor.h"

namespace tutti {

class EarlyStopping {
 public:
  // `options` is a table of the constructor's arguments. Throws InvalidArgument for others.
  explicit EarlyStopping(const Json& options);

  const std::string& monitor() const { return monitor_.column(); }
  void learn(bool rises) { monitor_.learn(rises); }  // what is monitored
  bool restores_best() const { return restores_best_; }
  struct Verdict {
    bool stop = false;
    bool best = false;  // the weights of this epoch are the best so far
  };
  Verdict after_epoch(int64_t epoch, double value);
  // What it remembers, for a checkpoint.
  Json memory() const;
  void remember(const Json& memory);

 private:
  explicit EarlyStopping(const keras::Config& config);
  Monitor monitor_;
  int64_t patience_, start_;
  bool restores_best_;
  std::optional<double> baseline_, best_;
  bool seen_ = false;
  int64_t wait_ = 0;
};

}  // namespace tutti
