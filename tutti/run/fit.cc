#include "tutti/run/fit.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <thread>

#include "tutti/base/cores.h"
#include "tutti/base/error.h"
#include "tutti/base/file.h"
#include "tutti/base/start_thread.h"
#include "tutti/base/stopwatch.h"
#include "tutti/device/host.h"
#include "tutti/run/fit_report.h"
#include "tutti/run/fit_setup.h"
#include "tutti/run/forget_results.h"
#include "tutti/run/job_events.h"

namespace tutti {

namespace {

namespace fs = std::filesystem;

constexpr double turn = 0.01;  // seconds: enough that a team finds its weights in the cache, few enough that all jobs move on together

// Many small results are made durable all at once: to wait for the disk for each takes longer than to train it.
constexpr size_t many_results = 8;

// What cannot be told is an error: a run that is to go on must not begin anew.
bool is_there(const std::string& path) {
  std::error_code error;
  const bool out = fs::exists(path, error);
  if (error) fail<InvalidArgument>("fit", "cannot look for '{}': {}", escape(path), error.message());
  return out;
}

// One run of fit().
class Fitting {
 public:
  Fitting(std::vector<FitJob> jobs, const FitOptions& options, const std::function<void(const FitResult&)>& report,
          const std::atomic<bool>& stop)
      : jobs_(std::move(jobs)),
        options_(options),
        report_(report),
        stop_(stop),
        device_(open_device(options.device)),
        trainers_(jobs_.size()),
        durable_(options.has_checkpoints() || jobs_.size() <= many_results) {
    out_.jobs.resize(jobs_.size());
    for (size_t i = 0; i < jobs_.size(); ++i) {
      out_.jobs[i].name = jobs_[i].name;
      events_.emplace_back(options.folder.empty() ? "" : folder(i));
    }
  }

  FitReport run() {
    const Stopwatch start;
    load();
    if (!parallel_plans_.empty()) return run_parallel();
    std::vector<Trainer*> all;
    for (const auto& trainer : trainers_) all.push_back(trainer.get());
    groups_ = group_jobs(all, [&](size_t job, const std::string& reason) { settle(job, reason); });
    make_teams();
    pass_on_warnings();
    begin_progress();
    out_.start_seconds = start.seconds();
    since_ = {};
    std::vector<std::jthread> others;
    try {
      for (size_t i = 1; i < at_once_; ++i)
        others.push_back(start_thread<std::jthread>([this, i, core = this_core()] {
          begin_beside(core, i);
          work();
        }));
    } catch (const DeviceError&) {  // the system gives no more threads; those that there are do it all
    }
    work();
    others.clear();
    out_.seconds = std::max(0.0, since_.seconds() - writing_ / static_cast<double>(at_once_));
    if (failure_) std::rethrow_exception(failure_);
    return conclude();
  }

  // Every job by all devices, one after another.
  void divide(std::vector<ParallelPlan> plans, std::shared_ptr<RankGroup> ranks) {
    parallel_plans_ = std::move(plans);
    ranks_ = std::move(ranks);
    for (const std::string& name : options_.parallel.devices) devices_.push_back(open_device(name));
    if (devices_.empty()) devices_.push_back(device_);
  }

 private:
  bool writes() const { return !options_.folder.empty() && (ranks_ == nullptr || ranks_->rank() == 0); }

  FitReport run_parallel() {
    const Stopwatch watch;
    pass_on_warnings();
    for (size_t i = 0; i < jobs_.size() && !stop_; ++i) {
      const bool begins = trainers_[i] != nullptr && out_.jobs[i].stopped_because.empty();
      try {
        if (ranks_ != nullptr) ranks_->require_same(begins ? "begins" : "does not begin", "job '" + jobs_[i].name + "'");
        if (!begins) continue;
        if (ranks_ != nullptr) ranks_->require_same(trainers_[i]->fingerprint(), "job '" + jobs_[i].name + "'");
        ParallelFit& fit =
            *parallel_.emplace_back(std::make_unique<ParallelFit>(*trainers_[i], devices_, parallel_plans_[i], options_.parallel, ranks_));
        if (options_.resume) resume(i);
        if (ranks_ != nullptr)
          ranks_->require_same(fmt::format("{} {}", out_.jobs[i].stopped_because, trainers_[i]->steps()),
                               "the checkpoint of job '" + jobs_[i].name + "'");
        if (!out_.jobs[i].stopped_because.empty()) continue;
        train(fit, i);
      } catch (const Error& error) {
        if (begins) settle(i, error.what());
      }
    }
    out_.seconds = watch.seconds();
    return conclude();
  }

