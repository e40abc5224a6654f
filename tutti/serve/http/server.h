// The HTTP server: HTTP/1.1 with keep-alive, on threads of its own, within bounds for clients that are slow, silent, many or hostile.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "tutti/serve/http/api.h"
#include "tutti/serve/protocol/network_options.h"

namespace tutti::serve {

struct HttpOptions : NetworkOptions {
  int threads = 2;
  size_t header_bytes = 16 << 10;
  int64_t chunks = 100'000;  // of a body
};

class HttpServer {
 public:
  // Listens when this returns. Throws InvalidArgument for an address that is none or is taken, or a certificate that is none.
  HttpServer(Models& models, Scheduler& scheduler, HttpOptions options);
  ~HttpServer();  // stop()
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::string address() const;  // "127.0.0.1:8000", with the port that was picked
  // Takes no new connection and closes those that wait for a request; answers under way are written within the time.
  void stop(std::chrono::milliseconds timeout = std::chrono::milliseconds(1000));

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

}  // namespace tutti::serve
