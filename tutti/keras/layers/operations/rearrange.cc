// keras.ops.rearrange: axes by a pattern of names, "b (h w) c -> b h w c".
#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"
#include "tutti/keras/layers/operations/rows.h"

namespace tutti::keras {

namespace {

using Names = std::vector<std::string>;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

// One side of the pattern: each axis is a group of names, most of them one.
std::vector<Names> read_side(const Config& config, std::string_view text) {
  std::vector<Names> groups;
  bool open = false;
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '(' && !open) {
      groups.emplace_back();
      open = true;
      ++i;
    } else if (text[i] == ')' && open) {
      open = false;
      ++i;
    } else if (is_letter(text[i])) {
      size_t end = i;
      while (end < text.size() && is_letter(text[end])) ++end;
      if (!open) groups.emplace_back();
      groups.back().emplace_back(text.substr(i, end - i));
      i = end;
    } else if (text[i] == ' ') {
      ++i;
    } else {
      config.invalid("pattern '{}' is names and groups in parentheses", escape(text, 80));
    }
  }
  if (open) config.invalid("pattern '{}' has an open parenthesis", escape(text, 80));
  return groups;
}

Names joined(const std::vector<Names>& groups) {
  Names out;
  for (const Names& group : groups) out.insert(out.end(), group.begin(), group.end());
  return out;
}

// The extents of a group's names, one of which may be left to be found.
void split_axis(Call& c, const Names& group, int64_t extent, Ints& out) {
  int64_t known = 1, open = -1;
  for (const std::string& name : group) {
    const Argument* length = c.arguments.find(name);
    bool given = length != nullptr && length->kind == Argument::Kind::constant && length->constant.is_int();
    if (!given && group.size() > 1 && open >= 0) c.config.invalid("the length of '{}' is not known", escape(name, 40));
    int64_t size = given ? length->constant.as_int() : 1;
    if (size < 1 || size > extent) c.config.invalid("'{}' is between 1 and {}; got {}", escape(name, 40), extent, size);
    if (!given) open = static_cast<int64_t>(out.size());
    known *= size;
    if (known > extent) c.config.invalid("an axis of {} is not split into more than it has", extent);
    out.push_back(size);
  }
  if (open >= 0) {
    if (extent % known != 0) c.config.invalid("an axis of {} is not split into parts of {}", extent, known);
    out[static_cast<size_t>(open)] = extent / known;
  } else if (known != extent) {
    c.config.invalid("an axis of {} is not {}", extent, known);
  }
}

Outputs rearrange(Call& c) {
  Value x = array(c, "tensor");
  const Argument* given = c.arguments.find(1, "pattern");
  if (given == nullptr || given->kind != Argument::Kind::constant || !given->constant.is_string())
    c.config.invalid("is called without a pattern");
  std::string_view pattern = given->constant.as_string();
  size_t arrow = pattern.find("->");
  if (arrow == std::string_view::npos) c.config.invalid("pattern '{}' has no '->'", escape(pattern, 80));
  auto from = read_side(c.config, pattern.substr(0, arrow)), to = read_side(c.config, pattern.substr(arrow + 2));
  Names left = joined(from), right = joined(to);
  Names sorted_left = left, sorted_right = right;
  std::sort(sorted_left.begin(), sorted_left.end());
  std::sort(sorted_right.begin(), sorted_right.end());
  bool repeats = std::adjacent_find(sorted_left.begin(), sorted_left.end()) != sorted_left.end();
  if (static_cast<int64_t>(from.size()) != x.rank() || sorted_left != sorted_right || repeats)
    c.config.invalid("pattern '{}' does not fit {}", escape(pattern, 80), to_string(x.type()));
  Ints split, permutation, merged;
  for (size_t i = 0; i < from.size(); ++i) split_axis(c, from[i], x.extent(static_cast<int64_t>(i)), split);
  size_t next = 0;
  for (const Names& group : to) {
    int64_t extent = 1;
    for (size_t i = 0; i < group.size(); ++i) {
      permutation.push_back(std::find(left.begin(), left.end(), right[next++]) - left.begin());
      extent *= split[static_cast<size_t>(permutation.back())];
    }
    merged.push_back(extent);
  }
  return reshape(transpose(reshape(x, split), permutation), merged);
}

}  // namespace

Rows rearrange_operations() {
  static const LayerRow rows[] = {operation("Rearrange", rearrange)};
  return rows;
}

}  // namespace tutti::keras
