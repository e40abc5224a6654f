#include "tutti/cli/nan_members.h"

#include "tutti/cli/console.h"

namespace tutti::cli {

NanMembers::NanMembers(const keras::AnyModel& model) {
  const auto* ensemble = dynamic_cast<const Ensemble*>(&model);
  if (ensemble == nullptr || !ensemble->options().ignore_nan) return;
  for (const auto& member : ensemble->members()) names_.push_back(member.name);
  samples_.resize(names_.size());
}

void NanMembers::take(std::vector<Tensor>& outputs) {
  if (names_.empty()) return;
  const Tensor found = std::move(outputs.back());
  outputs.pop_back();
  all_ += found.shape()[0];
  const auto truths = found.bytes();
  for (size_t i = 0; i < truths.size(); ++i) samples_[i % names_.size()] += truths[i] != std::byte{0};
}

void NanMembers::report(Console& console) const {
  constexpr size_t most = 8;
  std::string text;
  size_t members = 0;
  for (size_t m = 0; m < names_.size(); ++m)
    if (samples_[m] > 0 && members++ < most)
      text += fmt::format("{}'{}' in {}", text.empty() ? "" : ", ", escape(names_[m], 60), samples_[m]);
  if (members > most) text += fmt::format(", and {} more", members - most);
  if (members > 0) console.warning(fmt::format("[predict] members gave NaN, which was ignored, of {} samples: {}", all_, text));
}

}  // namespace tutti::cli
