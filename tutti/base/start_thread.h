// Threads begin here, so that a system that gives no more of them is an error like others.
#pragma once

#include <system_error>
#include <thread>
#include <utility>

#include "tutti/base/error.h"

namespace tutti {

template <class Thread = std::thread, class Work>
Thread start_thread(Work&& work) {
  try {
    return Thread(std::forward<Work>(work));
  } catch (const std::system_error& e) {
    fail<DeviceError>("threads", "the system starts no more threads: {}; hint: ulimit -u, ulimit -v, or a container's limit of processes",
                      e.code().message());
  }
}

}  // namespace tutti
