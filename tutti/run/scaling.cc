#include "tutti/run/scaling.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/device/host.h"

namespace tutti {

namespace {

namespace fs = std::filesystem;

// Results that nobody reads.
class ScratchFolder {
 public:
  ScratchFolder() : path_(fs::temp_directory_path() / fmt::format("tutti_scale_{}", getpid())) { fs::create_directories(path_); }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

ScalingArm arm_of(const ParallelTimes& times) {
  ScalingArm out;
  out.devices = times.plan.replicas;
  out.batch = times.plan.global_batch;
  out.exchanged_bytes = times.exchanged_bytes;
  const double steps = static_cast<double>(std::max<int64_t>(times.steps, 1)), replicas = static_cast<double>(out.devices);
  out.step = times.seconds / steps;
  const auto mean = [&](Phase phase) {
    double total = 0;
    for (const auto& replica : times.seconds_by_phase) total += replica[static_cast<size_t>(phase)];
    return total / steps / replicas;
  };
  out.input = mean(Phase::input);
  out.exchange = mean(Phase::exchange);
  out.update = mean(Phase::update);
  out.compute = mean(Phase::compute);
  out.host = mean(Phase::host) * replicas;                              // replica 0 has it
  out.wait = mean(Phase::wait) - out.host * (replicas - 1) / replicas;  // while the others wait
  out.fastest = 1e30;
  for (size_t r = 0; r < times.seconds_by_phase.size(); ++r) {
    const double own = times.seconds_by_phase[r][static_cast<size_t>(Phase::compute)] / steps;
    out.fastest = std::min(out.fastest, own);
    out.slowest_input = std::max(out.slowest_input, times.seconds_by_phase[r][static_cast<size_t>(Phase::input)] / steps);
    if (own > out.slowest) {
      out.slowest = own;
      out.slowest_rank = static_cast<int>(r);
    }
  }
  return out;
}

// One turn of an arm.
class ArmRunner {
 public:
  ArmRunner(const FitJob& job, const FitOptions& fit, const std::atomic<bool>& stop) : job_(job), fit_(fit), stop_(stop) {
    job_.epochs = 1;
    job_.validation_split = 0;
    job_.validation_x = job_.validation_y = job_.validation_sample_weight = "";
    job_.early_stopping = job_.reduce_on_plateau = Json();
    fit_.folder = folder_.path();
    fit_.checkpoint_every = 0;
    fit_.resume = fit_.log_steps = false;
    fit_.parallel.trace = "";
    fit_.parallel.per_device_batch = 0;
  }

