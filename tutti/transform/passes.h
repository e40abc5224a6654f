// The passes: each a function from graph to graph, in a file of its own name. All of them also work on the bodies of scans, and keep the
// inputs, outputs and states as they are. "Exact" means: the same values to the last bit on a device that rounds each op, NaN, infinities
// and the sign of zero included.
#pragma once

#include "tutti/transform/evaluate.h"
#include "tutti/transform/pass.h"

namespace tutti {

// Exact. Drops nodes that no output or update needs; of scans also carries, slices and stacked results.
Graph remove_dead(const Graph& graph);

// Exact. Makes one node of those with the same op, attributes, operands and body; equal constants become one.
Graph share_common(const Graph& graph);

// Exact but for power(x, 2), which becomes x * x. Local rules by op: simplify_arithmetic.cc, simplify_movement.cc,
// simplify_contractions.cc.
Graph simplify(const Graph& graph);

// Exact. Moves out of the bodies of scans what is the same at every step, and products of slices with such values: one large product before
// the loop instead of a small one in each step.
Graph hoist_from_scans(const Graph& graph);

// Exact. Constants and weights that a scan passes to its body whole become constants of the body, which a device can prepare before the
// run.
Graph move_weights_into_scans(const Graph& graph);

// Not exact: rounds the scaled weights instead of the scaled results. Multiplies scales along channels into the constant kernels of the
// convolution or dot_general before or behind them and joins shifts, which is what batch normalization is made of.
Graph fold_scales(const Graph& graph);

// Not exact: adds matrices instead of products. A sum of products of one value with several constant matrices becomes one product, as in
// the mean of linear models.
Graph sum_products(const Graph& graph);

// Exact, but a max-pool of padded values that are not negative may give the other zero. Zeros padded before a convolution, and padding that
// cannot win before a max-pool, become their own padding.
Graph fold_padding(const Graph& graph);

// Exact. Replaces what is computed from constants and weights alone by its value, unless that is much larger than what it is computed from.
Graph fold_constants(const Graph& graph, const Evaluate& evaluate, FoldMemo& memo);

// Exact. The other way round: a product that only a scan reads, slice by slice, is made by its body, where a step reads less so. For
// devices that write every value to memory between their loops; not in the list below, which would undo it.
Graph sink_into_scans(const Graph& graph);

// Exact where the kernel is finite. A convolution over an input with zeros between its pixels, a transposed one or the gradient of one with
// strides, becomes one over the input itself for each remainder of a result's place: nothing is multiplied with those zeros. For devices
// that do not do so themselves; what it makes of kernels should be folded, and what was folded into them before stays.
Graph split_dilated(const Graph& graph);
bool has_dilated(const Graph& graph);  // that it would split

// All of them but the last two in the order in which they help each other. `memo` outlives the list.
std::vector<Pass> inference_passes(Evaluate evaluate, FoldMemo& memo);

}  // namespace tutti
