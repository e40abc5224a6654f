// What an earlier run has left in the folders of jobs.
#pragma once

#include <string>
#include <vector>

#include "tutti/run/fit.h"

namespace tutti {

// A run that does not go on from another one begins without its results: they would pass for its own where it fails or is killed, and
// --resume would take them for finished. What jobs are read from stays.
void forget_results(const std::vector<std::string>& folders, const std::vector<FitJob>& jobs);

// The history of a job that was finished before, and its last loss, for whoever compares jobs. Nothing where it cannot be read: a run that
// goes on does not end by that.
void remember_history(const std::string& folder, FitResult& result);

// Of a job that is done, with what runs that were killed have left behind; the newest last, so that a job that is killed now goes on from
// it.
void clear_checkpoints(const std::string& folder);

}  // namespace tutti
