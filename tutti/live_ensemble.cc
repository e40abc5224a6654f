#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>

#include "tutti/run/block_program.h"
#include "tutti/tutti.h"

namespace tutti {

struct LiveEnsemble::Shared {
  CompileOptions options;
  std::shared_ptr<Device> device;
  std::mutex changing;       // one change at a time
  mutable std::mutex mutex;  // guards what follows, and is never held for long
  std::shared_ptr<const Ensemble> ensemble;
  MemberBlocks blocks;
  std::atomic<int64_t> changes = 0;

  std::shared_ptr<const Ensemble> current() const {
    std::scoped_lock lock(mutex);
    return ensemble;
  }

  // With `changing` held. Of what throws nothing is left.
  void become(std::shared_ptr<const Ensemble> next) {
    MemberBlocks made = compile_blocks(*next, options, device, blocks);
    std::scoped_lock lock(mutex);
    ensemble.swap(next);
    std::swap(blocks, made);
    ++changes;
  }
};

LiveEnsemble::LiveEnsemble(const Model& model, const CompileOptions& options) : shared_(std::make_shared<Shared>()) {
  auto ensemble = std::dynamic_pointer_cast<const Ensemble>(model.shared());
  if (ensemble == nullptr)
    fail<InvalidArgument>("ensemble", "'{}' is no ensemble; hint: tutti::ensemble({{model}})", model.shared()->name());
  std::set<std::string> names;
  for (const auto& member : ensemble->members())
    if (!names.insert(member.name).second) fail<InvalidArgument>("ensemble", "two members have the name '{}'", member.name);
  shared_->options = options;
  shared_->device = open_device(options.device);
  shared_->become(std::move(ensemble));
}

LiveEnsemble LiveEnsemble::context() const { return LiveEnsemble(shared_); }

void LiveEnsemble::add(const std::string& name, const Model& member, double weight) {
  std::scoped_lock changing(shared_->changing);
  const auto old = shared_->current();
  auto members = old->members();
  if (std::any_of(members.begin(), members.end(), [&](const auto& one) { return one.name == name; }))
    fail<InvalidArgument>("ensemble", "there is a member '{}' already", name);
  EnsembleOptions options = old->options();
  if (options.weights.empty() && weight != 1) options.weights.assign(members.size(), 1);
  if (!options.weights.empty() || weight != 1) options.weights.push_back(weight);
  members.push_back({name, member.shared()});
  shared_->become(std::make_shared<const Ensemble>(std::move(members), std::move(options), old.get()));
}

void LiveEnsemble::drop(const std::string& name) {
  std::scoped_lock changing(shared_->changing);
  const auto old = shared_->current();
  auto members = old->members();
  const auto found = std::find_if(members.begin(), members.end(), [&](const auto& one) { return one.name == name; });
  if (found == members.end()) fail<InvalidArgument>("ensemble", "no member '{}'{}", name, did_you_mean(name, this->members()));
  EnsembleOptions options = old->options();
  if (!options.weights.empty()) options.weights.erase(options.weights.begin() + (found - members.begin()));
  members.erase(found);
  shared_->become(std::make_shared<const Ensemble>(std::move(members), std::move(options), old.get()));
}

std::vector<std::string> LiveEnsemble::members() const {
  std::vector<std::string> out;
  const auto ensemble = shared_->current();
  for (const auto& member : ensemble->members()) out.push_back(member.name);
  return out;
}

CompiledModel& LiveEnsemble::now() {
  if (seen_ == shared_->changes) return *now_;
  std::unique_lock lock(shared_->mutex);
  const int64_t seen = shared_->changes;
  Model model(shared_->ensemble);
  const MemberBlocks blocks = shared_->blocks;
  lock.unlock();
  now_.emplace(CompiledModel(std::move(model), Predictor(shared_->device, std::make_unique<BlockProgram>(shared_->device, blocks))));
  seen_ = seen;
  return *now_;
}

}  // namespace tutti
