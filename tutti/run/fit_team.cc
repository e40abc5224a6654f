#include "tutti/run/fit_team.h"

#include <algorithm>

#include "tutti/base/denormals.h"
#include "tutti/base/error.h"
#include "tutti/base/stopwatch.h"
#include "tutti/transform/recompute.h"

namespace tutti {

namespace {

std::mutex compiling;  // one at a time: it takes memory and all cores

std::span<std::byte> part_of(std::span<std::byte> all, size_t part, size_t parts) {
  const size_t each = all.size() / parts;
  return all.subspan(part * each, each);
}

// A step that does not fit in memory is tried again with less of its forward pass kept.
std::unique_ptr<Program> compile_step(Device& device, const Graph& graph, StepKind kind, CompileSettings& settings) {
  try {
    return device.compile(graph, settings);
  } catch (const OutOfMemory&) {
    if (!kind.training || kind.steps > 1) throw;
    return device.compile(recompute(graph), settings);
  }
}

}  // namespace

std::unique_ptr<Program> SharedPrograms::compile(StepKind kind, size_t stacked, StateBuffers* states) const {
  CompileSettings settings;
  settings.threads = threads_;
  settings.states = states;
  std::lock_guard alone(compiling);
  if (stacked == 0) return compile_step(*device_, group_.graph(kind), kind, settings);
  return compile_step(*device_, group_.stacked_graph(kind, static_cast<int64_t>(stacked)), kind, settings);
}

Program& SharedPrograms::program(StepKind kind, size_t stacked) {
  std::unique_ptr<Program>& program = programs_[{kind, stacked}];
  if (program == nullptr) program = compile(kind, stacked, nullptr);
  return *program;
}

std::unique_ptr<Program> SharedPrograms::with_states(StepKind kind, size_t stacked, bool shared, StateBuffers& states) {
  if (!shared) return compile(kind, stacked, &states);
  std::lock_guard lock(mutex_);
  return program(kind, stacked).context(&states);
}

void SharedPrograms::keep_stacked(size_t stacked) {
  std::lock_guard lock(mutex_);
  std::erase_if(programs_, [&](const auto& entry) { return entry.first.second != 0 && entry.first.second != stacked; });
}

bool SharedPrograms::computes() {
  std::lock_guard lock(mutex_);
  return program(group_.first_kind(), 0).computes();
}

// One program with its arguments, for `models` members at once.
struct FitTeam::Step {
  size_t models;
  std::unique_ptr<Program> program;
  std::vector<std::unique_ptr<Buffer>> inputs, outputs;
  std::vector<Buffer*> input_pointers, output_pointers;
  std::vector<Tensor> given, results;                             // on the host, where the device's memory is not
  std::vector<std::span<std::byte>> first_inputs, first_outputs;  // of the first member, those of the others behind it
  std::vector<std::span<const float>> of_member;                  // results

  Step(size_t members, std::unique_ptr<Program> made, Device& device) : models(members), program(std::move(made)) {
    const auto allocate = [&](const std::vector<Type>& types, auto& buffers, auto& pointers, auto& staged, auto& first) {
      for (const Type& type : types) {
        Buffer& buffer = *buffers.emplace_back(device.allocate(type));
        pointers.push_back(&buffer);
        const bool direct = !buffer.host().empty() || type.bytes() == 0;
        Tensor& host = staged.emplace_back(direct ? Tensor() : Tensor(type));
        const std::span<std::byte> all = direct ? buffer.host() : host.bytes();
        std::ranges::fill(all, std::byte{0});  // who is not there takes part in the computation
        first.push_back(part_of(all, 0, models));
      }
    };
    allocate(program->input_types(), inputs, input_pointers, given, first_inputs);
    allocate(program->output_types(), outputs, output_pointers, results, first_outputs);
    of_member.resize(outputs.size());
  }
  std::span<std::byte> input(size_t i, size_t slot) const { return of_slot(first_inputs[i], slot); }
  std::span<std::byte> output(size_t i, size_t slot) const { return of_slot(first_outputs[i], slot); }

 private:
  std::span<std::byte> of_slot(std::span<std::byte> first, size_t slot) const {
    return models == 1 ? first : std::span(first.data() + slot * first.size(), first.size());
  }
};

// A job in its place in the team.
class FitTeam::Member : public StateValues {
 public:
  Member(FitTeam& team, size_t index, size_t slot) : team_(team), trainer_(*team.group_.members()[index]), index_(index), slot_(slot) {
    trainer_.attach(this);
  }
  Trainer& trainer() const { return trainer_; }
  size_t index() const { return index_; }
  size_t slot() const { return slot_; }
  bool is_live = true;
  std::string error;  // why its batch could not be read

