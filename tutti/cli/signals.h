// Ctrl-C and friends: what is finished is kept, what is half-written disappears.
#pragma once

#include <atomic>

namespace tutti::cli {

// From now on SIGINT, SIGTERM and SIGHUP end the process with 128 + their number, whatever it is doing, its unfinished outputs removed.
// Called before any other thread exists.
void end_cleanly_on_signals();

// While one lives, the first signal only sets its flag, so that what is finished can be kept; the next one ends the process.
class GentleStop {
 public:
  GentleStop();
  ~GentleStop();
  GentleStop(const GentleStop&) = delete;
  GentleStop& operator=(const GentleStop&) = delete;
  const std::atomic<bool>& asked() const;
  int exit_code() const;  // once asked
};

}  // namespace tutti::cli