  FitReport conclude() {
    for (size_t i = 0; i < jobs_.size(); ++i)
      if (trainers_[i] != nullptr) interrupt(i);
    if (writes() && !durable_) make_durable(options_.folder);
    if (writes()) write_page();
    if (options_.folder.empty()) keep_models();
    return std::move(out_);
  }

  void train(ParallelFit& fit, size_t job) {
    // The first steps compile, and find cold caches.
    constexpr int64_t warm = 3;
    Stopwatch watch;
    int64_t seen = 0;
    bool warned = false;
    const auto warn = [&] {
      const std::string text = warned || !options_.warn ? "" : times_of(fit, job, watch.seconds()).warning();
      warned = warned || !text.empty();
      if (!text.empty()) options_.warn(text);
    };
    fit.run([&](Trainer& trainer, const std::string& error) {
      const bool goes_on = after_step(trainer, error) && !stop_;
      if (++seen == warm && goes_on) {
        fit.forget_times();
        watch = {};
      }
      if (seen == warm + ParallelTimes::enough_steps + 1) warn();
      return goes_on;
    });
    warn();
    out_.parallel.push_back(times_of(fit, job, watch.seconds()));
    if (const std::string& path = options_.parallel.trace; !path.empty())
      write_trace(trace_path(path, jobs_.size() > 1 ? jobs_[job].name : "", writes() ? 0 : ranks_->rank()), fit.traced(), jobs_[job].name);
  }

  ParallelTimes times_of(const ParallelFit& fit, size_t job, double seconds) const {
    ParallelTimes out{
        jobs_[job].name, parallel_plans_[job], fit.measured_steps(), seconds, fit.undisturbed_step(), fit.exchanged_bytes(), {},
        fit.json()};
    for (const Timeline* timeline : fit.timelines()) {
      auto& own = out.seconds_by_phase.emplace_back();
      for (int phase = 0; phase < static_cast<int>(Phase::count); ++phase) own.push_back(timeline->seconds(static_cast<Phase>(phase)));
    }
    return out;
  }

  std::string folder(size_t job) const { return options_.folder + "/" + jobs_[job].name; }
  std::string checkpoint(size_t job) const { return folder(job) + "/checkpoint"; }
  std::string checkpoint_before(size_t job) const { return checkpoint(job) + ".before"; }  // the last but one
  bool has_checkpoint(size_t job) const { return is_there(checkpoint(job)) || is_there(checkpoint_before(job)); }
  std::string plan_file() const { return options_.folder + "/plan.json"; }

  void load() {
    FitDataStore data(memory_for_data(options_), options_.folder);
    std::vector<std::string> begun;
    for (size_t i = 0; i < jobs_.size(); ++i) {
      if (options_.resume && !has_checkpoint(i) && is_there(folder(i) + "/model.keras")) {
        out_.jobs[i].stopped_because = "finished_before";
        remember_history(folder(i), out_.jobs[i]);
        report_(out_.jobs[i]);
        continue;
      }
      try {
        trainers_[i] = std::make_unique<Trainer>(jobs_[i], trainer_options(*device_, options_, data));
        index_.emplace(trainers_[i].get(), i);
        begun.push_back(folder(i));
      } catch (const Error& error) {
        settle(i, error.what());
      }
    }
    if (writes() && !options_.resume) forget_results(begun, jobs_);
  }

  // Of jobs that begin. Those of a sweep have the same to say, once.
  void pass_on_warnings() const {
    std::map<std::string, std::vector<size_t>> jobs;
    for (size_t i = 0; i < jobs_.size(); ++i)
      if (trainers_[i] != nullptr && out_.jobs[i].stopped_because.empty() && !trainers_[i]->warning().empty())
        jobs[trainers_[i]->warning()].push_back(i);
    for (const auto& [text, some] : jobs)
      if (options_.warn)
        options_.warn(fmt::format("job '{}'{}: {}", escape(jobs_[some[0]].name),
                                  some.size() > 1 ? fmt::format(" and {} more", some.size() - 1) : "", text));
  }

