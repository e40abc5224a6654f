// One job of training: its model, its data, and where it stands. It says which batch it wants computed next and is told the results; who
// computes them, for it alone or for many jobs at once, is run/fit_team.h.
#pragma once

#include <optional>

#include "tutti/run/early_stopping.h"
#include "tutti/run/fit_data.h"
#include "tutti/run/reduce_on_plateau.h"
#include "tutti/run/train_step.h"

namespace tutti {

// A step is compiled for each of them.
struct StepKind {
  bool training = true;  // else it evaluates
  int64_t batch = 1;
  int64_t steps = 1;                                        // one after another, in one launch
  auto operator<=>(const StepKind& other) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14's mistake
};

// Where the states of a job's steps are while it trains, by their place among Trainer::states().
class StateValues {
 public:
  virtual ~StateValues() = default;
  virtual Tensor read(size_t state) const = 0;
  virtual void write(size_t state, const Tensor& value) = 0;
};

// How a batch is divided.
struct PartOptions {
  int64_t replicas = 1;       // side by side
  bool accumulates = false;   // and one after another
  bool synchronizes = false;  // batch normalization by the whole batch
};

struct TrainerOptions {
  bool log_steps = false;        // keeps the loss of each step
  int64_t steps_per_launch = 1;  // where an epoch has so many, of full batches
  int64_t pause_every = 0;       // steps: no launch goes beyond, so that save() is possible there
  FitDataStore* data = nullptr;  // of all jobs; none: the job's own data are all held
  bool recompute = false;        // what the backward pass needs is computed again instead of being kept
};

// With those above it. Throws InvalidArgument where that is impossible.
void make_folder(const std::string& path);

class Trainer {
 public:
  // Loads the model and its data. Throws what is wrong with them.
  explicit Trainer(FitJob job, const TrainerOptions& options = {});

  const FitJob& job() const { return job_; }
  const std::string& warning() const { return warning_; }  // what a user should know before it begins; mostly nothing

  // What it computes. Jobs with equal recipes have equal graphs, but for the values of weights and states.
  std::string recipe() const;
  // Equal for equal jobs on equal models and data, whatever machine they are on.
  std::string fingerprint() const;
  std::vector<StepKind> kinds() const;   // all that it will ever ask for, the most frequent one first
  StepGraph graph(StepKind kind) const;  // of one step
  // The same of a part of a batch, for replicas and small batches one after another (run/part_programs.h); kind.batch is the part's.
  SplitStep part_graphs(StepKind kind, const PartOptions& options) const;
  StepGraph replicated_graph(StepKind kind, const PartOptions& options) const;  // in one, with all_reduce nodes
  // The first values of the states so named: the model's variables and the optimizer's.
  std::vector<Tensor> first_values(const std::vector<std::string>& states) const;
  // What the steps measure, and the names of their states. Throws InvalidArgument when the job asks for something else.
  void describe(std::shared_ptr<const StepGraph> facts, std::vector<std::string> states);
  const std::vector<std::string>& states() const { return states_; }
  void attach(StateValues* values) { values_ = values; }

  // What is to be computed next, until it is done.
  struct Batch {
    StepKind kind;
    std::span<const int64_t> rows;  // of the data
  };
  const Batch& next() const { return next_; }
  // That batch's input of the graph by index.
  void fill(size_t input, std::span<std::byte> to) const;
  // The inputs of a part's graph, for some of that batch's samples. One without samples computes with the batch's first one, for nothing;
  // as one does that lends its samples' shape only.
  struct Part {
    size_t first = 0, samples = 0;
    bool lends = false;
    bool is_idle() const { return samples == 0 || lends; }
  };
  void fill_part(size_t input, const Part& part, std::span<std::byte> to) const;
  // The results of that batch by output of the graph. Throws InvalidArgument for a loss that is not finite.
  void take(std::span<const std::span<const float>> outputs);
  bool is_done() const { return !stopped_because_.empty(); }
  bool is_between_steps() const { return next_.kind.training; }  // else an epoch's evaluation is under way
  bool is_between_epochs() const { return steps_of_epoch_ == 0 && !validation_position_; }
  void add_seconds(double seconds) { seconds_ += seconds; }

