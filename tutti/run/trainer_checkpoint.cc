// Checkpoints: a line that says what it is, the length of a JSON text, that text, the bytes of the tensors that it names, and a checksum of
// text and bytes.
#include <zlib.h>

#include <cstring>

#include "tutti/base/error.h"
#include "tutti/base/file.h"
#include "tutti/run/trainer.h"

namespace tutti {

namespace {

constexpr std::string_view checkpoint_magic = "tutti checkpoint 2\n";

uint32_t add_to_sum(uint32_t sum, std::span<const std::byte> bytes) {
  return static_cast<uint32_t>(::crc32_z(sum, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

Json numbers(const std::vector<double>& list) {
  Json out = Json::list();
  for (double value : list) out.push(value);
  return out;
}

std::vector<double> as_numbers(const Json& list) {
  std::vector<double> out;
  for (const Json& value : list.items()) out.push_back(value.as_number());
  return out;
}

Json type_json(const std::string& name, const Type& type) {
  Json extents = Json::list();
  for (int64_t extent : type.shape) extents.push(extent);
  return JsonList{name, std::string(tutti::name(type.dtype)), extents};
}

}  // namespace

void Trainer::save(const std::string& path) const {
  std::vector<Tensor> tensors;
  Json states = Json::list(), best = Json::list(), history = Json::list(), sums = Json::list();
  for (size_t i = 0; i < states_.size(); ++i) {
    tensors.push_back(values_->read(i));
    states.push(type_json(states_[i], tensors.back().type()));
  }
  for (const Tensor& value : best_) {
    best.push(type_json("", value.type()));
    tensors.push_back(value);
  }
  for (const auto& row : history_) history.push(numbers(row));
  for (const auto& metric : totals_.sums) sums.push(numbers(metric));
  Json losses = Json::list();
  for (float loss : losses_) losses.push(static_cast<double>(loss));
  const Json facts = JsonMembers{{"job", job_.facts().dump()},
                                 {"counts", JsonList{epoch_, steps_, steps_of_epoch_, position_, pass_}},
                                 {"seconds", seconds_},
                                 {"last_loss", last_loss_},
                                 {"totals", JsonList{totals_.loss, totals_.samples, sums}},
                                 {"history", history},
                                 {"losses", losses},
                                 {"stopping", stopping_ ? stopping_->memory() : Json()},
                                 {"plateau", plateau_ ? plateau_->memory() : Json()},
                                 {"states", states},
                                 {"best", best}};
  const std::string text = facts.dump();
  const uint64_t length = text.size();
  OutputFile file(path);
  file.write(checkpoint_magic);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(text);
  uint32_t sum = add_to_sum(0, std::as_bytes(std::span(text)));
  for (const Tensor& tensor : tensors) {
    file.write(tensor.bytes());
    sum = add_to_sum(sum, tensor.bytes());
  }
  file.write(std::as_bytes(std::span(&sum, 1)));
  file.commit();
}

void Trainer::resume(const std::string& path) {
  const auto source = open_file(path);
  const auto torn = [&] { fail<InvalidArgument>("fit", "the checkpoint '{}' is torn or of another program", path); };
  uint64_t at = checkpoint_magic.size(), length = 0;
  if (source->size() < at + sizeof length) torn();
  std::string begin(checkpoint_magic.size(), ' ');
  source->read(0, std::as_writable_bytes(std::span(begin)));
  source->read(at, std::as_writable_bytes(std::span(&length, 1)));
  at += sizeof length;
  if (begin != checkpoint_magic || length > source->size() - at || length > (uint64_t{1} << 30)) torn();
  std::string text(static_cast<size_t>(length), ' ');
  source->read(at, std::as_writable_bytes(std::span(text)));
  at += length;
  uint32_t sum = add_to_sum(0, std::as_bytes(std::span(text))), wanted = 0;
  const Json facts = Json::parse(text, {.bytes = uint64_t{1} << 30, .values = 100'000'000});
  if (facts.at("job").as_string() != job_.facts().dump())
    fail<InvalidArgument>("fit", "the checkpoint '{}' is of another job; hint: the job file changed, or another --out", path);
  // Tensors of types that are known already; nothing is allocated by what the file says.
  const auto read = [&](const Json& entry, const Type& type) {
    if (!(entry == type_json(entry[0].as_string(), type)) || static_cast<uint64_t>(type.bytes()) > source->size() - at) torn();
    Tensor out(type);
    source->read(at, out.bytes());
    at += out.bytes().size();
    sum = add_to_sum(sum, out.bytes());
    return out;
  };
  if (facts.at("states").size() != states_.size()) torn();
  for (size_t i = 0; i < states_.size(); ++i) {
    const Json& entry = facts.at("states")[i];
    if (entry[0].as_string() != states_[i]) torn();
    values_->write(i, read(entry, values_->read(i).type()));
  }
  const auto variables = model_->variables().flatten();
  best_.clear();
  if (facts.at("best").size() != 0 && facts.at("best").size() != variables.size()) torn();
  for (size_t i = 0; i < facts.at("best").size(); ++i) best_.push_back(read(facts.at("best")[i], variables[i]->type));
  if (at + sizeof wanted != source->size()) torn();
  source->read(at, std::as_writable_bytes(std::span(&wanted, 1)));
  if (wanted != sum) torn();

  const Json &counts = facts.at("counts"), &totals = facts.at("totals");
  epoch_ = counts[0].as_int();
  steps_ = counts[1].as_int();
  steps_of_epoch_ = counts[2].as_int();
  position_ = counts[3].as_int();
  pass_ = counts[4].as_int();
  if (epoch_ < 0 || epoch_ >= job_.epochs || position_ < 0 || position_ >= data_.samples() || pass_ < 0) torn();
  seconds_ = facts.at("seconds").as_number();
  last_loss_ = facts.at("last_loss").as_number();
  totals_ = {totals[0].as_number(), totals[1].as_number(), {}};
  for (const Json& metric : totals[2].items()) totals_.sums.push_back(as_numbers(metric));
  history_.clear();
  for (const Json& row : facts.at("history").items()) history_.push_back(as_numbers(row));
  losses_.clear();
  for (const Json& loss : facts.at("losses").items()) losses_.push_back(static_cast<float>(loss.as_number()));
  if (stopping_) stopping_->remember(facts.at("stopping"));
  if (plateau_) plateau_->remember(facts.at("plateau"));
  make_order();
  plan_next();
}

}  // namespace tutti
