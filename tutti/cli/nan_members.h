// What `tutti predict` says of members that gave NaN, in an ensemble that ignores them.
#pragma once

#include "tutti/run/ensemble.h"

namespace tutti::cli {

class Console;

class NanMembers {
 public:
  explicit NanMembers(const keras::AnyModel& model);
  bool any() const { return !names_.empty(); }  // to take
  // Takes the last output away and counts it; does nothing for other models.
  void take(std::vector<Tensor>& outputs);
  // A warning with the members and how often.
  void report(Console& console) const;

 private:
  std::vector<std::string> names_;  // of members; none: nothing to take
  std::vector<int64_t> samples_;    // by member
  int64_t all_ = 0;
};

}  // namespace tutti::cli