  Tensor read(size_t state) const override {
    Buffer& buffer = buffer_of(state);
    Ints extents = buffer.type().shape.extents();
    if (team_.stacked_) extents.erase(extents.begin());
    Tensor out(buffer.type().dtype, extents);
    const auto copy = [&](std::span<std::byte> all) { std::ranges::copy(part_of(all, slot_, slots()), out.bytes().begin()); };
    if (!buffer.host().empty()) {
      copy(buffer.host());
    } else {
      Tensor all(buffer.type());
      team_.device_.to_host(buffer, all.bytes());
      copy(all.bytes());
    }
    return out;
  }

  void write(size_t state, const Tensor& value) override {
    Buffer& buffer = buffer_of(state);
    const auto copy = [&](std::span<std::byte> all) { std::ranges::copy(value.bytes(), part_of(all, slot_, slots()).begin()); };
    if (!buffer.host().empty()) return copy(buffer.host());
    Tensor all(buffer.type());
    team_.device_.to_host(buffer, all.bytes());
    copy(all.bytes());
    team_.device_.to_device(all.bytes(), buffer);
  }

  std::vector<Tensor> read_all() const {
    std::vector<Tensor> out;
    for (size_t i = 0; i < team_.group_.states().size(); ++i) out.push_back(read(i));
    return out;
  }
  void write_all(const std::vector<Tensor>& values) {
    for (size_t i = 0; i < values.size(); ++i) write(i, values[i]);
  }

 private:
  size_t slots() const { return team_.members_.size(); }
  Buffer& buffer_of(size_t state) const { return *team_.states_.at(team_.group_.states()[state]); }

  FitTeam& team_;
  Trainer& trainer_;
  size_t index_, slot_;
};

FitTeam::FitTeam(std::shared_ptr<SharedPrograms> programs, const std::vector<size_t>& members, bool stacked, std::set<StepKind> by_one)
    : programs_(std::move(programs)),
      group_(programs_->group()),
      device_(*programs_->device()),
      stacked_(stacked),
      by_one_(std::move(by_one)) {
  std::vector<std::vector<Tensor>> values;
  for (size_t index : members) values.push_back(group_.first_values(index));
  make_members(members);
  make_states(values);
  step_for(group_.first_kind(), false);
}

FitTeam::~FitTeam() = default;

void FitTeam::make_members(const std::vector<size_t>& members) {
  members_.clear();
  for (size_t index : members) members_.push_back(std::make_unique<Member>(*this, index, members_.size()));
}

void FitTeam::make_states(const std::vector<std::vector<Tensor>>& values) {
  states_.clear();
  for (size_t i = 0; i < group_.states().size(); ++i) {
    std::vector<Tensor> parts;
    for (const auto& member : values) parts.push_back(member[i]);
    const Tensor all = stacked_ ? Tensor::stacked(parts) : parts[0];
    std::shared_ptr<Buffer> buffer = device_.allocate(all.type());
    device_.to_device(all.bytes(), *buffer);
    states_.emplace(group_.states()[i], std::move(buffer));
  }
}

FitTeam::Step& FitTeam::step_for(StepKind kind, bool by_one) {
  std::unique_ptr<Step>& step = (by_one ? single_steps_ : steps_)[kind];
  if (step != nullptr) return *step;
  const size_t stacked = stacked_ && !by_one ? members_.size() : 0, others = group_.members().size() - std::max<size_t>(stacked, 1);
  const bool shared = is_first_size_ && others >= stacked && others > 0;
  step = std::make_unique<Step>(std::max<size_t>(stacked, 1),
                                programs_->with_states(kind, stacked, shared, by_one ? single_states_ : states_), device_);
  return *step;
}

void FitTeam::compute(Step& step, std::span<Member* const> active) {
  for (Member* member : active) {
    try {
      for (size_t i = 0; i < step.inputs.size(); ++i) member->trainer().fill(i, step.input(i, member->slot()));
    } catch (const Error& error) {  // of its data; the others go on
      member->error = error.what();
    }
  }
  for (size_t i = 0; i < step.inputs.size(); ++i)
    if (!step.given[i].empty()) device_.to_device(step.given[i].bytes(), *step.inputs[i]);
  {
    const FlushDenormals flushing;
    step.program->run(step.input_pointers, step.output_pointers);
  }
  for (size_t i = 0; i < step.outputs.size(); ++i)
    if (!step.results[i].empty()) device_.to_host(*step.outputs[i], step.results[i].bytes());
}

void FitTeam::take(Step& step, Member& member, const Stepped& stepped) {
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    const auto own = step.output(i, member.slot());
    step.of_member[i] = {reinterpret_cast<const float*>(own.data()), own.size() / sizeof(float)};
  }
  Trainer& trainer = member.trainer();
  try {
    if (!member.error.empty()) throw InvalidArgument("fit", fmt::format("step {}: {}", trainer.steps(), member.error));
    trainer.take(step.of_member);
  } catch (const Error& error) {
    stepped(trainer, error.what());
    member.is_live = false;
    return;
  }
  if (trainer.is_done() || trainer.is_between_steps()) member.is_live = stepped(trainer, "");
}

