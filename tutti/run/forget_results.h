// What an earlier run has left in the folders of jobs.
#pragma once

#include <string>
#include <vector>

#include "tutti/run/fit_job.h"

namespace tutti {

// A run that does not go on from another one begins without its results: they would pass for its own where it fails or is killed, and
// --resume would take them for finished. What jobs are read from stays.
void forget_results(const std::vector<std::string>& folders, const std::vector<FitJob>& jobs);

// Of a job that is done, with what runs that were killed have left behind; the newest last, so that a job that is killed now goes on from
// it.
void clear_checkpoints(const std::string& folder);

}  // namespace tutti
