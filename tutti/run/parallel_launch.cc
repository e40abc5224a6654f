// Replicas that are devices of one plugin, of this host or, where ranks are given, of as many hosts: a batch that can be divided evenly is
// one launch on all of them, gradients meeting inside of the program. Parts of several sizes, and small batches one after another, are
// programs of each device, and what becomes of their gradients is the launch.
#include <algorithm>
#include <cstring>
#include <deque>

#include "tutti/base/error.h"
#include "tutti/run/parallel_host.h"
#include "tutti/transform/replicate.h"

namespace tutti {

namespace {

using Devices = std::vector<std::shared_ptr<Device>>;

// A program with its arguments, on one device or by replica on all of them.
struct Launch {
  std::unique_ptr<Program> program;
  std::vector<std::unique_ptr<Buffer>> own;
  std::vector<Buffer*> inputs, outputs;  // by replica, then by index
  size_t filled = 0, results = 0;        // of each replica's: from the data; loss and metrics

  void run() { program->run(inputs, outputs); }
};

bool meets_in_the_middle(const Graph& graph) {
  for (const Node& node : graph.nodes())
    if (node.op == Op::all_reduce || (node.body != nullptr && meets_in_the_middle(*node.body))) return true;
  return false;
}

class LaunchedReplicas : public Replicas {
 public:
  LaunchedReplicas(const ReplicaSettings& settings, Devices devices, std::shared_ptr<RankGroup> ranks)
      : settings_(settings), devices_(std::move(devices)), ranks_(std::move(ranks)), states_(devices_.size()), results_(devices_.size()) {
    if (ranks_ != nullptr) find_others();
    const auto& names = programs().states();
    const std::vector<Tensor> values = settings_.trainer.first_values(names);
    for (size_t r = 0; r < devices_.size(); ++r) {
      timelines_.emplace_back(static_cast<int>(first_ + r), settings_.keeps_spans);
      for (size_t i = 0; i < names.size(); ++i) {
        states_[r][names[i]] = devices_[r]->allocate(values[i].type());
        devices_[r]->to_device(values[i].bytes(), *states_[r][names[i]]);
      }
    }
    // All of them now: XLA takes longer to compile one than a small model takes for a hundred steps.
    for (const StepKind& kind : settings_.trainer.kinds()) prepare(kind.training, static_cast<size_t>(kind.batch));
  }

  std::vector<const PartResults*> step(const Trainer& trainer) override {
    const auto& batch = trainer.next();
    for (PartResults& results : results_) results.assign(programs().results(), {});
    if (const auto parts = even_parts(batch.kind.training, batch.rows.size())) {
      launch(trainer, *parts);
    } else {
      compute_parts(trainer);
      if (batch.kind.training) update();
    }
    if (ranks_ != nullptr) gather_results();
    std::vector<const PartResults*> out;
    for (const PartResults& results : ranks_ == nullptr ? results_ : all_) out.push_back(&results);
    return out;
  }

  bool agree(bool goes_on) override { return ranks_ == nullptr ? goes_on : ranks_->agree(goes_on); }

  std::vector<Timeline*> timelines() override {
    std::vector<Timeline*> out;
    for (Timeline& timeline : timelines_) out.push_back(&timeline);
    return out;
  }

  Tensor read(size_t state) const override {
    Buffer& buffer = *states_[0].at(programs().states()[state]);
    Tensor out(buffer.type());
    devices_[0]->to_host(buffer, out.bytes());
    return out;
  }
  void write(size_t state, const Tensor& value) override {
    for (size_t r = 0; r < devices_.size(); ++r) devices_[r]->to_device(value.bytes(), *states_[r].at(programs().states()[state]));
  }

 private:
  PartPrograms& programs() const { return *settings_.programs; }
  size_t replicas() const { return static_cast<size_t>(settings_.plan.replicas); }

  // The devices of all ranks, each of which has as many.
  void find_others() {
    ranks_->require_same(fmt::format("{} devices", devices_.size()), "the number of devices");
    first_ = static_cast<size_t>(ranks_->rank()) * devices_.size();
    std::vector<double> own;
    for (const auto& device : devices_) own.push_back(static_cast<double>(device->number()));
    for (double number : ranks_->gather(own)) numbers_.push_back(static_cast<int64_t>(number));
  }

  // Every rank is told all results, and adds them up in the same order.
  void gather_results() {
    std::vector<double> flat;
    for (const PartResults& results : results_)
      for (const auto& output : results) flat.insert(flat.end(), output.begin(), output.end());
    const std::vector<double> values = ranks_->gather(flat);
    all_.clear();
    for (size_t r = 0; r < replicas(); ++r) all_.push_back(shaped_like(results_[0], values.data() + r * values.size() / replicas()));
  }

