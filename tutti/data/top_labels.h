// The most likely classes of a row, by name.
#pragma once

#include <string>
#include <vector>

#include "tutti/data/rows.h"

namespace tutti {

class TopLabels {
 public:
  // Names from a file, a line a class; without a file they are the classes' numbers.
  TopLabels(const std::string& file, int64_t count);
  // Throws InvalidArgument unless there is one output, of one class a name.
  void check(const std::vector<ArraySpec>& arrays) const;
  int64_t count() const { return count_; }

  struct Ranked {
    std::string label;
    double score;
  };
  // Best first; of equals the first. NaN comes last.
  std::vector<Ranked> of(const Tensor& output, int64_t row) const;

 private:
  std::string file_;
  std::vector<std::string> names_;
  int64_t count_;
};

}  // namespace tutti
