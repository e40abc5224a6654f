// Training as it goes on, in a terminal: a line of totals and a table of jobs, drawn over again in place. Of many jobs the best and the
// worst are shown, so that it fits a screen.
#pragma once

#include "tutti/cli/console.h"
#include "tutti/run/fit.h"

namespace tutti::cli {

// What is drawn, without colours and cursor movements. `width`: of the terminal.
std::string fit_table(const FitProgress& progress, size_t width);

class FitTable {
 public:
  explicit FitTable(const Console& console);  // draws only where stderr is a terminal
  ~FitTable() { clear(); }
  bool is_shown() const { return shown_; }
  void update(const FitProgress& progress);
  void clear();  // for a line that is to stay

 private:
  bool shown_;
  size_t lines_ = 0;  // on the screen now
};

}  // namespace tutti::cli