  // All replicas do the same at the same time.
  class Span {
   public:
    Span(LaunchedReplicas& replicas, Phase phase) : replicas_(replicas), phase_(phase) {}
    ~Span() {
      for (Timeline& timeline : replicas_.timelines_) timeline.add(phase_, begin_, Timeline::Clock::now());
    }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    LaunchedReplicas& replicas_;
    Phase phase_;
    Timeline::Clock::time_point begin_ = Timeline::Clock::now();
  };

  // The parts of these devices, of one size on all replicas, which one program needs; nothing where they differ. A step that needs sums in
  // its middle is one program in any case: then as many replicas as that allows have the samples, and the others compute for nothing.
  std::optional<std::vector<Trainer::Part>> even_parts(bool training, size_t samples) {
    size_t busy = settings_.plan.accumulate == 1 ? replicas() : 0;
    if (busy == 0 || (samples % replicas() != 0 && !meets(training))) return {};
    while (samples % busy != 0) --busy;
    std::vector<Trainer::Part> out;
    for (size_t r = first_; r < first_ + devices_.size(); ++r)
      out.push_back({r < busy ? samples / busy * r : 0, samples / busy, r >= busy});
    return out;
  }

  bool meets(bool training) {
    std::optional<bool>& known = meets_[training ? 1 : 0];
    if (!known) known = meets_in_the_middle(programs().graph({training, 1}, false));
    return *known;
  }

  Launch& launch_for(StepKind kind) {
    std::unique_ptr<Launch>& made = launches_[kind];
    if (made != nullptr) return *made;
    const Graph graph =
        kind.training ? std::move(settings_.trainer.replicated_graph(kind, settings_.parts).graph) : programs().graph(kind, false);
    made = compile_for_all(graph);
    made->filled = made->program->input_types().size() / devices_.size();
    made->results = programs().results();
    allocate(*made, made->program->input_types(), made->inputs, devices_.size());
    allocate(*made, made->program->output_types(), made->outputs, devices_.size());
    return *made;
  }

  std::unique_ptr<Launch> compile_for_all(const Graph& graph) {
    CompileSettings compiled;
    compiled.states = states_.data();
    compiled.replicas = devices_;
    compiled.replica_numbers = numbers_;
    auto out = std::make_unique<Launch>();
    out->program = devices_[0]->compile(graph, compiled);
    return out;
  }

  void allocate(Launch& to, const std::vector<Type>& types, std::vector<Buffer*>& pointers, size_t replicas) {
    for (size_t i = 0; i < types.size(); ++i)
      pointers.push_back(to.own.emplace_back(devices_[i * replicas / types.size()]->allocate(types[i])).get());
  }

  void launch(const Trainer& trainer, const std::vector<Trainer::Part>& parts) {
    Launch& all = launch_for({trainer.next().kind.training, static_cast<int64_t>(parts[0].samples)});
    fill(trainer, all, parts, 0);
    {
      const Span span(*this, Phase::compute);
      all.run();
      slow_down_compute();
      take(all, parts, 0);
    }
    if (trainer.next().kind.training) slow_down_exchange();
  }

  // The program of one replica's part; `adds` to the sums of the small batches before.
  Launch& part_for(size_t replica, StepKind kind, bool adds) {
    std::unique_ptr<Launch>& made = parts_[{replica, kind, adds}];
    if (made != nullptr) return *made;
    if (sums_.empty())
      for (const auto& device : devices_)
        for (const Type& type : programs().sums()) sums_.push_back(device->allocate(type));
    made = std::make_unique<Launch>();
    CompileSettings compiled;
    compiled.states = &states_[replica];
    made->program = devices_[replica]->compile(programs().graph(kind, adds), compiled);
    const size_t sums = programs().sums().size();
    const auto& inputs = made->program->input_types();
    const auto& outputs = made->program->output_types();
    made->filled = inputs.size() - (adds ? sums : 0);
    made->results = programs().results();
    for (size_t i = 0; i < made->filled; ++i) made->inputs.push_back(made->own.emplace_back(devices_[replica]->allocate(inputs[i])).get());
    for (size_t i = 0; i < made->results; ++i)
      made->outputs.push_back(made->own.emplace_back(devices_[replica]->allocate(outputs[i])).get());
    for (size_t i = 0; i < sums; ++i) {
      if (adds) made->inputs.push_back(sums_[replica * sums + i].get());
      if (kind.training) made->outputs.push_back(sums_[replica * sums + i].get());
    }
    return *made;
  }

  void prepare(bool training, size_t samples) {
    if (const auto parts = even_parts(training, samples)) return void(launch_for({training, static_cast<int64_t>(parts->at(0).samples)}));
    for (size_t small = 0; small < small_batches(); ++small)
      for (size_t r = 0; r < devices_.size(); ++r) part_of(training, samples, small, r);
    if (training) prepare_update();
  }

  size_t small_batches() const { return static_cast<size_t>(settings_.plan.accumulate); }