  int64_t steps() const { return steps_; }
  double seconds() const { return seconds_; }      // its share of the time spent on all jobs
  double last_loss() const { return last_loss_; }  // of the last epoch that ended
  double running_loss() const { return totals_.samples > 0 ? totals_.loss / totals_.samples : last_loss_; }  // of the epoch so far
  int64_t expected_steps() const;                                                                            // if nothing stops it early
  const std::string& stopped_because() const { return stopped_because_; }  // "epochs" or "early_stopping"; "" while it goes on

  // The history so far: names of columns, and a row an epoch.
  const std::vector<std::string>& columns() const { return columns_; }
  const std::vector<std::vector<double>>& history() const { return history_; }

  // All that the rest of the run depends on, bit for bit, in one file that appears whole or not at all. Between steps.
  void save(const std::string& path) const;
  // Throws InvalidArgument when the file is torn or of another job.
  void resume(const std::string& path);

  // model.keras, history.csv and, if asked for, steps.csv; each appears whole or not at all. `durable` as in OutputFile::commit.
  void write(const std::string& folder, bool durable = true);
  // The model with its final values, or with those of now when it is not done. Nothing else is asked of the trainer afterwards.
  std::shared_ptr<const keras::Model> take_model();

 private:
  // Means over an epoch.
  struct Totals {
    double loss = 0, samples = 0;
    std::vector<std::vector<double>> sums;  // by metric
  };

  void become_keras3();
  void read_compile_options();
  void check_optimizer_start();
  std::vector<bool> measured_outputs() const;  // those with a loss or a metric
  void check_labels() const;
  keras::TrainingOptions options_for(StepKind kind) const;
  void fill_rows(size_t input, std::span<const int64_t> rows, const Part* part, std::span<std::byte> to) const;
  const FitData& data_of(const Batch& batch) const { return batch.kind.training ? data_ : *validation_; }
  FitData& data_of(const Batch& batch) { return batch.kind.training ? data_ : *validation_; }
  void plan_next();
  int64_t steps_at_once() const;
  void expect_next();
  void take_one(std::span<const std::span<const float>> outputs, int64_t step);
  void end_epoch();
  void add_results(const Totals& totals, std::vector<double>& row) const;
  // What callbacks are told of the last row of the history.
  double measured(const std::string& column) const;
  void reduce_learning_rate();
  void finish();
  std::vector<Tensor> snapshot() const;
  void make_order();
  // Where a state stands; nothing when the steps have none of that name.
  std::optional<size_t> place(const std::string& state) const;

  FitJob job_;
  TrainerOptions options_;
  std::unique_ptr<keras::Model> model_;
  FitData data_;
  std::optional<FitData> validation_;
  std::vector<std::string> classes_;  // names, where there are any
  keras::TrainingOptions training_;
  MetricLists metrics_;
  std::optional<keras::Optimizer> optimizer_;
  std::vector<Tensor> optimizer_start_;  // from the file; none: its own
  std::string warning_;
  std::optional<EarlyStopping> stopping_;
  std::optional<ReduceOnPlateau> plateau_;
  std::vector<Tensor> best_;  // weights

  std::shared_ptr<const StepGraph> facts_;
  std::vector<std::string> states_;
  StateValues* values_ = nullptr;
  Batch next_;
  Totals totals_, validation_totals_;  // of the epoch so far
  std::vector<int64_t> order_, validation_order_;
  int64_t position_ = 0, pass_ = 0;             // in the order; which pass over the data it is
  std::optional<int64_t> validation_position_;  // while an epoch's evaluation is under way
  int64_t epoch_ = 0, steps_ = 0, steps_of_epoch_ = 0;
  std::vector<std::string> columns_;  // of the history, behind the epoch
  std::vector<std::vector<double>> history_;
  std::vector<float> losses_;  // by step
  double seconds_ = 0, last_loss_ = 0;
  std::string stopped_because_;
};

}  // namespace tutti
