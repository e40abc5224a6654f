// Rows of a table by their numbers, along its first axis or the one behind that of stacked tables: a gather, as an Embedding does, and the
// scatter that adds to them, its gradient. The reference kernels take any block of any array, element by element and on one thread.
#pragma once

#include "tutti/device/cpu/candidate.h"

namespace tutti::cpu {

std::optional<Step> match_table_rows(const Selection& selection, int32_t node, std::string& reason);

}  // namespace tutti::cpu
