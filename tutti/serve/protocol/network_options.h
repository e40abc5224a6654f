// What the servers of the network have in common: where they listen, who may ask, and the bounds that strangers meet.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tutti/serve/protocol/call.h"
#include "tutti/serve/protocol/memory_budget.h"

namespace tutti::serve {

struct ConnectionCounters {
  std::atomic<int64_t> open = 0, refused = 0;  // refused: there were too many
};
// For /metrics.
struct NetworkCounters {
  ConnectionCounters http, grpc;
  std::array<std::atomic<int64_t>, 6> http_answers = {};  // by the first digit of their status
};

struct NetworkOptions {
  std::string address;                   // [HOST]:PORT; no host: this machine only; port 0: any that is free
  std::string version, token;            // of the program; "": none is asked for
  std::string tls_certificate, tls_key;  // files of PEM; both or none
  size_t request_bytes = 64 << 20;       // of one, also decompressed
  // Of all requests under way and their answers, those of other servers with the same budget too.
  std::shared_ptr<MemoryBudget> budget = std::make_shared<MemoryBudget>(size_t{1} << 30);
  std::shared_ptr<NetworkCounters> counters = std::make_shared<NetworkCounters>();
  int64_t connections = 1024;
  std::chrono::milliseconds header_time{10'000};   // to say what is wanted: a handshake, a header
  std::chrono::milliseconds request_time{60'000};  // for the rest of a request to arrive, and for its answer to be taken
  std::chrono::milliseconds idle_time{75'000};     // of a connection, between requests
  CallLimits limits = {};
};

// Throws InvalidArgument where one of the two is missing, is no PEM or needs a password, or where they do not belong together.
void check_tls(const NetworkOptions& options);

}  // namespace tutti::serve
