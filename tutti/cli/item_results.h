// Predictions of items on stdout, for people and for programs.
#pragma once

#include <memory>
#include <vector>

#include "tutti/cli/console.h"
#include "tutti/data/item_writer.h"

namespace tutti::cli {

// A table of the first items, a few values or the labels of each, which commit() prints; or with --json {"predictions": [{"path", ...},
// ...], left open for what the verb has to add, members that begin with ", ". Items that are not `named` have numbers instead of paths.
std::unique_ptr<ItemWriter> shown_results(Console& console, std::vector<ArraySpec> arrays, std::shared_ptr<const TopLabels> labels,
                                          bool named);

}  // namespace tutti::cli