void FitTeam::step_together(StepKind kind, const Stepped& stepped) {
  active_.clear();
  std::vector<std::pair<Member*, std::vector<Tensor>>> waiting;  // those whose time has not come must not change
  for (const auto& member : members_) {
    if (!member->is_live) continue;
    if (member->trainer().next().kind == kind)
      active_.push_back(member.get());
    else if (kind.training)
      waiting.emplace_back(member.get(), member->read_all());
  }
  Step& step = step_for(kind, false);
  compute(step, active_);
  for (const auto& [member, values] : waiting) member->write_all(values);
  const double seconds = seconds_each(active_.size());
  for (Member* member : active_) {
    member->trainer().add_seconds(seconds);
    take(step, *member, stepped);
  }
}

void FitTeam::step_by_one(Member& member, const Stepped& stepped) {
  Step& step = step_for(member.trainer().next().kind, true);
  const auto& names = group_.states();
  for (size_t i = 0; i < names.size(); ++i)
    if (const auto found = single_states_.find(names[i]); found != single_states_.end())
      device_.to_device(member.read(i).bytes(), *found->second);
  Member* const one = &member;
  compute(step, {&one, 1});
  for (size_t i = 0; i < names.size(); ++i)
    if (const auto found = single_states_.find(names[i]); found != single_states_.end()) {
      Tensor value(found->second->type());
      device_.to_host(*found->second, value.bytes());
      member.write(i, value);
    }
  member.trainer().add_seconds(seconds_each(1));
  take(step, member, stepped);
  since_ = {};
}

StepKind FitTeam::most_wanted() const {
  std::map<StepKind, int64_t> wanted;
  const StepKind* first = nullptr;
  bool same = true;
  for (const auto& member : members_) {
    if (!member->is_live) continue;
    const StepKind& kind = member->trainer().next().kind;
    if (first == nullptr) first = &kind;
    same = same && kind == *first;
  }
  if (same) return *first;
  for (const auto& member : members_)
    if (member->is_live) ++wanted[member->trainer().next().kind];
  return std::max_element(wanted.begin(), wanted.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->first;
}

int64_t FitTeam::live_count() const {
  return std::count_if(members_.begin(), members_.end(), [](const auto& member) { return member->is_live; });
}

// Members that have stopped are computed with the others, for nothing, until a quarter has.
void FitTeam::leave_stopped_behind() {
  const int64_t left = live_count();
  if (!stacked_ || left == 0 || 4 * left > 3 * std::ssize(members_)) return;
  std::vector<std::vector<Tensor>> values;
  std::vector<size_t> indices;
  for (const auto& member : members_)
    if (member->is_live) {
      values.push_back(member->read_all());
      indices.push_back(member->index());
    }
  steps_.clear();
  is_first_size_ = false;
  make_members(indices);
  make_states(values);
}

std::vector<Trainer*> FitTeam::live() const {
  std::vector<Trainer*> out;
  for (const auto& member : members_)
    if (member->is_live) out.push_back(&member->trainer());
  return out;
}

void FitTeam::drop(const Trainer& trainer) {
  for (const auto& member : members_)
    if (&member->trainer() == &trainer) member->is_live = false;
}

void FitTeam::run(double seconds, size_t at_once, const Stepped& stepped) {
  at_once_ = at_once;
  for (const Stopwatch watch; live_count() > 0 && watch.seconds() < seconds;) {
    leave_stopped_behind();
    since_ = {};
    if (!by_one_.empty())
      for (const auto& member : members_)
        while (member->is_live && by_one_.contains(member->trainer().next().kind)) step_by_one(*member, stepped);
    if (live_count() > 0) step_together(most_wanted(), stepped);
  }
}

double FitTeam::seconds_each(size_t members) const { return since_.seconds() / static_cast<double>(members * at_once_); }

double FitTeam::measure(double seconds) {
  constexpr int least = 3;
  Step& step = step_for(group_.first_kind(), false);
  active_.clear();
  for (const auto& member : members_)
    if (member->trainer().next().kind == group_.first_kind()) active_.push_back(member.get());
  compute(step, active_);
  double best = 1e30;
  const Stopwatch all;
  for (int i = 0; i < least || all.seconds() < seconds; ++i) {
    const Stopwatch watch;
    compute(step, active_);
    best = std::min(best, watch.seconds());
  }
  return best / static_cast<double>(static_cast<int64_t>(members_.size()) * group_.first_kind().steps);
}

}  // namespace tutti
