#include "tutti/cli/fit_table.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tutti/base/error.h"

namespace tutti::cli {

namespace {

constexpr size_t most_shown = 12;  // jobs

std::string time_left(double seconds) {
  if (!(seconds < 1e7)) return "-";
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

size_t terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

// All of a few; of many those with the least and the largest losses.
std::vector<const JobProgress*> interesting(const FitProgress& progress) {
  std::vector<const JobProgress*> out;
  for (const JobProgress& job : progress.running) out.push_back(&job);
  if (out.size() <= most_shown) return out;
  const auto worse = [](double loss) { return std::isfinite(loss) ? loss : 1e300; };
  std::stable_sort(out.begin(), out.end(), [&](const auto* a, const auto* b) { return worse(a->loss) < worse(b->loss); });
  out.erase(out.begin() + most_shown / 2, out.end() - most_shown / 2);
  return out;
}

}  // namespace

std::string fit_table(const FitProgress& progress, size_t width) {
  const double rate = progress.seconds > 0 ? static_cast<double>(progress.steps) / progress.seconds : 0;
  const double left = rate > 0 ? static_cast<double>(progress.expected_steps - progress.steps_in_all) / rate : 1e9;
  std::string head = fmt::format("{} of {} jobs done", progress.done, progress.jobs);
  if (progress.failed > 0) head += fmt::format(", {} failed", progress.failed);
  head += fmt::format("  {} of {} steps  {}/s  {} left", human_count(static_cast<double>(progress.steps_in_all)),
                      human_count(static_cast<double>(progress.expected_steps)), human_count(rate), time_left(left));
  const auto shown = interesting(progress);
  std::vector<std::vector<std::string>> rows{{"JOB", "EPOCH", "STEP", "LOSS", "STEPS/S", "LEFT"}};
  for (const JobProgress* job : shown) {
    const double own = job->seconds > 0 ? static_cast<double>(job->steps) / job->seconds : 0;
    rows.push_back({escape(job->name, 28), fmt::format("{}/{}", job->epoch + 1, job->epochs), grouped(job->steps),
                    std::isfinite(job->loss) ? fmt::format("{:.5g}", job->loss) : "-", human_count(own),
                    time_left(rate > 0 ? left * static_cast<double>(job->expected_steps - job->steps) /
                                             std::max<double>(1, static_cast<double>(progress.most_left))
                                       : 1e9)});
  }
  std::string text = head + "\n" + format_table(rows, {false, true, true, true, true, true});
  if (shown.size() < progress.running.size())
    text += fmt::format("the {} with the least and the {} with the largest loss of {} that run\n", most_shown / 2, most_shown / 2,
                        progress.running.size());
  // No line is wrapped: the cursor goes up by lines.
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out += text.substr(at, std::min(end - at, width - 1)) + "\n";
    at = end + 1;
  }
  return out;
}

FitTable::FitTable(const Console& console) : shown_(::isatty(STDERR_FILENO) == 1 && !console.quiet && !console.json) {}

void FitTable::update(const FitProgress& progress) {
  if (!shown_) return;
  const std::string text = fit_table(progress, terminal_width());
  clear();
  lines_ = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

void FitTable::clear() {
  if (lines_ > 0) std::fprintf(stderr, "\x1b[%zuA\r\x1b[J", lines_);
  lines_ = 0;
}

}  // namespace tutti::cli
