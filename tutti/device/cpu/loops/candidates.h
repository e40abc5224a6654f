// Everything that is no contraction, as candidates of the device.
#pragma once

#include "tutti/device/cpu/candidate.h"

namespace tutti::cpu {

// Softmax, log-softmax and norms from their pieces.
std::optional<Step> match_row_kernel(const Selection& selection, int32_t node, std::string& reason);
// reduce_window over axes before the channels, and its gradient.
std::optional<Step> match_pool(const Selection& selection, int32_t node, std::string& reason);
// reduce of floats.
std::optional<Step> match_reduction(const Selection& selection, int32_t node, std::string& reason);
// Gathers of whole rows of a table, and scatters that add to them.
std::optional<Step> match_table_rows(const Selection& selection, int32_t node, std::string& reason);
// Elementwise nodes around this one that share an iteration space and hand their results to nobody else.
std::optional<Step> match_loop(const Selection& selection, int32_t node, std::string& reason);
// Nodes that only place elements: concatenate, transpose, and what loops do not read where it lies.
std::optional<Step> match_copy(const Selection& selection, int32_t node, std::string& reason);

}  // namespace tutti::cpu
