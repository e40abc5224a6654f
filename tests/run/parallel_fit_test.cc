// Training by several replicas: the same weights as one device gives, whatever their number, and the same bits in every run.
#include "tutti/run/parallel_fit.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/run/parallel_jobs.h"
#include "tutti/base/error.h"
#include "tutti/run/fit.h"
#include "tutti/transform/replicate.h"

namespace tutti {
namespace {

TEST(parallel_fit, any_number_of_replicas_and_small_batches_give_the_same_weights) {
  const Scratch scratch;
  for (const SmallModel& model : models()) {
    const FitJob job = job_of(scratch, model);
    const Trained one = train(job, 1, 1);
    for (int64_t replicas : {1, 2, 3, 4, 8})
      for (int64_t small : {1, 2, 4})
        if (replicas * small > 1)
          expect_near(one, train(job, replicas, small), 1e-5, fmt::format("{} x {}, {} small batches", model.name, replicas, small));
  }
}

TEST(parallel_fit, replicas_are_equal_bit_for_bit_in_every_run) {
  const Scratch scratch;
  const FitJob job = job_of(scratch, models()[2]);
  const Trained first = train(job, 3, 1), again = train(job, 3, 1);
  for (size_t i = 0; i < first.values.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(first.values[i].bytes(), again.values[i].bytes())) << first.names[i];
  EXPECT_EQ(first.history, again.history);
}

// The states of programs that were compiled with them.
class NamedStates : public StateValues {
 public:
  StateBuffers buffers;
  std::vector<std::string> names;
  Tensor read(size_t i) const override {
    Tensor out(buffers.at(names[i])->type());
    std::ranges::copy(buffers.at(names[i])->host(), out.bytes().begin());
    return out;
  }
  void write(size_t, const Tensor&) override {}
};

TEST(parallel_fit, one_replica_is_what_fit_does_alone) {
  const Scratch scratch;
  const FitJob job = job_of(scratch, models()[2]);
  Trainer trainer(job);
  NamedStates states;
  auto step = std::make_shared<StepGraph>(trainer.graph({true, 16}));
  for (const Node* state : step->graph.parameters(Graph::Role::state)) states.names.push_back(state->attributes.text("name"));
  trainer.describe(step, states.names);
  trainer.attach(&states);
  const auto device = open_device("cpu");
  std::map<StepKind, std::unique_ptr<Program>> programs;
  while (!trainer.is_done()) {
    auto& program = programs[trainer.next().kind];
    if (program == nullptr) {
      CompileSettings settings;
      settings.states = &states.buffers;
      program = device->compile(trainer.graph(trainer.next().kind).graph, settings);
    }
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::vector<Buffer*> inputs, outputs;
    for (const Type& type : program->input_types()) inputs.push_back(buffers.emplace_back(device->allocate(type)).get());
    for (const Type& type : program->output_types()) outputs.push_back(buffers.emplace_back(device->allocate(type)).get());
    for (size_t i = 0; i < inputs.size(); ++i) trainer.fill(i, inputs[i]->host());
    program->run(inputs, outputs);
    std::vector<std::span<const float>> results;
    for (Buffer* output : outputs) results.emplace_back(reinterpret_cast<const float*>(output->host().data()), output->host().size() / 4);
    trainer.take(results);
  }
  const Trained parallel = train(job, 1, 1);
  ASSERT_EQ(parallel.names, states.names);
  for (size_t i = 0; i < states.names.size(); ++i) EXPECT_LE(difference(parallel.values[i], states.read(i)), 1e-5) << states.names[i];
}

TEST(parallel_fit, batch_normalization_by_the_whole_batch_equals_one_device) {
  const Scratch scratch;
  const SmallModel model{"normalized", "dense 16; batch_normalization; activation tanh; dense 4 softmax", {9}, momentum};
  const FitJob job = job_of(scratch, model);
  const Trained one = train(job, 1, 1, true);
  for (int64_t replicas : {2, 3}) expect_near(one, train(job, replicas, 1, true), 2e-5, fmt::format("{} replicas", replicas));
  // By each device's own part it is another model, whose statistics are still those of all replicas.
  const Trained local = train(job, 2, 1, false);
  double apart = 0;
  for (size_t i = 0; i < one.values.size(); ++i) apart = std::max(apart, difference(one.values[i], local.values[i]));
  EXPECT_GT(apart, 1e-4);
  EXPECT_THROW(train(job, 1, 2, true), Unsupported);
}

TEST(parallel_fit, more_replicas_than_samples_are_of_no_harm) {
  const Scratch scratch;
  FitJob job = job_of(scratch, models()[0]);
  job.batch_size = 3;
  job.epochs = 2;
  expect_near(train(job, 1, 1), train(job, 8, 1), 1e-5, "8 replicas of 3 samples");
}

TEST(parallel_fit, sums_over_the_batch_leave_out_replicas_without_samples) {
  const Scratch scratch;
  FitJob job = job_of(scratch, {"overlap", "dense 6 tanh; dense 4 sigmoid", {9}, momentum});
  Tensor truths = wave_tensor({45, 4}, 0.9);
  for (float& truth : truths.as<float>()) truth = truth > 0 ? 1 : 0;
  write_npy(job.y.file, truths);
  job.metrics = {};
  job.batch_size = 3;
  job.epochs = 2;
  for (const char* loss : {"dice", "tversky", "squared_hinge"}) {
    job.loss = loss;
    expect_near(train(job, 1, 1), train(job, 8, 1), 1e-5, fmt::format("8 replicas of 3 samples, {}", loss));
  }
}

TEST(parallel_fit, jobs_that_had_not_begun_when_all_was_stopped_begin_later) {
  const Scratch scratch;
  FitJob first = job_of(scratch, models()[0]);
  first.epochs = 2;
  FitJob second = first;
  second.name = "second";
  FitOptions options;
  options.folder = scratch.path("out");
  options.checkpoint_every = 1;
  options.parallel.devices = {"cpu", "cpu"};
  std::atomic<bool> stop = false;
  const auto nothing = [](const FitResult&) {};
  const FitReport stopped = fit(
      {first, second}, options, [&](const FitResult&) { stop = true; }, stop);
  EXPECT_EQ(stopped.jobs[0].stopped_because, "epochs");
  EXPECT_EQ(stopped.jobs[1].stopped_because, "interrupted");
  options.resume = true;
  stop = false;
  const FitReport done = fit({first, second}, options, nothing, stop);
  EXPECT_EQ(done.jobs[0].stopped_because, "finished_before");
  EXPECT_EQ(done.jobs[1].error, "");
  EXPECT_EQ(done.jobs[1].stopped_because, "epochs");
}

TEST(parallel_fit, a_loss_that_is_not_finite_ends_it_and_says_so) {
  const Scratch scratch;
  EXPECT_NE(error_of(overflowing(scratch), "cpu").find("the loss of step"), std::string::npos);
}

// Ranks of this process: of one host, that nobody watches.
class RanksHere : public RankGroup {
 public:
  const std::string& host(int) const override { return host_; }
  void require_same(const std::string&, const std::string&) override {}
  void watch(Timeline*) override {}
  void heed(const std::atomic<bool>*) override {}
  void put(const std::string&, const std::string&) override {}
  std::optional<std::string> get(const std::string&, double) override { return {}; }
  void abort(int) override { std::abort(); }

