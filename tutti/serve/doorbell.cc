#include "tutti/serve/doorbell.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "tutti/base/error.h"

namespace tutti::serve {

Doorbell::Doorbell() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (epoll_ < 0 || event_ < 0) fail<DeviceError>("serve", "no descriptors are left: {}; hint: ulimit -n", std::strerror(errno));
  watch(event_);
}

Doorbell::~Doorbell() {
  ::close(epoll_);
  ::close(event_);
}

void Doorbell::ring() {
  const uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(event_, &one, sizeof(one));  // fails only when it rings 2^64 times unheard
}

void Doorbell::watch(int descriptor) {
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.fd = descriptor}};  // each write is an edge
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0)
    fail<DeviceError>("serve", "a descriptor cannot be waited for: {}", std::strerror(errno));
}

void Doorbell::unwatch(int descriptor) { ::epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr); }

void Doorbell::wait(std::optional<std::chrono::nanoseconds> timeout) {
  constexpr int most = 64;
  epoll_event events[most];
  const int64_t nanoseconds = timeout ? std::clamp<int64_t>(timeout->count(), 0, 60'000'000'000) : 0;
  const timespec exactly{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
  if (::epoll_pwait2(epoll_, events, most, timeout ? &exactly : nullptr, nullptr) >= 0 || errno != ENOSYS) return;
  // Before Linux 5.11. Rounded up: to wake a little late is better than to spin a millisecond.
  ::epoll_wait(epoll_, events, most, timeout ? static_cast<int>((nanoseconds + 999'999) / 1'000'000) : -1);
}

}  // namespace tutti::serve
