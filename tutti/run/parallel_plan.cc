#include "tutti/run/parallel_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "tutti/base/error.h"
#include "tutti/device/device.h"

namespace tutti {

namespace {

constexpr int64_t most_replicas = 256;

}  // namespace

bool ParallelOptions::is_asked_for() const {
  return !devices.empty() || global_batch > 0 || per_device_batch > 0 || accumulate > 1 || lr_scale != "none" || synchronizes ||
         !trace.empty();
}

std::vector<std::string> parse_devices(const std::string& text, const std::string& device) {
  if (text.empty()) return {};
  int64_t count = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (problem == std::errc() && end == text.data() + text.size()) {
    if (count < 1 || count > most_replicas) fail<InvalidArgument>("fit", "--devices is between 1 and {}; got {}", most_replicas, count);
    std::vector<std::string> out;
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) out.push_back(device_after(device, i));
    return out;
  }
  std::vector<std::string> out, written;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    std::string name = text.substr(begin, comma - begin);
    if (name.empty()) fail<InvalidArgument>("fit", "--devices '{}' has an empty name; hint: --devices cpu:0,cpu:1", escape(text, 60));
    if (!out.empty() && kind_of_device(name) != kind_of_device(out[0]))
      fail<InvalidArgument>("fit", "--devices are of one kind; got '{}' and '{}'", escape(out[0], 60), escape(name, 60));
    // The processor is one device with many threads: its replicas are told apart by number only.
    written.push_back(device_after(name, 0) == kind_of_device(name) ? name : device_after(name, 0));
    out.push_back(device_after(name, 0));
    begin = comma + 1;
  }
  if (std::ssize(out) > most_replicas) fail<InvalidArgument>("fit", "--devices names at most {}; got {}", most_replicas, out.size());
  for (size_t i = 0; i < out.size(); ++i)
    if (std::find(written.begin(), written.begin() + static_cast<std::ptrdiff_t>(i), written[i]) !=
        written.begin() + static_cast<std::ptrdiff_t>(i))
      fail<InvalidArgument>("fit", "--devices names '{}' twice", escape(written[i], 60));
  return out;
}

Exchange exchange_named(const std::string& name) {
  static const std::vector<std::string> names = {"memory", "messages"};
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) fail<InvalidArgument>("fit", "no --exchange '{}'{}", escape(name, 60), did_you_mean(name, names));
  return static_cast<Exchange>(found - names.begin());
}

const std::vector<std::string>& lr_scale_names() {
  static const std::vector<std::string> names = {"none", "linear", "sqrt"};
  return names;
}

ParallelPlan plan_parallel(FitJob& job, const ParallelOptions& options, int64_t replicas, int cores) {
  ParallelPlan out;
  out.replicas = replicas;
  out.accumulate = options.accumulate;
  const int64_t parts = replicas * options.accumulate;
  if (options.global_batch > 0 && options.per_device_batch > 0 && options.global_batch != options.per_device_batch * parts)
    fail<InvalidArgument>("fit", "--global-batch {} is not --per-device-batch {} x {} devices x {} small batches; hint: one of them",
                          options.global_batch, options.per_device_batch, replicas, options.accumulate);
  out.global_batch = options.global_batch > 0       ? options.global_batch
                     : options.per_device_batch > 0 ? options.per_device_batch * parts
                                                    : job.batch_size;
  if (out.global_batch > int64_t{1} << 30) fail<InvalidArgument>("fit", "a batch has at most 2^30 samples; got {}", out.global_batch);
  out.per_device_batch = (out.global_batch + parts - 1) / parts;
  out.threads = cores == 0 ? 0 : options.threads > 0 ? options.threads : std::max(1, cores / static_cast<int>(replicas));
  const double larger = static_cast<double>(out.global_batch) / static_cast<double>(job.batch_size);
  if (options.lr_scale == "linear")
    out.rate_factor = larger;
  else if (options.lr_scale == "sqrt")
    out.rate_factor = std::sqrt(larger);
  else if (options.lr_scale != "none")
    fail<InvalidArgument>("fit", "no --lr-scale '{}'{}", escape(options.lr_scale, 60), did_you_mean(options.lr_scale, lr_scale_names()));
  if (out.rate_factor != 1) out.warmup_steps = options.warmup_steps;
  job.batch_size = out.global_batch;
  job.rate_factor = out.rate_factor;
  job.warmup_steps = out.warmup_steps;
  return out;
}

std::string ParallelPlan::text() const {
  std::string out = fmt::format("global batch {} = {} devices x {} samples", global_batch, replicas, per_device_batch);
  if (accumulate > 1) out += fmt::format(" x {} small batches", accumulate);
  if (per_device_batch * replicas * accumulate != global_batch) out += " (at most)";
  if (threads > 0) out += fmt::format(", {} thread{} each", threads, threads == 1 ? "" : "s");
  if (rate_factor != 1) {
    out += fmt::format(", learning rate x {:.4g}", rate_factor);
    if (warmup_steps > 0) out += fmt::format(" after {} steps of warm-up", warmup_steps);
    if (warmup_steps < 0) out += " after a warm-up of a tenth of the steps";
  }
  return out;
}

Json ParallelPlan::json() const {
  return JsonMembers{{"devices", replicas},          {"accumulate", accumulate},
                     {"global_batch", global_batch}, {"per_device_batch", per_device_batch},
                     {"threads", int64_t{threads}},  {"learning_rate_factor", rate_factor},
                     {"warmup_steps", warmup_steps}};
}

}  // namespace tutti
