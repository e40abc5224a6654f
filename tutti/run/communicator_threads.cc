#include <thread>

#include "tutti/base/error.h"
#include "tutti/run/communicator.h"

namespace tutti {

namespace {

constexpr int looks = 20'000;  // for the others: some hundred microseconds

void look_again() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

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

bool Barrier::arrives_last(uint32_t round) {
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 != threads_) return false;
  arrived_.store(0, std::memory_order_relaxed);
  round_.store(round + 1, std::memory_order_release);
  round_.notify_all();
  return true;
}

bool Barrier::looks_for(uint32_t round) const {
  for (int i = 0; spins_ && i < looks; ++i) {
    if (round_.load(std::memory_order_acquire) != round) return true;
    look_again();
  }
  return round_.load(std::memory_order_acquire) != round;
}

void Barrier::wait() {
  const uint32_t round = round_.load(std::memory_order_acquire);
  if (arrives_last(round) || looks_for(round)) return;
  while (round_.load(std::memory_order_acquire) == round) round_.wait(round, std::memory_order_acquire);
}

bool Barrier::wait_unless(const std::atomic<bool>& stop) {
  const uint32_t round = round_.load(std::memory_order_acquire);
  if (arrives_last(round) || looks_for(round)) return !stop;
  while (round_.load(std::memory_order_acquire) == round && !stop) std::this_thread::sleep_for(std::chrono::microseconds(20));
  return !stop;
}

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
    if (!group_.sums_.wait_unless(group_.failed_)) fail<DeviceError>("fit", "another replica has failed");
  }
  ThreadGroup& group_;
  size_t rank_;
  std::vector<std::byte> sums_;
};

ThreadGroup::ThreadGroup(int size, bool spins) : barrier_(size, spins), sums_(size, spins), parts_(static_cast<size_t>(size)) {
  for (size_t i = 0; i < parts_.size(); ++i) members_.push_back(std::make_unique<Member>(*this, i));
}

ThreadGroup::~ThreadGroup() = default;

Collective& ThreadGroup::member(int rank) { return *members_[static_cast<size_t>(rank)]; }

}  // namespace tutti
