// The roofs of the processor, measured: how many multiply-adds, and how many bytes read a second.
#pragma once

#include "tutti/device/device.h"

namespace tutti::cpu {

// With so many threads at once, in about a tenth of a second. The best of many short tries: what the machine can do, not what it does while
// others use it too.
Speed measure_speed(int threads);

}  // namespace tutti::cpu