  void make_teams() {
    at_once_ = teams_at_once(*device_, options_, index_.size());
    const auto known = known_plans();
    for (const auto& group : groups_) {
      auto programs = std::make_shared<SharedPrograms>(*group, device_, at_once_ > 1 ? 1 : options_.threads);
      try {
        const FitPlan* found = nullptr;
        for (const FitPlan& plan : known)
          if (includes(plan.jobs, group->members()[0]->job().name)) found = &plan;
        const FitPlan plan = found != nullptr ? *found : plan_fit(programs, options_.plan, at_once_);
        const size_t members = group->members().size();
        for (size_t first = 0; first < members; first += plan.together) {
          std::vector<size_t> some;
          for (size_t i = first; i < std::min(first + plan.together, members); ++i) some.push_back(i);
          teams_.push_back(std::make_unique<FitTeam>(programs, some, plan.stacked, plan.by_one));
        }
        out_.plans.push_back(plan);
      } catch (const Error& error) {
        for (Trainer* trainer : group->members()) settle(index_.at(trainer), error.what());
      }
    }
    if (options_.resume)
      for (size_t i = 0; i < jobs_.size(); ++i) resume(i);
    if (options_.has_checkpoints()) {
      make_folder(options_.folder);
      write_plans(plan_file(), out_.plans);
    }
    for (const auto& team : teams_) {
      waiting_.push_back(team.get());
      clocks_[team.get()];
    }
    at_once_ = std::min(at_once_, std::max<size_t>(teams_.size(), 1));
  }

  void resume(size_t job) {
    Trainer* trainer = trainers_[job].get();
    if (trainer == nullptr || !out_.jobs[job].stopped_because.empty() || !has_checkpoint(job)) return;
    try {  // a run that was killed between two renames has only the one before
      return trainer->resume(is_there(checkpoint(job)) ? checkpoint(job) : checkpoint_before(job));
    } catch (const Error& error) {
      try {  // the one before it, if that is whole
        if (is_there(checkpoint_before(job))) return trainer->resume(checkpoint_before(job));
      } catch (const Error&) {  // what is wrong with the newer one is told
      }
      settle(job, error.what());
    }
    for (const auto& team : teams_) team->drop(*trainer);
  }

  static bool includes(const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  }

  // Stacked or not, results agree to float accuracy; bit for bit they are those of the same plan.
  std::vector<FitPlan> known_plans() const {
    return options_.resume && is_there(plan_file()) ? read_plans(plan_file()) : std::vector<FitPlan>();
  }

  // Takes teams in turns until none is left.
  void work() {
    while (FitTeam* team = next_team()) {
      const auto stepped = [&](Trainer& trainer, const std::string& error) { return after_step(trainer, error); };
      bool goes_on = true;
      try {
        team->run(turn, at_once_, stepped);
        after_turn(*team);
        goes_on = !team->live().empty();
      } catch (const Error& error) {  // of the device: nobody's alone
        for (Trainer* trainer : team->live()) settle(index_.at(trainer), error.what());
        goes_on = false;
      } catch (...) {
        std::lock_guard lock(mutex_);
        failure_ = std::current_exception();
        waiting_.clear();
        return;
      }
      if (!goes_on) continue;
      std::lock_guard lock(mutex_);
      waiting_.push_back(team);
    }
  }
  FitTeam* next_team() {
    std::lock_guard lock(mutex_);
    if (waiting_.empty() || stop_ || failure_) return nullptr;
    FitTeam* team = waiting_.front();
    waiting_.pop_front();
    return team;
  }

  bool after_step(Trainer& trainer, const std::string& error) {
    const int64_t every = options_.checkpoint_every;
    const bool saves = every != 0 && trainer.steps() % every == 0;
    if (error.empty() && !trainer.is_between_epochs() && !saves) return true;
    const size_t job = index_.at(&trainer);
    if (!error.empty()) {
      settle(job, error);
      return false;
    }
    if (!writes()) {
      if (trainer.is_done()) settle(job, "");
      return !trainer.is_done();
    }
    const Stopwatch writing;
    if (!attempt(job, [&] { events_[job].update(trainer); })) return false;
    if (trainer.is_done()) {
      if (attempt(job, [&] {
            trainer.write(folder(job), durable_);
            clear_checkpoints(folder(job));
          }))
        settle(job, "");
      std::lock_guard lock(mutex_);
      writing_ += writing.seconds();
      return false;
    }
    return !saves || attempt(job, [&] { save(job); });
  }

