#include "tutti/cli/console.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "tutti/base/error.h"
#include "tutti/base/utf8.h"

namespace tutti::cli {

namespace {

bool has_color() {
  const char *no_color = std::getenv("NO_COLOR"), *terminal = std::getenv("TERM");
  bool refused = no_color != nullptr && *no_color != '\0';
  return !refused && terminal != nullptr && std::string_view(terminal) != "dumb" && ::isatty(STDERR_FILENO) == 1;
}

void say(std::string_view kind, std::string_view color, std::string_view text) {
  std::string line = "tutti: ";
  if (!kind.empty()) line += has_color() ? fmt::format("\x1b[{}m{}:\x1b[0m ", color, kind) : fmt::format("{}: ", kind);
  line += text;
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

// Characters, as a terminal shows them one cell each.
size_t width(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); ++count) at += std::max<size_t>(utf8_length(text, at), 1);
  return count;
}

// Where stdin, stdout or stderr is closed, its number is taken by what cannot be read or written either: else it would be that of the next
// output, and what is said would stand in there. Before main, as libraries open things of their own before it.
[[gnu::constructor(101)]] void hold_closed_streams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0) ::open("/", O_PATH);  // the least number that is free
}

[[noreturn]] void stdout_failed() {
  fail<InvalidArgument>("output", "cannot write to stdout: {}", std::error_code(errno, std::generic_category()).message());
}

}  // namespace

void Console::print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) stdout_failed();
}

void Console::flush() {
  if (std::fflush(stdout) != 0) stdout_failed();
}

void Console::error(std::string_view text) { say("error", "31;1", text); }

void Console::warning(std::string_view text) {
  if (!quiet) say("warning", "33;1", text);
}

void Console::tell(std::string_view text) {
  if (!quiet) say("", "", text);
}

void Console::note(std::string_view text) {
  if (verbose) say("", "", text);
}

void Console::summary(std::string_view text) {
  if (verbose || (!quiet && ::isatty(STDERR_FILENO) == 1)) say("", "", text);
}

Progress::Progress(const Console& console, std::string what, std::optional<int64_t> total)
    : what_(std::move(what)), total_(total), shown_(!console.quiet && ::isatty(STDERR_FILENO) == 1) {}

void Progress::clear() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
  drawn_ = false;
}

void Progress::update(int64_t done, std::string_view note) {
  auto now = Clock::now();
  if (!shown_ || now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  drawn_ = true;
  double rate = static_cast<double>(done) / std::chrono::duration<double>(now - begin_).count();
  std::string line;
  if (total_ && *total_ > 0) {
    constexpr int64_t cells = 30;
    double part = static_cast<double>(done) / static_cast<double>(*total_);
    auto full = static_cast<size_t>(std::clamp<int64_t>(static_cast<int64_t>(part * cells), 0, cells));
    double left = rate > 0 ? static_cast<double>(*total_ - done) / rate : 0;
    line = fmt::format("{} [{}{}] {:3.0f}%  {}/{}  {}/s  {:.0f} s left", what_, std::string(full, '#'), std::string(cells - full, '.'),
                       part * 100, done, *total_, human_count(rate), left);
  } else {
    line = fmt::format("{} {}  {}/s", what_, done, human_count(rate));
  }
  if (!note.empty()) line += fmt::format("  {}", note);
  std::fprintf(stderr, "\r%s\x1b[K", line.c_str());
}

std::string format_table(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right) {
  std::vector<size_t> widths(right.size(), 0);
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      std::string space(widths[i] - width(row[i]), ' ');
      line += (i ? "  " : "") + (right[i] ? space + row[i] : row[i] + space);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

bool has_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string lower(value);
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return lower.find("utf-8") != std::string::npos || lower.find("utf8") != std::string::npos;
  }
  return false;
}

std::string grouped(int64_t number) {
  std::string out = std::to_string(number);
  for (int64_t at = static_cast<int64_t>(out.size()) - 3; at > (number < 0 ? 1 : 0); at -= 3) out.insert(static_cast<size_t>(at), ",");
  return out;
}

namespace {
std::string scaled(double value, double step, const std::vector<const char*>& units) {
  size_t unit = 0;
  while (value >= step * 0.9995 && unit + 1 < units.size()) value /= step, ++unit;
  return unit == 0 ? fmt::format("{:.0f}{}", value, units[0])
                   : fmt::format("{:.{}f}{}", value,
                                 value < 9.995   ? 2
                                 : value < 99.95 ? 1
                                                 : 0,
                                 units[unit]);
}
}  // namespace

std::string three_digits(double value) {
  return fmt::format("{:.{}f}", value, value < 0.9995 ? 3 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

std::string human_bytes(int64_t bytes) { return scaled(static_cast<double>(bytes), 1024, {" B", " KiB", " MiB", " GiB", " TiB"}); }

std::string human_count(double count) { return scaled(count, 1000, {"", " k", " M", " G", " T"}); }

}  // namespace tutti::cli
