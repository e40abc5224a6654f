// Local clients: a Unix socket at which they connect, are handed a region of shared memory, and ask which models there are. Requests and
// answers go through the region, fetched by the owner of the device itself.
#pragma once

#include <memory>
#include <string>

#include "tutti/serve/models.h"
#include "tutti/serve/scheduler.h"

namespace tutti::serve::local {

struct ServerOptions {
  std::string path = {};                      // of the socket
  size_t connections = 256;                   // at most
  uint64_t region_bytes = uint64_t{1} << 30;  // of one client, at most
  uint64_t total_bytes = uint64_t{4} << 30;   // of all
  std::chrono::seconds handshake{10};         // within which a client asks for its region
};

class Server {
 public:
  // Listens at once. A socket that nobody listens at any more is replaced; throws InvalidArgument where somebody does, and for paths that
  // are none. Only this user may connect.
  Server(Models& models, Scheduler& scheduler, ServerOptions options);
  ~Server();  // hangs up on all, and removes the socket
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void stop_listening();  // those who are connected stay
  struct Counters {
    int64_t connected = 0, accepted = 0, refused = 0, broken = 0;
    uint64_t region_bytes = 0;
  };
  Counters counters() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// What a client asks for in its first message.
struct Hello {
  uint32_t slots = 0;
  uint64_t slot_bytes = 0;
};
// A control message's hello; throws InvalidArgument for what is none, or beyond the limit.
Hello hello_of(const std::string& message, uint64_t most_bytes);

}  // namespace tutti::serve::local
