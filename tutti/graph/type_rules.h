// The type rules that rows of the op table name; see op_list.h.
#pragma once

#include "tutti/graph/op.h"

namespace tutti::type_rules {

using Rule = std::vector<Type>(const Signature&);

Rule declared, same, numeric, floating, bits, integral, predicate, converted, bitcast, selected;
Rule broadcasted, reshaped, transposed, sliced, padded, concatenated, reversed, dynamically_sliced, dynamically_updated, gathered,
    scattered, sorted;
Rule randomized, summed_by_all;
Rule reduced, windowed, selected_and_scattered, dotted, convolved, scanned;

}  // namespace tutti::type_rules