 private:
  std::string host_ = "here";
};

// A rank whose partner is always at the same place: sums are its own. It remembers which memory each exchange had, and spoils it once the
// update is done.
class Alone : public RanksHere {
 public:
  std::vector<std::vector<Part>> known, begun;  // by bucket: of the first step, of the step at hand
  int steps = 0, early = 0;                     // early: the memory of the last bucket was still spoiled when the first one began
  void sum(DType, std::span<const Part>) override {}
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void start(std::vector<Part> parts) override {
    if (begun.empty() && !known.empty() && is_spoiled(known.back())) ++early;
    begun.push_back(std::move(parts));
  }
  void finish() override {
    if (begun.empty()) return;
    if (known.empty()) known = begun;
    ASSERT_EQ(begun.size(), known.size());
    for (size_t i = 0; i < known.size(); ++i) EXPECT_EQ(begun[i][0].from, known[i][0].from) << "another order of buckets";
    begun.clear();
    ++steps;
  }
  std::vector<double> gather(std::span<const double> own) override {
    for (const auto& bucket : known)
      for (const Part& part : bucket) std::fill_n(part.to, static_cast<size_t>(part.elements) * sizeof(float), spoiled);
    std::vector<double> out(own.begin(), own.end());
    out.insert(out.end(), own.begin(), own.end());
    return out;
  }
  std::shared_ptr<std::byte> share(size_t) override { return {}; }
  bool meet(Barrier&, const std::function<bool()>&) override { return true; }

