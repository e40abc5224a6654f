// The network half of `tutti serve`: HTTP and gRPC, with the options they share.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "tutti/cli/console.h"
#include "tutti/cli/verb.h"
#include "tutti/serve/grpc/server.h"
#include "tutti/serve/http/server.h"

namespace tutti::cli {

struct NetworkSettings {
  std::string http, grpc;  // "": not asked for
  std::string token_file, tls_certificate, tls_key;
  int64_t threads = 2, http_connections = 1024, grpc_connections = 1024, body_limit = 64, body_total = 1024, request_time = 60;
  bool asked() const { return !http.empty() || !grpc.empty(); }
};

void add_network_options(Options& options, NetworkSettings& settings);

// Those that were asked for. They listen when this is made; the console says where.
class NetworkServers {
 public:
  NetworkServers(Console& console, serve::Models& models, serve::Scheduler& scheduler, const NetworkSettings& settings);
  // Answers under way are written within the time.
  void stop(std::chrono::milliseconds timeout);

 private:
  std::optional<serve::HttpServer> http_;
  std::optional<serve::GrpcServer> grpc_;
};

}  // namespace tutti::cli
