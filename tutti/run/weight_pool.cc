#include "tutti/run/weight_pool.h"

#include <malloc.h>

#include <cstring>

#include "tutti/device/host.h"

namespace tutti {

namespace {

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.bytes().data() == b.bytes().data() || std::memcmp(a.bytes().data(), b.bytes().data(), a.bytes().size()) == 0;
}

}  // namespace

void WeightPool::add(const keras::Model& model) {
  ++added_;
  std::vector<keras::Variable*> variables = model.variables().flatten();
  std::string types;
  for (const keras::Variable* variable : variables) {
    if (variable->value.empty()) return;  // a model with problems
    types += to_string(variable->type);
  }
  Kind& kind = kinds_[types];
  kind.rows.resize(variables.size());
  kind.models.push_back(std::move(variables));
  for (size_t row = 0; row < kind.rows.size(); ++row) place(kind, row);
  // The weights that models came with leave holes that small things of the next model make too small for its own: the system gets them.
  constexpr int64_t most_holes = int64_t{16} << 20;
  if (moved_ < most_holes) return;
  malloc_trim(0);
  moved_ = 0;
}

void WeightPool::place(Kind& kind, size_t row) {
  Row& place = kind.rows[row];
  const size_t last = kind.models.size() - 1;
  Tensor& value = kind.models[last][row]->value;
  const Tensor& first = kind.models[0][row]->value;
  if (last == 0 || (place.all.empty() && same_bytes(value, first))) {
    if (last > 0) {
      value = first;
      moved_ += first.type().bytes();
    }
    return;
  }
  if (place.all.empty()) {
    const int64_t slots = static_cast<int64_t>(last + 1 + most_ - added_);
    const int64_t bytes = slots * value.type().bytes();
    if (value.type().bytes() == 0 || bytes / slots != value.type().bytes() || reserved_ + bytes > 2 * total_memory()) return;
    Ints extents{slots};
    extents.insert(extents.end(), value.shape().begin(), value.shape().end());
    place.all = Tensor(value.dtype(), extents);
    reserved_ += bytes;
    place.used = 0;
  }
  // Those before this one that were equal until now, then this one.
  for (; place.used <= last && static_cast<int64_t>(place.used) < place.all.shape()[0]; ++place.used) {
    Tensor& own = kind.models[place.used][row]->value;
    Tensor slot = place.all.part(static_cast<int64_t>(place.used));
    std::memcpy(slot.bytes().data(), own.bytes().data(), own.bytes().size());
    moved_ += own.type().bytes();
    own = std::move(slot);
  }
}

}  // namespace tutti
