#include "tutti/keras/support.h"

#include <fmt/format.h>

#include "tutti/keras/layer.h"

namespace tutti::keras {

namespace {

constexpr std::string_view introduction = R"(# Keras support

Written by `build/keras_support` from the layer table; a test keeps it so. The reference is Keras 3.15, and tf-keras 2.21 for the files of Keras 2.

- **same**: options with which the outputs are Keras's own, |difference| ≤ 1e-5 + 1e-4·|value|, compared live in `./x test`.
- **refused**: the file is not run, and the error names the layer and the option. An option that stands in neither column is refused too, unless it is null.

`name`, `trainable`, `dtype` (plain and mixed policies), `seed`, initializers, regularizers and constraints go without saying. All layers exist in both file formats as far as Keras
itself writes and reads them. `training=True` in a call changes nothing in files of Keras 3, because `predict` overrides it; in files of Keras 2 a layer that would draw
random numbers is refused. A batch size that a file fixes binds nobody: the shapes that `Reshape`, `BroadcastTo` and `Slice` are given follow the batch that runs.
)";

// "a b c" -> "`a` `b` `c`"
std::string as_code(std::string_view list) {
  std::string out;
  for (std::string_view word : words(list)) out += fmt::format("{}`{}`", out.empty() ? "" : " ", word);
  return out;
}

std::string layer_line(const LayerRow& row) {
  if (row.function == nullptr) return fmt::format("| {} | refused | {} |\n", row.name, row.note);
  std::string options = row.options == "*" ? "all options" : as_code(row.options);
  return fmt::format("| {} | {} | {} |\n", row.name, options.empty() ? "same" : "same: " + options, row.note);
}

}  // namespace

std::string support_document() {
  std::string out(introduction);
  for (const auto& family : layer_families()) {
    if (family.rows.empty()) continue;
    out += fmt::format("\n## {}\n\n| layer | result | refused, notes |\n|---|---|---|\n", family.group);
    for (const auto& row : family.rows) out += layer_line(row);
  }
  out += "\n# Operations\n\nOf `keras.ops`, and arithmetic and slicing of tensors, inside Functional models.\n";
  for (const auto& family : operation_families()) {
    if (family.rows.empty()) continue;
    out += fmt::format("\n## {}\n\n", family.group);
    std::string names, notes;
    for (const auto& row : family.rows) {
      if (row.function != nullptr) names += fmt::format("{}`{}`", names.empty() ? "" : " ", row.name);
      if (row.function == nullptr) notes += fmt::format("- `{}` is refused: {}\n", row.name, row.note);
      if (row.function != nullptr && !row.note.empty()) notes += fmt::format("- `{}`: {}\n", row.name, row.note);
    }
    out += names + "\n" + (notes.empty() ? "" : "\n" + notes);
  }
  return out;
}

}  // namespace tutti::keras
