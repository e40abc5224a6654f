#include "tutti/run/monitor.h"

#include <cmath>

#include "tutti/base/error.h"

namespace tutti {

namespace {

// Of what is no metric: losses fall.
bool rises_by_itself(const std::string& column) { return !column.ends_with("loss"); }

}  // namespace

keras::Named read_callback(const Json& options, std::string name, std::string_view arguments) {
  if (!options.is_object()) fail<InvalidArgument>("fit", "{} is a table of its arguments; got {}", name, escape(options.dump(), 60));
  keras::Named out{"callback", std::move(name), options};
  keras::check_arguments(out, arguments);
  return out;
}

Monitor::Monitor(const keras::Config& config, double min_delta)
    : column_(config.text("monitor", "val_loss")), min_delta_(std::fabs(config.number("min_delta", min_delta))) {
  const std::string mode = config.text("mode", "auto");
  if (mode != "auto" && mode != "min" && mode != "max")
    fail<InvalidArgument>("fit", "{}: 'mode' is auto, min or max; got '{}'", config.where(), escape(mode));
  is_automatic_ = mode == "auto";
  rises_ = is_automatic_ ? rises_by_itself(column_) : mode == "max";
}

bool Monitor::improves(double value, std::optional<double> reference) const {
  if (!reference) return true;
  // In float32, as Keras compares: by how much accuracies differ is often min_delta itself.
  const auto now = static_cast<float>(static_cast<double>(static_cast<float>(value)) + (rises_ ? -min_delta_ : min_delta_));
  const auto before = static_cast<float>(*reference);
  return rises_ ? now > before : now < before;
}

}  // namespace tutti
