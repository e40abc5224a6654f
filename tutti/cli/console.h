// What a verb says: results on stdout, everything else on stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/stopwatch.h"

namespace tutti::cli {

class Console {
 public:
  bool json = false, quiet = false, verbose = false;

  void print(std::string_view text);    // results; throws when stdout cannot be written
  void flush();                         // the same
  void error(std::string_view text);    // tutti: error: ...
  void warning(std::string_view text);  // tutti: warning: ..., unless quiet
  void tell(std::string_view text);     // tutti: ..., unless quiet
  void note(std::string_view text);     // tutti: ..., if verbose
  void summary(std::string_view text);  // the same, on a terminal too unless quiet
};

// A bar on stderr while something long goes on; nothing where stderr is no terminal.
class Progress {
 public:
  Progress(const Console& console, std::string what, std::optional<int64_t> total);
  ~Progress() { clear(); }
  void clear();                                           // the line, for one that is to stay
  void update(int64_t done, std::string_view note = {});  // the note stands at the end of the bar

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  std::optional<int64_t> total_;
  bool shown_;
  Clock::time_point begin_ = Clock::now(), last_ = begin_;
  bool drawn_ = false;
};

// Columns as wide as their widest cell, two spaces between; `right` names the columns of numbers. The first row is the heading.
std::string format_table(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right);

// Whether the locale's text is UTF-8: LC_ALL, LC_CTYPE or LANG, the first that is set.
bool has_utf8();

std::string grouped(int64_t number);     // 1,234,567
std::string human_bytes(int64_t bytes);  // 4.2 MB
std::string human_count(double count);   // 1.2 G
std::string three_digits(double value);  // 0.123, 1.23, 12.3, 123, 1234

}  // namespace tutti::cli
