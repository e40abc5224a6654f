// Parts of a program that do not need each other, as the members of an ensemble, run side by side: each on one thread from its beginning to
// its end, so that what it makes stays in that core's cache and nobody waits between kernels.
#pragma once

#include "tutti/device/cpu/candidate.h"

namespace tutti::cpu {

// The parts as one step, where that is faster than one kernel after another on all threads.
std::optional<Step> match_branches(const Selection& selection);

}  // namespace tutti::cpu