  ScalingArm run(int64_t devices, int64_t batch, double seconds) {
    int64_t& steps = steps_[{devices, batch}];
    if (steps == 0) {
      const ScalingArm first = once(devices, batch, 8);
      steps = std::clamp<int64_t>(static_cast<int64_t>(seconds / std::max(first.step, 1e-6)), 6, 20'000);
    }
    return once(devices, batch, steps);
  }

 private:
  ScalingArm once(int64_t devices, int64_t batch, int64_t steps) {
    FitJob job = job_;
    job.steps_per_epoch = steps + 3;
    FitOptions fit_options = fit_;
    fit_options.parallel.devices = parse_devices(std::to_string(devices), fit_.device);
    fit_options.parallel.global_batch = batch;
    std::string error;
    const FitReport report = fit(
        {job}, fit_options, [&](const FitResult& result) { error = result.error; }, stop_);
    if (!error.empty()) throw InvalidArgument("scale", error.substr(error.find("] ") == std::string::npos ? 0 : error.find("] ") + 2));
    if (report.parallel.empty() || report.parallel[0].steps == 0) fail<InvalidArgument>("scale", "interrupted before a step was measured");
    return arm_of(report.parallel[0]);
  }

  FitJob job_;
  FitOptions fit_;
  const std::atomic<bool>& stop_;
  ScratchFolder folder_;
  std::map<std::pair<int64_t, int64_t>, int64_t> steps_;
};

}  // namespace

std::string_view name(Loss loss) {
  constexpr std::string_view names[] = {
      "input wait", "host dispatch", "exposed communication", "skew between replicas", "smaller batch a device", "thread oversubscription",
      "other"};
  return names[static_cast<size_t>(loss)];
}

ScalingResult account(const ScalingArm& one, const ScalingArm& alone, const ScalingArm& many, bool weak, int cores, int threads) {
  ScalingResult out;
  out.weak = weak;
  out.one = one;
  out.many = many;
  const double devices = static_cast<double>(many.devices), parts = weak ? 1 : devices;  // into how many the work of `one` is divided
  const double ideal = one.step / parts;
  out.speed_up = (static_cast<double>(many.batch) / many.step) / (static_cast<double>(one.batch) / one.step);
  out.efficiency = out.speed_up / devices;
  out.lost = many.step - ideal;
  const auto set = [&](Loss loss, double seconds) { out.seconds[static_cast<size_t>(loss)] = std::max(0.0, seconds); };
  const double late_input = std::max(0.0, many.slowest_input - many.input);  // which shows as waiting, and is not the replicas' fault
  set(Loss::input, many.input + late_input - one.input / parts);
  set(Loss::dispatch, many.host - one.host / parts);
  set(Loss::communication, many.exchange - one.exchange / parts + many.update - one.update / parts);
  set(Loss::skew, many.wait - late_input - one.wait / parts + many.compute - many.fastest);
  set(Loss::small_batch, alone.compute - one.compute / parts);
  const double contended = many.fastest - alone.compute;
  set(many.devices * threads > cores ? Loss::oversubscription : Loss::other, contended);
  const double named = std::accumulate(out.seconds.begin(), out.seconds.end(), 0.0);
  if (out.lost <= 0) {  // nothing is: the shares say so
    out.seconds = {};
    out.lost = 0;
    out.shares[static_cast<size_t>(Loss::other)] = 1;
    return out;
  }
  // What is measured a little too often is scaled down, what nothing explains is other.
  if (named > out.lost)
    for (double& seconds : out.seconds) seconds *= out.lost / named;
  else
    out.seconds[static_cast<size_t>(Loss::other)] += out.lost - named;
  for (size_t i = 0; i < out.seconds.size(); ++i) out.shares[i] = out.seconds[i] / out.lost;
  out.main = static_cast<Loss>(std::max_element(out.seconds.begin(), out.seconds.end()) - out.seconds.begin());
  const double exchanging = many.exchange + many.update;  // replicas that share memory read each other's gradients while they update
  if (many.exchanged_bytes > 0) {
    out.bandwidth = exchanging > 0 ? many.exchanged_bytes / exchanging : 0;
    out.needed_bandwidth = many.exchanged_bytes / std::max(many.compute, 1e-9);
  }
  return out;
}

ScalingReport measure_scaling(const FitJob& job, const FitOptions& fit, const ScalingOptions& options,
                              const std::function<void(const std::string&)>& tell, const std::atomic<bool>& stop) {
  ScalingReport out;
  out.job = job.name;
  out.device = fit.device;
  out.cores = thread_limit();
  out.threads = fit.threads > 0 ? fit.threads : 1;
  FitOptions each = fit;
  each.threads = out.threads;  // the same in every arm
  const int64_t batch = fit.parallel.global_batch > 0 ? fit.parallel.global_batch : job.batch_size;
  ArmRunner runner(job, each, stop);
  std::map<std::pair<int64_t, int64_t>, ScalingArm> arms;  // by devices and batch
  const auto part = [&](int64_t devices) { return std::max<int64_t>(1, (batch + devices - 1) / devices); };
  const auto want = [&](int64_t devices, int64_t samples) { arms.try_emplace({devices, samples}); };
  want(1, batch);
  for (int64_t devices : options.devices) {
    want(devices, batch);
    want(1, part(devices));
    if (options.weak) want(devices, batch * devices);
  }
  for (int64_t round = 0; round < options.rounds && !stop; ++round)
    for (auto& [key, arm] : arms) {
      if (stop) break;
      const ScalingArm turn = runner.run(key.first, key.second, options.seconds);
      if (arm.step == 0 || turn.step < arm.step) arm = turn;
      if (round + 1 == options.rounds)
        tell(fmt::format("{} device{}, batch {}: {:.3f} ms a step", key.first, key.first == 1 ? "" : "s", key.second, arm.step * 1e3));
    }
  if (stop) fail<InvalidArgument>("scale", "interrupted");
  std::vector<ScalingArm> all;
  for (const auto& [key, arm] : arms) all.push_back(arm);
  out.model = fit_costs(all, out.cores, out.threads);
  const ScalingArm& one = arms.at({1, batch});
  for (const bool weak : {false, true})
    for (int64_t devices : options.devices) {
      if (weak && !options.weak) continue;
      const int64_t samples = weak ? batch * devices : batch;
      const ScalingArm& alone = weak ? one : arms.at({1, part(devices)});
      out.results.push_back(account(one, alone, arms.at({devices, samples}), weak, out.cores, out.threads));
      advise(out.results.back(), out.model);
    }
  const int64_t largest = *std::max_element(options.devices.begin(), options.devices.end());
  for (int64_t devices = largest * 2; devices <= largest * 16 && devices <= batch; devices *= 2) {
    CostModel there = out.model;  // where every device has cores of its own
    there.cores = static_cast<int>(devices) * there.threads;
    out.projected.push_back({devices, there.step(1, static_cast<double>(batch)) / there.step(devices, static_cast<double>(batch))});
  }
  return out;
}

Json ScalingReport::json() const {
  Json list = Json::list();
  for (const ScalingResult& result : results) {
    Json losses = Json::object(), what_if = Json::list();
    for (size_t i = 0; i < result.seconds.size(); ++i)
      losses.set(std::string(name(static_cast<Loss>(i))),
                 JsonMembers{{"us", result.seconds[i] * 1e6}, {"percent", result.shares[i] * 100}});
    for (const WhatIf& one : result.what_if)
      what_if.push(
          JsonMembers{{"what", one.what}, {"samples_per_second", one.samples_per_second}, {"gain", one.gain}, {"projected", true}});
    list.push(JsonMembers{{"scaling", result.weak ? "weak" : "strong"},
                          {"devices", result.many.devices},
                          {"batch", result.many.batch},
                          {"us_per_step", result.many.step * 1e6},
                          {"samples_per_second", static_cast<double>(result.many.batch) / result.many.step},
                          {"speed_up", result.speed_up},
                          {"efficiency", result.efficiency},
                          {"lost_us", result.lost * 1e6},
                          {"lost_to", losses},
                          {"main_loss", std::string(name(result.main))},
                          {"slowest_replica", int64_t{result.many.slowest_rank}},
                          {"bytes_per_second", result.bandwidth},
                          {"needed_bytes_per_second", result.needed_bandwidth},
                          {"what_if", what_if},
                          {"advice", result.advice}});
  }
  Json more = Json::list();
  for (const Projection& one : projected) more.push(JsonMembers{{"devices", one.devices}, {"speed_up", one.speed_up}, {"projected", true}});
  return JsonMembers{{"job", job},      {"device", device}, {"threads", int64_t{threads}}, {"cores", int64_t{cores}},
                     {"results", list}, {"projected", more}};
}

}  // namespace tutti
