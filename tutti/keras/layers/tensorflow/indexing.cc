// Parts of tensors, by place and by index.
#include <algorithm>

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

// input_, begin, end, strides, and masks with a bit for each of their entries: begin_mask and end_mask leave a bound open, ellipsis_mask is
// "...", new_axis_mask a new axis, shrink_axis_mask one index
Outputs strided_slice(Call& c) {
  Value x = tensor(c);
  const Ints begin = integers(c, argument(c, "begin")), end = integers(c, argument(c, "end"));
  const Argument* given = find(c, "strides");
  const Ints strides = given == nullptr ? Ints(begin.size(), 1) : integers(c, *given);
  if (end.size() != begin.size() || strides.size() != begin.size())
    c.config.invalid("'begin', 'end' and 'strides' are of one length; got {}, {} and {}", to_string(begin), to_string(end),
                     to_string(strides));
  const int64_t open_begin = integer(c, "begin_mask", 0), open_end = integer(c, "end_mask", 0), ellipses = integer(c, "ellipsis_mask", 0),
                added = integer(c, "new_axis_mask", 0), single = integer(c, "shrink_axis_mask", 0);
  const auto has = [](int64_t mask, size_t i) { return i < 63 && (mask >> i & 1) != 0; };
  const auto uses_axis = [&](size_t i) { return !has(ellipses, i) && !has(added, i); };
  int64_t used = 0, at = 0;
  for (size_t i = 0; i < begin.size(); ++i) used += uses_axis(i) ? 1 : 0;
  if (used > x.rank()) c.config.invalid("{} indices for {}", used, to_string(x.shape()));
  for (size_t i = 0; i < begin.size(); ++i) {
    if (has(ellipses, i)) {
      at = x.rank();
      for (size_t behind = i + 1; behind < begin.size(); ++behind) at -= uses_axis(behind) ? 1 : 0;
    } else if (has(added, i)) {
      x = expand_dims(x, {at++});
    } else if (has(single, i)) {
      x = index_axis(x, at, begin[i]);
    } else {
      if (strides[i] == 0) c.config.invalid("'strides' are not 0; got {}", to_string(strides));
      x = slice_axis(x, at++, has(open_begin, i) ? std::nullopt : std::optional(begin[i]),
                     has(open_end, i) ? std::nullopt : std::optional(end[i]), strides[i]);
    }
  }
  return x;
}

// The elements of x along an axis that indices name; the first `same` axes of both are the same, and stay.
Value gathered(Call& c, Value x, Value indices, int64_t along, int64_t same) {
  if (same == 0) return take(x, indices, along);
  const Ints &from = x.shape().extents(), &of = indices.shape().extents();
  if (along < same || !std::equal(of.begin(), of.begin() + same, from.begin()))
    c.config.invalid("'batch_dims' is {}, but {} and {} do not begin alike up to axis {}", same, to_string(from), to_string(of), along);
  // Every index stands for itself at all places of the axes that it does not have: [same..., between..., indices, behind...].
  Ints plain(of.begin(), of.begin() + same), wide(from.begin(), from.begin() + along), out = wide;
  const int64_t count = Shape(Ints(of.begin() + same, of.end())).elements();
  plain.resize(static_cast<size_t>(along), 1);
  plain.push_back(count);
  plain.resize(from.size(), 1);
  wide.push_back(count);
  wide.insert(wide.end(), from.begin() + along + 1, from.end());
  out.insert(out.end(), of.begin() + same, of.end());
  out.insert(out.end(), from.begin() + along + 1, from.end());
  return reshape(take_along_axis(x, broadcast_to(reshape(indices, plain), wide), along), out);
}
// params, indices, axis, batch_dims
Outputs gather_along(Call& c) {
  Value x = tensor(c), indices = tensor(c, "indices");
  const int64_t same = integer(c, "batch_dims", 0);
  if (same < 0 || same > indices.rank())
    c.config.unsupported("tf.gather with batch_dims={} of indices {}", same, to_string(indices.shape()));
  return gathered(c, x, indices, axis(c, x.rank(), "axis", same), same);
}
Outputs embedding_lookup(Call& c) {
  find(c, "partition_strategy");  // of several tables
  return take(tensor(c), tensor(c, "ids"), 0);
}

// params, indices [..., k], batch_dims: each row of indices names a place on k axes
Outputs gather_places(Call& c) {
  Value x = tensor(c), indices = tensor(c, "indices");
  const int64_t same = integer(c, "batch_dims", 0);
  find(c, "bad_indices_policy");
  if (same < 0 || same >= indices.rank() || same > x.rank() || indices.extent(-1) > x.rank() - same)
    c.config.invalid("indices {} do not name places of {} with batch_dims={}", to_string(indices.shape()), to_string(x.shape()), same);
  const int64_t axes = indices.extent(-1);
  // The axes as one, and a place outside of any of them outside of it.
  Ints flat(x.shape().extents().begin(), x.shape().extents().begin() + same + axes);
  const int64_t places = Shape(Ints(flat.begin() + same, flat.end())).elements();
  flat.resize(static_cast<size_t>(same));
  flat.push_back(places);
  for (int64_t i = same + axes; i < x.rank(); ++i) flat.push_back(x.extent(i));
  indices = convert(indices, DType::i64);
  Ints rows = indices.shape().extents();
  rows.pop_back();
  Value place = full(c.graph, {DType::i64, rows}, 0), inside = full(c.graph, {DType::boolean, rows}, 1);
  for (int64_t i = 0; i < axes; ++i) {
    const auto extent = static_cast<double>(x.extent(same + i));
    Value index = index_axis(indices, -1, i);
    place = place * extent + index;
    inside = logical_and(inside, logical_and(compare(index, 0, Direction::GE), compare(index, extent, Direction::LT)));
  }
  return gathered(c, reshape(x, flat), select(inside, place, full_like(place, static_cast<double>(places))), same, same);
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
      {"__operators__.getitem", get_item},       {"gather", gather_along}, {"gather_nd", gather_places},
      {"nn.embedding_lookup", embedding_lookup}, {"slice", slice_tensor},  {"strided_slice", strided_slice},
  };
  return functions;
}

}  // namespace tutti::keras::tf