  std::pair<Launch*, Trainer::Part> part_of(bool training, size_t samples, size_t small, size_t replica) {
    const Trainer::Part part = Division{first_ + replica, replicas(), small_batches()}.part(small, samples);
    const StepKind kind{training, std::max<int64_t>(static_cast<int64_t>(part.samples), 1)};
    return {&part_for(replica, kind, training && small > 0), part};
  }

  void compute_parts(const Trainer& trainer) {
    const auto& batch = trainer.next();
    for (size_t small = 0; small < small_batches(); ++small) {
      std::vector<Launch*> launches;
      std::vector<Trainer::Part> parts;
      for (size_t r = 0; r < devices_.size(); ++r) {
        const auto [launch, part] = part_of(batch.kind.training, batch.rows.size(), small, r);
        launches.push_back(launch);
        parts.push_back(part);
      }
      for (size_t r = 0; r < devices_.size(); ++r) {
        fill(trainer, *launches[r], {&parts[r], 1}, r);
        const Span span(*this, Phase::compute);
        launches[r]->run();
      }
      const Span span(*this, Phase::compute);
      slow_down_compute();
      for (size_t r = 0; r < devices_.size(); ++r) take(*launches[r], {&parts[r], 1}, r);
    }
  }

  void prepare_update() {
    if (update_ != nullptr) return;
    update_ = compile_for_all(reduce_inputs(programs().update(), settings_.plan.replicas));
    for (const auto& sum : sums_) update_->inputs.push_back(sum.get());
  }

  void update() {
    prepare_update();
    slow_down_exchange();
    const Span span(*this, Phase::update);
    update_->run();
  }

  // Parts of the batch into the inputs of the replicas from `first` on.
  void fill(const Trainer& trainer, Launch& to, std::span<const Trainer::Part> parts, size_t first) {
    const Span span(*this, Phase::input);
    const size_t each = to.inputs.size() / parts.size();
    for (size_t r = 0; r < parts.size(); ++r)
      for (size_t i = 0; i < to.filled; ++i) {
        Buffer& buffer = *to.inputs[r * each + i];
        staged_.resize(static_cast<size_t>(buffer.type().bytes()));
        trainer.fill_part(i, parts[r], staged_);
        devices_[first + r]->to_device(staged_, buffer);
      }
    if (first_ + first == 0) timelines_[0].slow_down_input(trainer.next().rows.size(), static_cast<size_t>(settings_.plan.accumulate));
  }

  // Waits for the results, and adds them up.
  void take(Launch& from, std::span<const Trainer::Part> parts, size_t first) {
    const size_t each = from.outputs.size() / parts.size();
    for (size_t r = 0; r < parts.size(); ++r)
      for (size_t i = 0; i < from.results; ++i) {
        Buffer& buffer = *from.outputs[r * each + i];
        auto& sums = results_[first + r][i];
        sums.resize(static_cast<size_t>(buffer.type().shape.elements()));
        staged_.resize(static_cast<size_t>(buffer.type().bytes()));
        devices_[first + r]->to_host(buffer, staged_);
        if (parts[r].is_idle()) continue;  // computed for nothing
        for (size_t k = 0; k < sums.size(); ++k) {
          float value;
          std::memcpy(&value, staged_.data() + k * sizeof value, sizeof value);
          sums[k] += static_cast<double>(value);
        }
      }
  }

  void slow_down_compute() const {
    for (const Timeline& timeline : timelines_) timeline.slow_down_compute();
  }
  void slow_down_exchange() {
    const Span span(*this, Phase::exchange);
    timelines_[0].slow_down_exchange(exchanged_bytes(programs(), settings_.plan.replicas));
  }

  ReplicaSettings settings_;
  Devices devices_;                   // the replicas from `first_` on
  std::shared_ptr<RankGroup> ranks_;  // nullptr: there are no others
  size_t first_ = 0;
  std::vector<int64_t> numbers_;            // of all ranks' devices
  std::vector<StateBuffers> states_;        // by replica
  std::vector<PartResults> results_, all_;  // by replica; of all ranks'
  std::deque<Timeline> timelines_;
  std::optional<bool> meets_[2];  // of evaluation and of training
  std::map<StepKind, std::unique_ptr<Launch>> launches_;
  std::map<std::tuple<size_t, StepKind, bool>, std::unique_ptr<Launch>> parts_;
  std::vector<std::shared_ptr<Buffer>> sums_;  // by replica, then as the programs have them
  std::unique_ptr<Launch> update_;
  std::vector<std::byte> staged_;
};

}  // namespace

std::unique_ptr<Replicas> launched_replicas(const ReplicaSettings& settings, std::vector<std::shared_ptr<Device>> devices,
                                            std::shared_ptr<RankGroup> ranks) {
  return std::make_unique<LaunchedReplicas>(settings, std::move(devices), std::move(ranks));
}

}  // namespace tutti
