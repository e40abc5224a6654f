#include "tutti/keras/any_model.h"

#include <fmt/format.h>

namespace tutti::keras {

void AnyModel::refuse_problems() const {
  if (problems().empty()) return;
  fail<Unsupported>("model", "{} problem{}: {}", problems().size(), problems().size() == 1 ? "" : "s", fmt::join(problems(), "; "));
}

std::vector<Type> AnyModel::input_types(const LowerOptions& options, std::optional<int64_t> unknown_extent) const {
  if (options.batch < 0) fail<InvalidArgument>("model", "a batch is not negative; got {}", options.batch);
  if (!options.input_shapes.empty() && options.input_shapes.size() != inputs().size())
    fail<InvalidArgument>("model", "{} inputs need as many shapes; got {}", inputs().size(), options.input_shapes.size());
  std::vector<Type> out;
  for (size_t i = 0; i < inputs().size(); ++i) {
    const ModelInput& input = inputs()[i];
    Ints extents = input.shape;
    extents[0] = options.batch;
    const Shape* given = options.input_shapes.empty() ? nullptr : &options.input_shapes[i];
    if (given != nullptr && given->rank() != static_cast<int64_t>(extents.size()))
      fail<InvalidArgument>("model", "input '{}' is {} (-1: any); got {}", input.name, to_string(input.shape), to_string(*given));
    for (size_t axis = 1; axis < extents.size(); ++axis) {
      if (given != nullptr && extents[axis] >= 0 && (*given)[static_cast<int64_t>(axis)] != extents[axis])
        fail<InvalidArgument>("model", "input '{}' is {} (-1: any); got {}", input.name, to_string(input.shape), to_string(*given));
      if (extents[axis] >= 0) continue;
      if (given == nullptr && !unknown_extent)
        fail<InvalidArgument>("model", "input '{}' is {}, so its shape must be given", input.name, to_string(input.shape));
      extents[axis] = given != nullptr ? (*given)[static_cast<int64_t>(axis)] : *unknown_extent;
    }
    out.push_back({input.dtype, extents});
  }
  return out;
}

}  // namespace tutti::keras
