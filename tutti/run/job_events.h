// The event file of a job's folder.
#pragma once

#include <filesystem>

#include "tutti/base/stopwatch.h"
#include "tutti/data/event_file.h"
#include "tutti/run/trainer.h"

namespace tutti {

// What TensorBoard shows of a job while it runs.
class JobEvents {
 public:
  explicit JobEvents(std::string folder) : folder_(std::move(folder)), file_(folder_ + "/events.out.tfevents.tutti") {}

  // Epochs that ended since the last call.
  void update(const Trainer& trainer) {
    if (folder_.empty()) return;
    const auto& history = trainer.history();
    if (shown_ == history.size()) return;
    for (; shown_ < history.size(); ++shown_) file_.add(static_cast<int64_t>(shown_), trainer.columns(), history[shown_]);
    if (written_.seconds() < seconds_between_events && !trainer.is_done()) return;
    make_folder(folder_);
    file_.flush();
    written_ = {};
  }

 private:
  static constexpr double seconds_between_events = 2;  // writing costs more than an epoch of a small job
  std::string folder_;
  EventFile file_;
  size_t shown_ = 0;
  Stopwatch written_;
};

}  // namespace tutti
