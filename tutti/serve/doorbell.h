// What the owner of the device sleeps on: woken by threads of this process, and by descriptors that other processes write.
#pragma once

#include <chrono>
#include <optional>

namespace tutti::serve {

class Doorbell {
 public:
  Doorbell();
  ~Doorbell();
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;
  void ring();                 // from any thread
  void watch(int descriptor);  // an eventfd: each write to it rings. It is never read, so whoever else holds it cannot make us wait
  void unwatch(int descriptor);
  void wait(std::optional<std::chrono::nanoseconds> timeout);

 private:
  int epoll_ = -1, event_ = -1;
};

}  // namespace tutti::serve
