#include "tutti/data/top_labels.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/base/file.h"

namespace tutti {

TopLabels::TopLabels(const std::string& file, int64_t count) : file_(file), count_(count) {
  if (file.empty()) return;
  const std::vector<std::byte> bytes = read_all(*open_file(file), 16 << 20);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    names_.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  while (!names_.empty() && names_.back().empty()) names_.pop_back();
}

void TopLabels::check(const std::vector<ArraySpec>& arrays) const {
  if (arrays.size() != 1 || arrays[0].row.rank() != 1)
    fail<InvalidArgument>("labels", "labels are for one output with a value a class; the model has {} outputs, the first one {} a sample",
                          arrays.size(), to_string(arrays.at(0).row));
  if (!file_.empty() && static_cast<int64_t>(names_.size()) != arrays[0].row[0])
    fail<InvalidArgument>("labels", "'{}' has {} lines; the output '{}' has {} classes", escape(file_), names_.size(), arrays[0].name,
                          arrays[0].row[0]);
}

std::vector<TopLabels::Ranked> TopLabels::of(const Tensor& output, int64_t row) const {
  const int64_t classes = output.shape()[1];
  std::vector<double> scores;
  dispatch(output.dtype(), [&](auto zero) {
    for (auto value : output.as<decltype(zero)>().subspan(static_cast<size_t>(row * classes), static_cast<size_t>(classes)))
      scores.push_back(static_cast<double>(value));
  });
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto shown = static_cast<size_t>(std::min(count_, classes));
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown), order.end(), [&](size_t a, size_t b) {
    const double left = std::isnan(scores[a]) ? -HUGE_VAL : scores[a], right = std::isnan(scores[b]) ? -HUGE_VAL : scores[b];
    return left != right ? left > right : a < b;
  });
  std::vector<Ranked> out;
  for (size_t i = 0; i < shown; ++i) out.push_back({names_.empty() ? std::to_string(order[i]) : names_[order[i]], scores[order[i]]});
  return out;
}

}  // namespace tutti
