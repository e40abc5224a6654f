// What joins two stages that run at their own pace: holds so many things and no more. Whoever is too fast waits.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

namespace tutti {

template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(std::max<size_t>(capacity, 1)) {}

  // Waits for room. False when the queue is closed: then `thing` is gone.
  bool push(T thing) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return closed_ || things_.size() < capacity_; });
    if (closed_) return false;
    things_.push_back(std::move(thing));
    deepest_ = std::max(deepest_, things_.size());
    lock.unlock();
    some_.notify_one();
    return true;
  }

  // Waits for something. Nothing when the queue is closed and empty.
  std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    some_.wait(lock, [&] { return closed_ || !things_.empty(); });
    if (things_.empty()) return {};
    std::optional<T> out(std::move(things_.front()));
    things_.pop_front();
    lock.unlock();
    room_.notify_one();
    return out;
  }

  // Something, if there is something now.
  std::optional<T> try_pop() {
    std::unique_lock lock(mutex_);
    if (things_.empty()) return {};
    std::optional<T> out(std::move(things_.front()));
    things_.pop_front();
    lock.unlock();
    room_.notify_one();
    return out;
  }

  // No more will come: what is in it can still be taken.
  void close() {
    std::scoped_lock lock(mutex_);
    closed_ = true;
    some_.notify_all();
    room_.notify_all();
  }

  // What is in it will not be taken either.
  void abandon() {
    close();
    std::scoped_lock lock(mutex_);
    things_.clear();
  }

  size_t capacity() const { return capacity_; }
  size_t deepest() const {  // so far
    std::scoped_lock lock(mutex_);
    return deepest_;
  }

 private:
  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable room_, some_;
  std::deque<T> things_;
  size_t deepest_ = 0;
  bool closed_ = false;
};

}  // namespace tutti
