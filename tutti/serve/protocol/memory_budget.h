// How many bytes of requests may be held at once, by all connections together: claimed before they are allocated.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include "tutti/serve/failure.h"

namespace tutti::serve {

class MemoryBudget {
 public:
  explicit MemoryBudget(size_t bytes) : bytes_(bytes), left_(bytes) {}
  size_t bytes() const { return bytes_; }
  bool take(size_t bytes) {
    size_t left = left_.load(std::memory_order_relaxed);
    do {
      if (bytes > left) return false;
    } while (!left_.compare_exchange_weak(left, left - bytes, std::memory_order_relaxed));
    return true;
  }
  void give(size_t bytes) { left_.fetch_add(bytes, std::memory_order_relaxed); }
  size_t left() const { return left_.load(std::memory_order_relaxed); }

 private:
  const size_t bytes_;
  std::atomic<size_t> left_;
};

// A part of the budget, given back with the object.
class MemoryClaim {
 public:
  MemoryClaim() = default;
  explicit MemoryClaim(std::shared_ptr<MemoryBudget> budget) : budget_(std::move(budget)) {}
  MemoryClaim(MemoryClaim&& other) noexcept : budget_(std::move(other.budget_)), bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryClaim& operator=(MemoryClaim&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryClaim() { release(); }

  // Holds at least so many bytes; throws queue_full when they are not to be had.
  void grow(size_t bytes) {
    if (!budget_ || bytes <= bytes_) return;
    if (!budget_->take(bytes - bytes_)) refuse(FailureKind::queue_full, "the requests under way hold too many bytes; try again later");
    bytes_ = bytes;
  }
  void release() {
    if (budget_ && bytes_ > 0) budget_->give(std::exchange(bytes_, 0));
  }

 private:
  std::shared_ptr<MemoryBudget> budget_;
  size_t bytes_ = 0;
};

}  // namespace tutti::serve
