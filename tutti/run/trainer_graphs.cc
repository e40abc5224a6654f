// What a trainer's steps are made of: their kinds, graphs and first values, and the fingerprint of it all.
#include <cstring>
#include <map>

#include "tutti/run/trainer.h"
#include "tutti/transform/recompute.h"

namespace tutti {

std::vector<StepKind> Trainer::kinds() const {
  std::vector<StepKind> out;
  const auto add = [&](bool training, int64_t samples) {
    const int64_t together = options_.steps_per_launch;
    if (training && together > 1 && samples >= together * job_.batch_size) out.push_back({training, job_.batch_size, together});
    if (samples >= job_.batch_size) out.push_back({training, job_.batch_size});
    if (samples % job_.batch_size != 0) out.push_back({training, samples % job_.batch_size});
  };
  add(true, data_.samples());
  if (validation_) add(false, validation_->samples());
  return out;
}

keras::TrainingOptions Trainer::options_for(StepKind kind) const {
  const FitData& data = kind.training ? data_ : *validation_;
  keras::TrainingOptions options = training_;
  options.batch = kind.batch;
  options.training = kind.training;
  for (const FitArray& x : data.x) options.input_shapes.push_back(x.type(kind.batch).shape);
  for (const FitArray& y : data.y) options.targets.push_back(y.type(kind.batch));
  for (const FitArray& w : data.w) options.sample_weights.push_back(w.type(kind.batch).shape);
  return options;
}

namespace {
keras::TrainingOptions of_part(keras::TrainingOptions options, const PartOptions& part) {
  options.is_part = true;
  options.accumulates = part.accumulates;
  options.synchronizes = part.synchronizes;
  options.replicas = part.replicas;
  return options;
}
}  // namespace

SplitStep Trainer::part_graphs(StepKind kind, const PartOptions& part) const {
  const keras::TrainingOptions options = of_part(options_for(kind), part);
  if (!kind.training) return {evaluation_step(*model_, options, metrics_), {}};
  SplitStep out = split_train_step(*model_, options, *optimizer_, metrics_, optimizer_start_);
  if (options_.recompute) out.part.graph = recompute(out.part.graph);
  return out;
}

StepGraph Trainer::replicated_graph(StepKind kind, const PartOptions& part) const {
  StepGraph out = train_step(*model_, of_part(options_for(kind), part), *optimizer_, metrics_, optimizer_start_);
  if (options_.recompute) out.graph = recompute(out.graph);
  return out;
}

StepGraph Trainer::graph(StepKind kind) const {
  const keras::TrainingOptions options = options_for(kind);
  if (!kind.training) return evaluation_step(*model_, options, metrics_);
  StepGraph out = train_step(*model_, options, *optimizer_, metrics_, optimizer_start_);
  if (options_.recompute) out.graph = recompute(out.graph);
  return out;
}

std::string Trainer::recipe() const {
  Json data = Json::list();
  for (const FitData* part : {&data_, validation_ ? &*validation_ : nullptr}) {
    if (part == nullptr) continue;
    for (const auto* arrays : {&part->x, &part->y, &part->w}) {
      data.push(static_cast<int64_t>(arrays->size()));
      for (const FitArray& array : *arrays) data.push(to_string(array.type(1)));
    }
  }
  return Json(JsonMembers{{"model", model_->config()},
                          {"keras", model_->keras_version()},
                          {"loss", job_.loss},
                          {"loss_weights", job_.loss_weights},
                          {"metrics", JsonList{job_.metrics, job_.weighted_metrics}},
                          {"optimizer", optimizer_->config()},
                          {"schedule", job_.schedule},
                          {"data", data}})
      .dump();
}

std::string Trainer::fingerprint() const {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, eight bytes at a time
  const auto add = [&](std::span<const std::byte> bytes) {
    uint64_t word = 0;
    for (size_t i = 0; i < bytes.size(); i += sizeof word) {
      word = 0;
      std::memcpy(&word, bytes.data() + i, std::min(sizeof word, bytes.size() - i));
      hash = (hash ^ word) * 0x100000001b3;
      hash ^= hash >> 29;
    }
  };
  // Of what is read from files while it is used, some rows from the first to the last; else all.
  constexpr int64_t some = 1024;
  const auto add_rows = [&](const FitArray& array) {
    const int64_t step = array.waits() ? std::max<int64_t>(1, array.samples() / some) : 1;
    std::vector<std::byte> bytes(static_cast<size_t>(array.type(1).bytes()));
    for (int64_t row = 0; row < array.samples(); row += step) {
      array.copy(std::span(&row, 1), bytes);
      add(bytes);
    }
  };
  for (const FitData* part : {&data_, validation_ ? &*validation_ : nullptr}) {
    if (part == nullptr) continue;
    for (const auto* arrays : {&part->x, &part->y, &part->w})
      for (const FitArray& array : *arrays) add_rows(array);
  }
  const uint64_t data = hash;
  for (const keras::Variable* variable : model_->variables().flatten()) add(variable->value.bytes());
  for (const Tensor& value : optimizer_start_) add(value.bytes());
  return fmt::format("data {:016x}, model {:016x}, recipe {:016x}, epochs {}, batch {}, seed {}, shuffle {}", data, hash,
                     std::hash<std::string>()(recipe()), job_.epochs, job_.batch_size, job_.seed, job_.shuffle);
}

std::vector<Tensor> Trainer::first_values(const std::vector<std::string>& states) const {
  std::map<std::string, Tensor> known;
  for (const keras::Variable* variable : model_->variables().flatten()) known.emplace(variable->path, variable->value);
  std::vector<keras::TrainedWeight> weights;
  for (const keras::Variable* variable : keras::trainable_variables(*model_))
    if (std::find(states.begin(), states.end(), variable->path) != states.end())
      weights.push_back({variable->path, variable->value, {}, {}, {}});
  const auto own = optimizer_->variables(weights);
  for (size_t i = 0; i < own.size(); ++i) {
    const Type& type = own[i].initial.type();
    known.emplace(optimizer_state(i), i < optimizer_start_.size() ? optimizer_start_[i].converted(type.dtype) : own[i].initial);
  }
  std::vector<Tensor> out;
  for (const auto& state : states) out.push_back(known.at(state));
  return out;
}

}  // namespace tutti
