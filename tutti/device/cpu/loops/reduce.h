// Reductions of floats: over rows (the last axis) and over columns (an axis before the last), and any reduce node as a sequence of these.
// Sums go through several accumulators and short blocks, so that a million terms keep the precision of a float.
#pragma once

#include <string_view>

#include "tutti/device/kernel.h"

namespace tutti::cpu {

enum class Reduce { add, multiply, max, min };
// Of a node's attribute.
Reduce reduce_kind(std::string_view kind);

// x: [rows, length] -> [rows]
void reduce_rows(Reduce kind, const float* x, int64_t rows, int64_t length, float* to, int threads = 1);
// x: [outer, length, columns] -> [outer, columns]
void reduce_columns(Reduce kind, const float* x, int64_t outer, int64_t length, int64_t columns, float* to, int threads = 1);

// The kernel of a reduce node of floats.
Kernel make_reduction(const Graph& graph, const Node& node, int threads);

}  // namespace tutti::cpu