  // The one before stays until the next, whatever becomes of this one.
  void save(size_t job) {
    make_folder(folder(job));
    const std::string next = checkpoint(job) + ".next";
    trainers_[job]->save(next);
    if (is_there(checkpoint(job))) fs::rename(checkpoint(job), checkpoint_before(job));
    fs::rename(next, checkpoint(job));
  }

  // Between the turns of a team: checkpoints by time, and what is shown meanwhile.
  struct TeamClocks {
    Stopwatch saved, shown;
  };
  void after_turn(FitTeam& team) {
    TeamClocks& clocks = clocks_.at(&team);
    if (options_.checkpoint_minutes > 0 && clocks.saved.seconds() >= options_.checkpoint_minutes * 60) {
      for (Trainer* trainer : team.live())
        if (trainer->is_between_steps() && !attempt(index_.at(trainer), [&] { save(index_.at(trainer)); })) team.drop(*trainer);
      clocks.saved = {};
    }
    if (!options_.progress || clocks.shown.seconds() < seconds_between_tables) return;
    clocks.shown = {};
    std::lock_guard lock(mutex_);
    for (const Trainer* trainer : team.live()) note(index_.at(trainer));
    if (shown_ && shown_->seconds() < seconds_between_tables) return;
    shown_.emplace();
    show();
  }

  static constexpr double seconds_between_tables = 0.2;
  void begin_progress() {
    if (!options_.progress) return;
    noted_.resize(jobs_.size());
    for (size_t i = 0; i < jobs_.size(); ++i) {
      if (trainers_[i] == nullptr) continue;
      note(i);
      steps_before_ += noted_[i].steps;
    }
  }
  void note(size_t job) {
    const Trainer& trainer = *trainers_[job];
    noted_[job] = {jobs_[job].name,          static_cast<int64_t>(trainer.history().size()),
                   jobs_[job].epochs,        trainer.steps(),
                   trainer.expected_steps(), trainer.running_loss(),
                   trainer.seconds()};
  }
  void show() {
    FitProgress now;
    now.jobs = jobs_.size();
    now.seconds = since_.seconds();
    for (size_t i = 0; i < jobs_.size(); ++i) {
      const FitResult& result = out_.jobs[i];
      const bool ended = !result.stopped_because.empty();
      const int64_t steps = ended ? result.steps : noted_[i].steps;
      now.steps_in_all += steps;
      now.expected_steps += ended ? steps : noted_[i].expected_steps;
      now.failed += !result.error.empty();
      now.done += ended && result.error.empty();
      if (ended) continue;
      now.most_left = std::max(now.most_left, noted_[i].expected_steps - steps);
      now.running.push_back(noted_[i]);
    }
    now.steps = now.steps_in_all - steps_before_;
    options_.progress(now);
  }

  void write_page() const {
    std::vector<ReportedJob> jobs;
    for (size_t i = 0; i < jobs_.size(); ++i) {
      const FitResult& result = out_.jobs[i];
      ReportedJob job{result.name, result.stopped_because, result.error, result.steps, result.seconds, result.columns, result.history};
      if (const Trainer* trainer = trainers_[i].get()) {
        job.columns = trainer->columns();
        job.history = trainer->history();
      }
      jobs.push_back(std::move(job));
    }
    FitFacts facts{options_.device, out_.seconds, {}};
    for (const FitPlan& plan : out_.plans)
      if (plan.jobs.size() > 1)
        facts.plans.push_back(fmt::format("{} jobs alike: {}", plan.jobs.size(),
                                          plan.stacked ? fmt::format("stacked, {} in a program", plan.together) : "each by itself"));
    if (facts.plans.size() > 5) facts.plans.resize(5);
    make_folder(options_.folder);
    OutputFile file(options_.folder + "/report.html");
    file.write(fit_page(jobs, facts));
    file.commit();
  }

