// The Open Inference Protocol over gRPC: inference.proto. Threads are gRPC's own; none waits for a computation.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "tutti/serve/models.h"
#include "tutti/serve/protocol/network_options.h"
#include "tutti/serve/scheduler.h"

namespace tutti::serve {

struct GrpcOptions : NetworkOptions {
  int streams = 1024;        // calls at once on one connection
  int stream_requests = 64;  // under way at once of one ModelStreamInfer
};

// Whether this program was built with gRPC.
bool has_grpc();

class GrpcServer {
 public:
  // Listens when this returns. Throws InvalidArgument for an address that is none or is taken, or a certificate that is none; Unsupported
  // when the program was built without gRPC.
  GrpcServer(Models& models, Scheduler& scheduler, GrpcOptions options);
  ~GrpcServer();  // stop()
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  std::string address() const;  // "127.0.0.1:8001", with the port that was picked
  // Takes no new call; those under way end within the time, or are cancelled.
  void stop(std::chrono::milliseconds timeout = std::chrono::milliseconds(1000));

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

}  // namespace tutti::serve
