#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/run/communicator.h"

namespace tutti {

namespace {

template <class T>
void sum_in_order(std::span<const std::span<const Collective::Part>> all, size_t part, int64_t begin, int64_t end, std::byte* to) {
  T* out = reinterpret_cast<T*>(to);
  for (int64_t i = begin; i < end; ++i) {
    T total = reinterpret_cast<const T*>(all[0][part].from)[i];
    for (size_t r = 1; r < all.size(); ++r) total = static_cast<T>(total + reinterpret_cast<const T*>(all[r][part].from)[i]);
    out[i] = total;
  }
}

}  // namespace

class ThreadGroup::Member : public Collective {
 public:
  Member(ThreadGroup& group, size_t rank) : group_(group), rank_(rank) {}

  void sum(DType dtype, std::span<const Part> parts) override {
    group_.parts_[rank_] = parts;
    meet();
    // Into memory of its own: a part's `from` may be its `to`, which others still read.
    int64_t bytes = 0;
    for (const Part& part : parts) bytes += part.elements * byte_size(dtype);
    sums_.resize(static_cast<size_t>(bytes));
    std::byte* to = sums_.data();
    for (size_t i = 0; i < parts.size(); ++i) {
      dispatch(dtype, [&](auto zero) {
        using T = decltype(zero);
        if constexpr (!std::is_same_v<T, bool>) sum_in_order<T>(group_.parts_, i, 0, parts[i].elements, to);
      });
      to += parts[i].elements * byte_size(dtype);
    }
    meet();
    to = sums_.data();
    for (const Part& part : parts) {
      const auto size = static_cast<size_t>(part.elements * byte_size(dtype));
      std::copy(to, to + size, part.to);
      to += size;
    }
  }

 private:
  void meet() {
    if (!group_.sums_.wait_unless([this] { return group_.failed_.load(); })) fail<DeviceError>("fit", "another replica has failed");
  }
  ThreadGroup& group_;
  size_t rank_;
  std::vector<std::byte> sums_;
};

ThreadGroup::ThreadGroup(int size, bool spins) : barrier_(size, spins), sums_(size, spins), parts_(static_cast<size_t>(size)) {
  for (size_t i = 0; i < parts_.size(); ++i) members_.push_back(std::make_unique<Member>(*this, i));
}

ThreadGroup::~ThreadGroup() = default;

bool RankGroup::agree(bool goes_on) {
  const double wants = goes_on ? 1 : 0;
  const std::vector<double> votes = gather({&wants, 1});
  return std::find(votes.begin(), votes.end(), 0.0) == votes.end();
}

Collective& ThreadGroup::member(int rank) { return *members_[static_cast<size_t>(rank)]; }

}  // namespace tutti
