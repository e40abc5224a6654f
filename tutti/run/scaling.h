// Trains a job on one device and on several, and says where the difference to the ideal goes: every part of it has a name.
#pragma once

#include "tutti/run/fit.h"

namespace tutti {

enum class Loss { input, dispatch, communication, skew, small_batch, oversubscription, other, count };
std::string_view name(Loss loss);

// One way of training, measured: seconds a step.
struct ScalingArm {
  int64_t devices = 1, batch = 0;  // of all devices
  double step = 0;
  double input = 0, host = 0, exchange = 0, update = 0, wait = 0;  // means over the replicas; host is that of replica 0
  double compute = 0, fastest = 0, slowest = 0;                    // the mean, and of the replica that takes least and most
  int slowest_rank = 0;
  double slowest_input = 0;    // of the replica whose data come last: the others wait for them
  double exchanged_bytes = 0;  // by each replica
};

// What a step costs by how it is divided, fitted to the arms.
struct CostModel {
  double fixed = 0, by_sample = 0;  // of computing
  double input_by_sample = 0, host = 0, update = 0;
  double latency = 0, by_byte = 0;  // of an exchange
  double bytes = 0;                 // of all gradients
  int cores = 1, threads = 1;
  bool divides_update = true;  // between replicas

  // Seconds a step.
  double step(int64_t devices, double batch, int64_t small_batches = 1, double link = 1) const;
};

struct WhatIf {
  std::string what;                         // "batch x 2"
  double samples_per_second = 0, gain = 0;  // over what was measured
};

// `devices` against one, with the same global batch (strong) or the same batch a device (weak).
struct ScalingResult {
  bool weak = false;
  ScalingArm one, many;
  double speed_up = 0, efficiency = 0;                             // samples a second over those of one device; over devices
  std::array<double, static_cast<size_t>(Loss::count)> seconds{};  // of a step, lost to each cause
  std::array<double, static_cast<size_t>(Loss::count)> shares{};   // of all that is lost; they add up to 1
  double lost = 0;                                                 // seconds of a step, compared to the ideal
  Loss main = Loss::other;
  double bandwidth = 0, needed_bandwidth = 0;  // bytes a second: of the exchange; to hide it behind the computation
  std::vector<WhatIf> what_if;
  std::string advice;
};

struct ScalingReport {
  std::string job, device;
  int threads = 1, cores = 1;
  std::vector<ScalingResult> results;
  CostModel model;
  struct Projection {
    int64_t devices;
    double speed_up;
  };
  std::vector<Projection> projected;  // with the job's batch, for more devices than were measured
  Json json() const;
};

struct ScalingOptions {
  std::vector<int64_t> devices = {1, 2};
  int64_t rounds = 3;    // of all arms in turns: the fastest of each counts
  double seconds = 0.4;  // of each turn, about
  bool weak = true;      // also with a batch that grows
};

// Of one job. `tell` hears of each arm that is done.
ScalingReport measure_scaling(const FitJob& job, const FitOptions& fit, const ScalingOptions& options,
                              const std::function<void(const std::string&)>& tell, const std::atomic<bool>& stop);

// Whole in itself, with a chart.
std::string scaling_page(const std::vector<ScalingReport>& reports);

CostModel fit_costs(const std::vector<ScalingArm>& arms, int cores, int threads);
// Divides what is lost between causes. `alone`: one device with the batch that each of many has.
ScalingResult account(const ScalingArm& one, const ScalingArm& alone, const ScalingArm& many, bool weak, int cores, int threads);
void advise(ScalingResult& result, const CostModel& model);

}  // namespace tutti
