// What fit() and explain_fit() decide alike before anything runs.
#pragma once

#include "tutti/run/fit.h"
#include "tutti/run/trainer.h"

namespace tutti {

// Devices in host memory compute on the thread that asks: a team for each. Others have threads of their own.
size_t teams_at_once(const Device& device, const FitOptions& options, size_t jobs);
TrainerOptions trainer_options(const Device& device, const FitOptions& options, FitDataStore& data);
int64_t memory_for_data(const FitOptions& options);  // bytes
// How each job is divided over devices or ranks, empty where none is; the jobs get the batch and learning rate of their plans.
std::vector<ParallelPlan> divide_jobs(std::vector<FitJob>& jobs, const FitOptions& options, const RankGroup* ranks);

}  // namespace tutti