 private:
  static constexpr std::byte spoiled{0x7f};
  static bool is_spoiled(const std::vector<Part>& bucket) {
    for (const Part& part : bucket)
      if (std::any_of(part.from, part.from + static_cast<size_t>(part.elements) * sizeof(float), [](std::byte b) { return b != spoiled; }))
        return false;
    return true;
  }
};

TEST(parallel_fit, exchanges_begin_before_the_last_gradient_is_there) {
  const Scratch scratch;
  FitJob job = job_of(scratch, {"deep", "dense 64 tanh; dense 64 tanh; dense 64 tanh; dense 4 softmax", {9}, momentum});
  job.epochs = 2;
  ParallelOptions options;
  options.threads = 1;
  options.bucket = 8 << 10;
  const ParallelPlan plan = plan_parallel(job, options, 2, 2);
  Trainer trainer(job);
  const auto ranks = std::make_shared<Alone>();
  ParallelFit fit(trainer, {open_device("cpu")}, plan, options, ranks);
  fit.run([](Trainer&, const std::string&) { return true; });
  EXPECT_EQ(ranks->steps, 6);
  EXPECT_EQ(ranks->early, 5) << "all steps but the first, which has nothing to compare with";
  EXPECT_EQ(ranks->known.size(), 3u);
  EXPECT_EQ(fit.json().at("buckets").as_int(), 3);
}

// Ranks that are threads of this process, whose memory is what ranks of one machine share.
struct OneMachine {
  explicit OneMachine(int ranks) : size(ranks), barrier(ranks, false) {}
  int size;
  Barrier barrier;
  std::vector<double> numbers;
  std::shared_ptr<std::byte> memory;
  int broken = -1;  // this rank's sums fail
};

class Neighbour : public RanksHere {
 public:
  Neighbour(OneMachine& machine, int rank) : machine_(machine), rank_(rank) {}
  void sum(DType, std::span<const Part>) override {
    if (rank_ == machine_.broken) fail<DeviceError>("test", "no sums today");
  }
  int rank() const override { return rank_; }
  int size() const override { return machine_.size; }
  void start(std::vector<Part>) override { FAIL() << "a message"; }
  void finish() override {}
  std::vector<double> gather(std::span<const double> own) override {
    if (rank_ == 0) machine_.numbers.resize(own.size() * static_cast<size_t>(machine_.size));
    machine_.barrier.wait();
    std::ranges::copy(own, machine_.numbers.begin() + std::ssize(own) * rank_);
    machine_.barrier.wait();
    std::vector<double> out = machine_.numbers;
    machine_.barrier.wait();
    return out;
  }
  std::shared_ptr<std::byte> share(size_t bytes) override {
    if (rank_ == 0) {
      const Tensor zeros = Tensor(DType::u8, {static_cast<int64_t>(bytes)});
      machine_.memory = {const_cast<std::byte*>(zeros.bytes().data()), [zeros](std::byte*) {}};
      std::fill_n(machine_.memory.get(), bytes, std::byte{0});
    }
    machine_.barrier.wait();
    return machine_.memory;
  }
  bool meet(Barrier& barrier, const std::function<bool()>& gives_up) override { return barrier.wait_unless(gives_up); }

