#include "tutti/device/cpu/gemm/pack_memo.h"

namespace tutti::cpu {

Packer PackMemo::packer(const Tensor& weights) {
  return [this, weights](const std::string& form, const std::function<Packs()>& make) {
    auto found = known_.find({weights.bytes().data(), form});
    if (found == known_.end()) found = known_.insert({{weights.bytes().data(), form}, {weights, make()}}).first;
    return found->second.packs;
  };
}

int64_t PackMemo::bytes() const {
  int64_t sum = 0;
  for (const auto& [place, entry] : known_)
    for (const PackedMatrix& matrix : entry.packs) sum += matrix.bytes();
  return sum;
}

}  // namespace tutti::cpu
