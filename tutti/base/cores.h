// On which core a thread begins. Some schedulers, those of small virtual machines above all, leave a new thread on the core of the thread
// that made it for tens of milliseconds, even where that one never rests: as long as many small models need to train.
#pragma once

#include <cstddef>

namespace tutti {

int this_core();  // where the calling thread is at the moment; -1 where that cannot be told

// Moves the calling thread to the i-th core behind this one of those that it may use, from where the system may take it elsewhere later.
void begin_beside(int core, size_t i);

}  // namespace tutti
