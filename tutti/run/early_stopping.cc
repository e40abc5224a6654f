#include "tutti/run/early_stopping.h"

namespace tutti {

EarlyStopping::EarlyStopping(const Json& options)
    : EarlyStopping(read_callback(options, "early_stopping",
                                  "monitor min_delta(,) patience{,} mode baseline(,) restore_best_weights start_from_epoch{,} verbose")
                        .config()) {}

EarlyStopping::EarlyStopping(const keras::Config& config)
    : monitor_(config, 0),
      patience_(config.integer("patience", 0)),
      start_(config.integer("start_from_epoch", 0)),
      restores_best_(config.flag("restore_best_weights", false)) {
  if (config.has("baseline")) baseline_ = config.number("baseline");
}

Json EarlyStopping::memory() const { return JsonList{best_ ? Json(*best_) : Json(), seen_, wait_}; }

void EarlyStopping::remember(const Json& memory) {
  best_.reset();
  if (!memory[0].is_null()) best_ = memory[0].as_number();
  seen_ = memory[1].as_bool();
  wait_ = memory[2].as_int();
}

EarlyStopping::Verdict EarlyStopping::after_epoch(int64_t epoch, double value) {
  if (epoch < start_) return {};
  Verdict out;
  out.best = !seen_;  // the first are the best until better ones come
  seen_ = true;
  ++wait_;
  if (monitor_.improves(value, best_)) {
    best_ = value;
    out.best = true;
    if (monitor_.improves(value, baseline_)) wait_ = 0;
    return out;
  }
  out.stop = wait_ >= patience_ && epoch > 0;
  return out;
}

}  // namespace tutti