 private:
  OneMachine& machine_;
  int rank_;
};

// What each rank has in the end, or says.
struct OfRanks {
  std::vector<Trained> trained;
  std::vector<std::string> errors;
};

OfRanks train_by_ranks(const FitJob& job, OneMachine& machine, int64_t accumulate, bool synchronizes = false) {
  const auto count = static_cast<size_t>(machine.size);
  OfRanks out{std::vector<Trained>(count), std::vector<std::string>(count)};
  std::vector<std::jthread> ranks;
  for (size_t r = 0; r < count; ++r)
    ranks.emplace_back([&, r] {
      FitJob own = job;
      ParallelOptions options;
      options.threads = 1;
      options.accumulate = accumulate;
      options.synchronizes = synchronizes;
      const ParallelPlan plan = plan_parallel(own, options, machine.size, 2);
      Trainer trainer(own);
      try {
        ParallelFit fit(trainer, {open_device("cpu")}, plan, options, std::make_shared<Neighbour>(machine, static_cast<int>(r)));
        fit.run([](Trainer&, const std::string&) { return true; });
        out.trained[r] = {trainer.states(), {}, trainer.history()};
        for (size_t i = 0; i < trainer.states().size(); ++i) out.trained[r].values.push_back(fit.read(i));
      } catch (const Error& error) {
        out.errors[r] = error.what();
      }
    });
  ranks.clear();
  return out;
}

TEST(parallel_fit, ranks_of_one_machine_share_memory_and_are_equal_to_threads_bit_for_bit) {
  const Scratch scratch;
  for (const SmallModel& model : models())
    for (int replicas : {2, 3}) {
      const FitJob job = job_of(scratch, model);
      OneMachine machine(replicas);
      const OfRanks ranks = train_by_ranks(job, machine, replicas - 1);
      const Trained threads = train(job, replicas, replicas - 1);
      for (size_t r = 0; r < ranks.trained.size(); ++r) {
        ASSERT_EQ(ranks.errors[r], "");
        EXPECT_EQ(ranks.trained[r].history, threads.history);
        for (size_t i = 0; i < threads.values.size(); ++i)
          EXPECT_TRUE(std::ranges::equal(ranks.trained[r].values[i].bytes(), threads.values[i].bytes()))
              << model.name << r << threads.names[i];
      }
    }
}

TEST(parallel_fit, ranks_of_one_machine_end_when_one_has_failed) {
  const Scratch scratch;
  const FitJob job = job_of(scratch, {"normalized", "dense 16; batch_normalization; dense 4 softmax", {9}, momentum});
  OneMachine machine(3);
  machine.broken = 1;
  const OfRanks ranks = train_by_ranks(job, machine, 1, true);
  EXPECT_EQ(ranks.errors[0], "[mpi] rank 1 on here has failed");
  EXPECT_EQ(ranks.errors[1], "[test] no sums today");
  EXPECT_EQ(ranks.errors[2], ranks.errors[0]);
}

TEST(parallel_fit, early_stopping_best_weights_and_a_plateau_are_those_of_one_device) {
  const Scratch scratch;
  const FitJob job = stopping_early(scratch);
  const Trained one = train(job, 1, 1);
  EXPECT_LT(std::ssize(one.history), job.epochs);
  expect_near(one, train(job, 2, 1), 1e-5, "2 replicas");
  OneMachine machine(2);
  for (const Trained& rank : train_by_ranks(job, machine, 1).trained) expect_near(one, rank, 1e-5, "2 ranks");
}

TEST(parallel_fit, buckets_are_larger_where_starting_an_exchange_costs_more) {
  EXPECT_EQ(bucket_for(0, 1e9), least_bucket_bytes);
  EXPECT_EQ(bucket_for(50e-6, 1e9), 512 << 10);
  EXPECT_EQ(bucket_for(100e-6, 10e9), 16 << 20);
  EXPECT_EQ(bucket_for(1, 1e12), most_bucket_bytes);
}

TEST(parallel_fit, who_trains_slower_with_several_devices_is_told_which_batch_would_do) {
  ParallelTimes times;
  times.job = "a";
  times.plan.replicas = 2;
  times.plan.global_batch = 128;
  times.steps = 100;
  const auto set = [&](double compute, double exchange) {
    std::vector<double> phases(static_cast<size_t>(Phase::count));
    phases[static_cast<size_t>(Phase::compute)] = compute * 100;
    phases[static_cast<size_t>(Phase::exchange)] = exchange * 100;
    times.seconds_by_phase = {phases, phases};
  };
  set(0.4e-3, 1.1e-3);
  EXPECT_EQ(
      times.warning(),
      "job 'a': 2 devices are not faster than one: 0.4 ms a step computing, 1.1 ms between; hint: --devices 1, or batches of 1024 and "
      "more; tutti scale says why");
  set(1.1e-3, 0.4e-3);
  EXPECT_EQ(times.warning(), "");
  set(0.4e-3, 1.1e-3);
  times.steps = ParallelTimes::enough_steps - 1;
  EXPECT_EQ(times.warning(), "") << "too few to tell";
}

TEST(parallel_fit, plans_say_how_a_batch_is_divided) {
  FitJob job;
  job.batch_size = 32;
  ParallelOptions options;
  options.per_device_batch = 16;
  options.accumulate = 2;
  options.lr_scale = "linear";
  options.warmup_steps = 10;
  const ParallelPlan plan = plan_parallel(job, options, 4, 8);
  EXPECT_EQ(plan.global_batch, 128);
  EXPECT_EQ(plan.rate_factor, 4);
  EXPECT_EQ(plan.threads, 2);
  EXPECT_EQ(plan.text(),
            "global batch 128 = 4 devices x 16 samples x 2 small batches, 2 threads each, learning rate x 4 after 10 steps of warm-up");
  options.global_batch = 100;
  EXPECT_THROW(plan_parallel(job, options, 4, 8), InvalidArgument);
  EXPECT_EQ(parse_devices("3", "cpu"), std::vector<std::string>(3, "cpu"));
  EXPECT_EQ(parse_devices("cpu:0,cpu:1", "cpu"), std::vector<std::string>(2, "cpu"));
  EXPECT_THROW(parse_devices("cpu:0,cpu:0", "cpu"), InvalidArgument);
  EXPECT_THROW(parse_devices("cpu:0,reference", "cpu"), InvalidArgument);
  EXPECT_THROW(parse_devices("0", "cpu"), InvalidArgument);
}

}  // namespace
}  // namespace tutti
