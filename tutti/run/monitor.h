// What a callback of Keras watches: a column of the history, and whether it is to fall or to rise.
#pragma once

#include <optional>
#include <string>

#include "tutti/keras/fit/named.h"

namespace tutti {

// A callback as a job writes it: a table of its constructor's arguments. Throws InvalidArgument for other things and other arguments.
keras::Named read_callback(const Json& options, std::string name, std::string_view arguments);

class Monitor {
 public:
  // The arguments `monitor`, `mode` and `min_delta`. Throws InvalidArgument for a mode that is none.
  Monitor(const keras::Config& config, double min_delta);

  const std::string& column() const { return column_; }
  // What is known of the metric behind the column, where the mode is auto.
  void learn(bool rises) {
    if (is_automatic_) rises_ = rises;
  }
  // Better than the reference by more than min_delta; than none, always.
  bool improves(double value, std::optional<double> reference) const;

 private:
  std::string column_;
  double min_delta_;
  bool is_automatic_, rises_;
};

}  // namespace tutti
