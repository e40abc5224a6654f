// How one batch is divided over devices and time, and what that does to the learning rate: decided, and said, before anything runs.
#pragma once

#include "tutti/base/json.h"
#include "tutti/run/fit_job.h"

namespace tutti {

enum class Exchange { memory, messages };  // how ranks that are on one machine exchange gradients
Exchange exchange_named(const std::string& name);

// What is asked for; 0 and "" where nothing is.
struct ParallelOptions {
  std::vector<std::string> devices;  // one a replica; empty: one device, as ever
  int threads = 0;                   // of each device; 0: the cores divided by the devices
  int64_t global_batch = 0, per_device_batch = 0;
  int64_t accumulate = 1;  // small batches a step
  std::string lr_scale = "none";
  int64_t warmup_steps = -1;  // until the scaled rate is reached; -1: a tenth of the steps, at most five epochs
  bool synchronizes = false;  // batch normalization by the whole batch
  std::string trace;          // a file
  int64_t bucket = 0;         // bytes of gradients that ranks exchange at once; 0: by measurement
  Exchange exchange = Exchange::memory;
  double deadline = 60;  // seconds for a rank that does not answer

  bool is_asked_for() const;
};

// "2", "cpu:0,cpu:1": devices by number of them or by name. `device` is what --device says. Throws InvalidArgument.
std::vector<std::string> parse_devices(const std::string& text, const std::string& device);
const std::vector<std::string>& lr_scale_names();

struct ParallelPlan {
  int64_t replicas = 1, accumulate = 1, global_batch = 0, per_device_batch = 0;  // the largest part of a full batch
  int threads = 1;                                                               // of each; 0: its own affair
  double rate_factor = 1;
  int64_t warmup_steps = 0;
  std::string text() const;  // one line for people
  Json json() const;
};

// The job with its batch and learning rate as the plan has them. `cores` are divided between the replicas; 0: they do not compute there.
ParallelPlan plan_parallel(FitJob& job, const ParallelOptions& options, int64_t replicas, int cores);

}  // namespace tutti
