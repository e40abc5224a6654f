#include "tutti/run/fit_setup.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/device/host.h"

namespace tutti {

size_t teams_at_once(const Device& device, const FitOptions& options, size_t jobs) {
  if (device.is_asynchronous()) return 1;
  const int threads = options.threads > 0 ? options.threads : thread_limit();
  return std::max<size_t>(1, std::min(jobs, static_cast<size_t>(threads)));
}

// A device that computes by itself is told several steps at once: starting one takes as long as a small model's step.
TrainerOptions trainer_options(const Device& device, const FitOptions& options, FitDataStore& data) {
  const int64_t automatic = device.is_asynchronous() ? 16 : 1;
  return {options.log_steps, options.steps_per_launch > 0 ? options.steps_per_launch : automatic, options.checkpoint_every, &data,
          options.recompute};
}

int64_t memory_for_data(const FitOptions& options) { return options.data_memory > 0 ? options.data_memory : total_memory() / 4; }

std::vector<ParallelPlan> divide_jobs(std::vector<FitJob>& jobs, const FitOptions& options, const RankGroup* ranks) {
  std::vector<ParallelPlan> out;
  if (ranks == nullptr && !options.parallel.is_asked_for()) return out;
  const size_t devices = std::max<size_t>(1, options.parallel.devices.size());
  const auto first = open_device(options.device);
  if (ranks != nullptr && devices > 1 && !first->launches_replicas())
    fail<InvalidArgument>("fit", "--devices {} with {} ranks: each rank is one device; hint: mpirun -np N tutti fit, without --devices",
                          devices, ranks->size());
  if (ranks != nullptr && first->is_asynchronous() && !first->spans_hosts())
    fail<Unsupported>("fit", "ranks with '{}' are not done; hint: --device cpu or cuda, or --devices N in one process", first->name());
  ParallelOptions parallel = options.parallel;
  parallel.threads = options.threads;
  for (const std::string& name : parallel.devices) open_device(name);  // what is not there is said before anything begins
  const int cores = first->launches_replicas() ? 0 : thread_limit();
  const int64_t replicas = static_cast<int64_t>(devices) * (ranks != nullptr ? ranks->size() : 1);
  for (FitJob& job : jobs) out.push_back(plan_parallel(job, parallel, replicas, cores));
  return out;
}

std::vector<ParallelPlan> parallel_plans(const std::vector<FitJob>& jobs, const FitOptions& options) {
  std::vector<FitJob> copies = jobs;
  return divide_jobs(copies, options, join_ranks(options.parallel.deadline).get());
}

std::string ParallelTimes::warning() const {
  if (plan.replicas < 2 || steps < enough_steps) return "";
  const double replicas = static_cast<double>(plan.replicas), all = static_cast<double>(steps);
  std::array<double, static_cast<size_t>(Phase::count)> mean{};
  for (const auto& replica : seconds_by_phase)
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += replica[i] / static_cast<double>(seconds_by_phase.size()) / all;
  const auto of = [&](Phase phase) { return mean[static_cast<size_t>(phase)]; };
  const double computing = of(Phase::compute) + of(Phase::input), between = of(Phase::wait) + of(Phase::exchange) + of(Phase::update);
  // One device would compute all parts, and do nothing between them but the update.
  if (between < computing * (replicas - 1)) return "";
  int64_t enough = plan.global_batch;
  while (static_cast<double>(enough) * computing * (replicas - 1) < 2 * between * static_cast<double>(plan.global_batch) &&
         enough < 1 << 29)
    enough *= 2;
  return fmt::format(
      "job '{}': {} devices are not faster than one: {:.3g} ms a step computing, {:.3g} ms between; hint: --devices 1, or batches of {} "
      "and more; tutti scale says why",
      escape(job), plan.replicas, computing * 1e3, between * 1e3, enough);
}

}  // namespace tutti
