// How often a thread that never waits is stopped all the same: by the system's own work, by other programs, by the host of a virtual
// machine. It is the part of a latency that no program can help.
#pragma once

namespace tutti {

struct Pauses {
  double per_second = 0;
  double mean = 0;                                    // seconds of a pause
  double share() const { return per_second * mean; }  // of the time
};

// Looks at the clock for so long on the calling thread; what it does not see for two microseconds and more is a pause.
Pauses measure_pauses(double seconds);

}  // namespace tutti
