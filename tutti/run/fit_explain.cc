#include "tutti/base/denormals.h"
#include "tutti/base/error.h"
#include "tutti/run/fit_setup.h"
#include "tutti/run/fit_team.h"

namespace tutti {

namespace {

// Of each job by itself: the step that one launch starts on all devices.
std::vector<ExplainedFit> explain_replicated(std::vector<FitJob> jobs, const FitOptions& options, Precision precision) {
  std::vector<std::shared_ptr<Device>> devices;
  for (const std::string& name : options.parallel.devices) devices.push_back(open_device(name));
  if (!devices[0]->launches_replicas())
    fail<Unsupported>("explain", "replicas on '{}' are threads that compute a part each, not one program; hint: without --devices",
                      devices[0]->name());
  const std::vector<ParallelPlan> plans = divide_jobs(jobs, options, nullptr);
  FitDataStore data(memory_for_data(options));
  std::vector<ExplainedFit> out;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const Trainer trainer(jobs[i], {.data = &data});
    if (plans[i].global_batch % plans[i].replicas != 0)
      fail<InvalidArgument>("explain", "a batch of {} cannot be divided evenly by {} devices; hint: --global-batch {}",
                            plans[i].global_batch, plans[i].replicas, plans[i].per_device_batch * plans[i].replicas);
    const StepKind kind{true, plans[i].per_device_batch};
    CompileSettings settings;
    settings.precision = precision;
    settings.replicas = devices;
    const Graph step = std::move(trainer.replicated_graph(kind, {plans[i].replicas, false, options.parallel.synchronizes}).graph);
    FitPlan plan;
    plan.jobs = {jobs[i].name};
    plan.reason = plans[i].text();
    out.push_back({std::move(plan), explain(step, devices[0], settings, kind.batch)});
  }
  return out;
}

}  // namespace

std::vector<ExplainedFit> explain_fit(const std::vector<FitJob>& jobs, const FitOptions& options, Precision precision) {
  if (options.parallel.devices.size() > 1) return explain_replicated(jobs, options, precision);
  const auto device = open_device(options.device);
  FitDataStore data(memory_for_data(options));
  std::vector<std::unique_ptr<Trainer>> trainers;
  std::vector<Trainer*> all;
  for (const FitJob& job : jobs)
    all.push_back(trainers.emplace_back(std::make_unique<Trainer>(job, trainer_options(*device, options, data))).get());
  const auto groups = group_jobs(all, [](size_t, const std::string& reason) { throw InvalidArgument("fit", reason); });
  const size_t threads = teams_at_once(*device, options, jobs.size());
  std::vector<ExplainedFit> out;
  for (const auto& group : groups) {
    const auto programs = std::make_shared<SharedPrograms>(*group, device, threads > 1 ? 1 : options.threads);
    const FitPlan plan = plan_fit(programs, options.plan, threads);
    CompileSettings settings;
    settings.threads = programs->threads();
    settings.precision = precision;
    const Graph step = plan.stacked ? group->stacked_graph(group->first_kind(), static_cast<int64_t>(plan.together))
                                    : group->graph(group->first_kind()).clone();
    const FlushDenormals flushing;
    out.push_back({plan, explain(step, device, settings, group->first_kind().batch)});
  }
  return out;
}

}  // namespace tutti
