// Parts of tensors: indexing and tf.slice.
#include "tutti/graph/compose.h"
#include "tutti/keras/layers/tensorflow/arguments.h"

namespace tutti::keras::tf {

namespace {

std::optional<int64_t> bound(Call& c, const Argument& range, const char* name) {
  for (size_t i = 0; i < range.keys.size(); ++i)
    if (range.keys[i] == name && !range.items[i].is_null()) {
      Ints found = integers(c, range.items[i]);
      if (found.size() != 1) c.config.invalid("'{}' of a slice is one integer", name);
      return found[0];
    }
  return {};
}

// "Ellipsis" in old files, an object of its own kind in newer ones.
bool is_ellipsis(const Argument& index) {
  if (index.kind != Argument::Kind::constant) return false;
  const Json* kind = index.constant.is_object() ? index.constant.find("class_name") : nullptr;
  return index.constant == Json("Ellipsis") || (kind != nullptr && *kind == Json("__ellipsis__"));
}
bool is_new_axis(const Argument& index) { return index.is_null(); }

// x[slice_spec]: integers, slices, "Ellipsis", null for a new axis, or a tensor of one index.
Outputs get_item(Call& c) {
  Value x = tensor(c);
  const Argument* spec = c.arguments.given(1, "slice_spec");
  if (spec == nullptr) c.config.invalid("slice_spec is missing");
  std::vector<Argument> indices = spec->kind == Argument::Kind::list ? spec->items : std::vector<Argument>{*spec};
  int64_t used = 0, at = 0;
  for (const Argument& index : indices) used += is_ellipsis(index) || is_new_axis(index) ? 0 : 1;
  if (used > x.rank()) c.config.invalid("{} indices for {}", used, to_string(x.shape()));
  bool ellipsis = false;
  for (const Argument& index : indices) {
    if (is_ellipsis(index)) {
      if (ellipsis) c.config.invalid("two ellipses");
      ellipsis = true;
      // Everything that the other indices leave.
      int64_t behind = 0;
      for (const Argument* rest = &index + 1; rest != indices.data() + indices.size(); ++rest) behind += is_new_axis(*rest) ? 0 : 1;
      at = x.rank() - behind;
    } else if (is_new_axis(index)) {
      x = expand_dims(x, {at++});
    } else if (index.kind == Argument::Kind::object) {
      x = slice_axis(x, at++, bound(c, index, "start"), bound(c, index, "stop"), bound(c, index, "step").value_or(1));
    } else if (index.kind == Argument::Kind::tensor && !constant_integers(index.tensor.value)) {
      Value position = index.tensor.value;
      if (position.rank() != 0) c.config.unsupported("an array of indices");
      x = take(x, position, at);
    } else {
      Ints position = integers(c, index);
      if (position.size() != 1) c.config.unsupported("a list of indices");
      x = index_axis(x, at, position[0]);
    }
  }
  return x;
}

// input_, begin, size; -1: up to the end
Outputs slice_tensor(Call& c) {
  Value x = tensor(c);
  const Ints begin = integers(c, argument(c, "begin")), size = integers(c, argument(c, "size"));
  for (const Ints& given : {begin, size})
    if (static_cast<int64_t>(given.size()) != x.rank())
      c.config.invalid("{} has {} axes; got {}", to_string(x.shape()), x.rank(), to_string(given));
  for (size_t i = 0; i < begin.size(); ++i) {
    const auto along = static_cast<int64_t>(i);
    const int64_t extent = x.extent(along), length = size[i] == -1 ? extent - begin[i] : size[i];
    if (begin[i] < 0 || begin[i] > extent || length < 0 || length > extent - begin[i])
      c.config.invalid("{} elements from {} on are outside of {}", size[i], begin[i], to_string(x.shape()));
    x = slice_axis(x, along, begin[i], begin[i] + length);
  }
  return x;
}

}  // namespace

std::span<const Function> index_functions() {
  static const Function functions[] = {
      {"__operators__.getitem", get_item},
      {"slice", slice_tensor},
  };
  return functions;
}

}  // namespace tutti::keras::tf