  void keep_models() {
    for (size_t i = 0; i < jobs_.size(); ++i) {
      if (trainers_[i] == nullptr) continue;
      out_.jobs[i].columns = trainers_[i]->columns();
      out_.jobs[i].history = trainers_[i]->history();
      if (out_.jobs[i].error.empty()) out_.jobs[i].model = trainers_[i]->take_model();
    }
  }

  bool attempt(size_t job, const auto& work) {
    try {
      work();
      return true;
    } catch (const Error& error) {
      settle(job, error.what());
    } catch (const fs::filesystem_error& error) {
      settle(job, fmt::format("[fit] {}", error.what()));
    }
    return false;
  }

  // The end of a job. Its trainer stays: its team may still compute with its place.
  void settle(size_t job, const std::string& error) {
    std::lock_guard lock(mutex_);
    FitResult& result = out_.jobs[job];
    if (const Trainer* trainer = trainers_[job].get()) {
      result.steps = trainer->steps();
      result.seconds = trainer->seconds();
      result.loss = trainer->last_loss();
      result.stopped_because = trainer->stopped_because();
    }
    if (!error.empty()) result.stopped_because = "error";
    result.error = error;
    report_(result);
  }

  // What was still under way when all was to end.
  void interrupt(size_t job) {
    FitResult& result = out_.jobs[job];
    if (!result.stopped_because.empty()) return;
    // One that has not begun has nothing to keep, and may have the checkpoint of an earlier run.
    const bool saves = options_.has_checkpoints() && writes() && trainers_[job]->steps() > 0 && trainers_[job]->is_between_steps();
    if (saves && !attempt(job, [&] { save(job); })) return;
    result.steps = trainers_[job]->steps();
    result.seconds = trainers_[job]->seconds();
    result.loss = trainers_[job]->last_loss();
    result.stopped_because = "interrupted";
  }

  const std::vector<FitJob> jobs_;
  const FitOptions& options_;
  const std::function<void(const FitResult&)>& report_;
  const std::atomic<bool>& stop_;
  std::shared_ptr<Device> device_;
  std::vector<std::unique_ptr<Trainer>> trainers_;
  const bool durable_;  // each result by itself
  std::vector<JobEvents> events_;
  std::map<const Trainer*, size_t> index_;
  std::vector<std::unique_ptr<FitGroup>> groups_;
  std::vector<std::unique_ptr<FitTeam>> teams_;
  size_t at_once_ = 1;  // teams that run side by side
  std::map<const FitTeam*, TeamClocks> clocks_;
  Stopwatch since_;  // the first step
  int64_t steps_before_ = 0;
  std::vector<ParallelPlan> parallel_plans_;      // by job, where batches are divided
  std::vector<std::shared_ptr<Device>> devices_;  // that divide them
  std::vector<std::unique_ptr<ParallelFit>> parallel_;
  std::shared_ptr<RankGroup> ranks_;

  std::mutex mutex_;  // of what stands below, while they run
  std::deque<FitTeam*> waiting_;
  std::exception_ptr failure_;
  double writing_ = 0;  // seconds spent on results
  std::vector<JobProgress> noted_;
  std::optional<Stopwatch> shown_;
  FitReport out_;
};

}  // namespace

FitReport fit(const std::vector<FitJob>& jobs, const FitOptions& options, const std::function<void(const FitResult&)>& report,
              const std::atomic<bool>& stop) {
  if (!options.folder.empty()) make_folder(options.folder);  // told before hours of training, not behind them
  const std::shared_ptr<RankGroup> ranks = join_ranks(options.parallel.deadline);
  std::vector<FitJob> divided = jobs;
  std::vector<ParallelPlan> plans = divide_jobs(divided, options, ranks.get());
  FitOptions chosen = options;
  if (!plans.empty()) chosen.steps_per_launch = 1;
  Fitting fitting(std::move(divided), chosen, report, stop);
  fitting.divide(std::move(plans), ranks);
  if (ranks == nullptr) return fitting.run();
  struct Heeding {
    RankGroup& ranks;
    ~Heeding() { ranks.heed(nullptr); }
  } const heeding{*ranks};
  ranks->heed(&stop);
  return fitting.run();
}

}  // namespace tutti
