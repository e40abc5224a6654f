// Trains the models of several jobs on one device: jobs alike together where that is faster, the others in turns and side by side.
#pragma once

#include <atomic>
#include <functional>

#include "tutti/run/explain.h"
#include "tutti/run/fit_job.h"
#include "tutti/run/fit_plan.h"
#include "tutti/run/parallel_fit.h"

namespace tutti {

// Where a job stands while all of them run.
struct JobProgress {
  std::string name;
  int64_t epoch = 0, epochs = 0, steps = 0, expected_steps = 0;
  double loss = 0, seconds = 0;  // of the epoch so far; its share of the time
};

struct FitProgress {
  size_t jobs = 0, done = 0, failed = 0;
  // Of this run; of all jobs, with what a resumed run had done before; what they will be, if none stops early.
  int64_t steps = 0, steps_in_all = 0, expected_steps = 0;
  int64_t most_left = 0;  // steps of the job that has most of them before it
  double seconds = 0;     // since the first step
  std::vector<JobProgress> running;
};

struct FitOptions {
  std::string device = std::string(default_device);
  int threads = 0;                // at most; 0: as many as the work is worth
  bool log_steps = false;         // also the loss of each step
  std::string folder;             // of the results: a folder a job; empty: nothing is written, and results hold the models
  int64_t checkpoint_every = 0;   // steps of a job; 0: never
  double checkpoint_minutes = 0;  // the same by time; 0: never
  bool resume = false;            // goes on from checkpoints; jobs whose results are there are left alone
  FitArrangement plan = FitArrangement::measured;
  int64_t data_memory = 0;   // bytes of all jobs' data that are held; what is beyond is read as it is needed. 0: a quarter of the memory
  ParallelOptions parallel;  // where it is asked for, every job is trained by all devices, one job after another
  // Less memory: what the backward pass needs is computed again. On its own where a step does not fit in memory otherwise.
  bool recompute = false;
  int64_t steps_per_launch = 0;  // at most, in a loop on the device; 0: 16 where a launch costs more than a call
  // Of jobs that start anew where their files promise more; of a job that so many devices cannot make faster: once, after its first steps,
  // or in the end where only all of them show it.
  std::function<void(const std::string&)> warn = {};
  // A few times a second while jobs run, on one thread at a time.
  std::function<void(const FitProgress&)> progress = {};
  bool has_checkpoints() const { return checkpoint_every > 0 || checkpoint_minutes > 0; }
};

struct FitResult {
  std::string name;
  int64_t steps = 0;
  double seconds = 0, loss = 0;               // its share of the time that all took; of the last epoch
  std::string stopped_because;                // "epochs", "early_stopping", "error", "interrupted", or "finished_before" this run
  std::string error;                          // of a job that failed
  std::vector<std::string> columns;           // of the history: loss, metrics, val_...
  std::vector<std::vector<double>> history;   // a row an epoch; kept where there is no folder, read where it was finished before
  std::shared_ptr<const keras::Model> model;  // trained; where there is no folder
};

// Where the time of a job that several devices trained went.
struct ParallelTimes {
  std::string job;
  ParallelPlan plan;
  int64_t steps = 0;                                  // measured: all but the first, which compile
  double seconds = 0;                                 // of them
  double undisturbed_step = 0;                        // seconds, as ParallelFit has it
  double exchanged_bytes = 0;                         // by each replica, a step
  std::vector<std::vector<double>> seconds_by_phase;  // by replica, then by Phase
  Json exchange = Json::object();                     // how ranks exchanged gradients, and how much of that was hidden

  // What to tell who hoped for more speed than one device has; "": it is faster, or too little was measured.
  std::string warning() const;
  static constexpr int64_t enough_steps = 20;  // for it
};

struct FitReport {
  std::vector<FitResult> jobs;  // in their order
  std::vector<FitPlan> plans;
  std::vector<ParallelTimes> parallel;
  double seconds = 0, start_seconds = 0;  // of training, without writing results; of reading, compiling and measuring before it
};

// A job that fails stops alone. Results are written as soon as each job is done, and in the end FOLDER/report.html; `report` hears of it
// then, on one thread at a time. Once `stop` is set, steps end, and checkpoints are written if there are any.
FitReport fit(const std::vector<FitJob>& jobs, const FitOptions& options, const std::function<void(const FitResult&)>& report,
              const std::atomic<bool>& stop);

// How each job's batch will be divided; empty where nothing is. Throws InvalidArgument for what does not fit together.
std::vector<ParallelPlan> parallel_plans(const std::vector<FitJob>& jobs, const FitOptions& options);

// How the jobs would be trained, and the program of each group of jobs alike for one step.
struct ExplainedFit {
  FitPlan plan;
  Explanation step;
};
std::vector<ExplainedFit> explain_fit(const std::vector<FitJob>& jobs, const FitOptions& options, Precision precision);

}  // namespace tutti
