// The connections of the gRPC server, which itself bounds neither how many there are nor how long one keeps silent, or sends a request byte
// by byte: they are accepted here, counted, handed over, and cut off when for long no call began, was under way or ended on them.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tutti/serve/protocol/network_options.h"

namespace tutti::serve {

// What is asked on one connection.
struct ConnectionActivity {
  std::atomic<int64_t> calls = 0;  // under way
  std::atomic<Clock::rep> last = Clock::now().time_since_epoch().count();
};

// A call under way, from its beginning to its end.
class ActiveCall {
 public:
  explicit ActiveCall(std::shared_ptr<ConnectionActivity> of) : of_(std::move(of)) {
    if (of_) ++of_->calls;
  }
  ~ActiveCall() {
    if (!of_) return;
    of_->last = Clock::now().time_since_epoch().count();
    --of_->calls;
  }
  ActiveCall(const ActiveCall&) = delete;
  ActiveCall& operator=(const ActiveCall&) = delete;

 private:
  std::shared_ptr<ConnectionActivity> of_;
};

class Connections {
 public:
  struct Options {
    std::string address;  // [HOST]:PORT
    int64_t most = 1024;  // at once
    std::chrono::milliseconds silence{135'000};
    ConnectionCounters* counters = nullptr;
  };
  // Listens when this returns. Throws InvalidArgument for an address that is none or is taken.
  explicit Connections(Options options);
  ~Connections();  // stop()
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;
  std::string address() const;  // with the port that was picked

  // Accepts from now on. `take` owns the descriptor that it is given; `tick` is called about ten times a second.
  void start(std::function<void(int)> take, std::function<void()> tick);
  void stop();  // accepts no more, and leaves those that are there alone

  // Of the peer as gRPC names it: "ipv4:127.0.0.1:4000", "ipv6:%5B::1%5D:4000". Null for one that is not known.
  std::shared_ptr<ConnectionActivity> activity_of(std::string_view peer) const;

 private:
  class Watch;
  std::unique_ptr<Watch> watch_;
};

}  // namespace tutti::serve
