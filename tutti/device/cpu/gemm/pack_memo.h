// Weights packed once for all programs of a model, at whatever batch size.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tutti/base/tensor.h"
#include "tutti/device/cpu/gemm/packed_matrix.h"

namespace tutti::cpu {

using Packs = std::vector<PackedMatrix>;

// Gives some weights in a form: what `make` makes, or what it made before. The form's name says all that the result depends on but the
// weights.
using Packer = std::function<Packs(const std::string& form, const std::function<Packs()>& make)>;
inline Packs pack_anew(const std::string&, const std::function<Packs()>& make) { return make(); }

class PackMemo {
 public:
  Packer packer(const Tensor& weights);
  int64_t bytes() const;  // of all that is packed

 private:
  struct Entry {
    Tensor weights;  // kept, so that its address stays its own
    Packs packs;
  };
  std::map<std::pair<const std::byte*, std::string>, Entry> known_;
};

}  // namespace tutti::cpu
