// The HTTP server: HTTP/1.1 with keep-alive, on threads of its own, within bounds for clients that are slow, silent, many or hostile.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "tutti/serve/http/api.h"

namespace tutti::serve {

struct HttpOptions {
  std::string address = ":8000";  // [HOST]:PORT; no host: this machine only; port 0: any that is free
  int threads = 2;
  std::string version, token;            // as HttpApi's
  std::string tls_certificate, tls_key;  // files of PEM; both or none
  size_t header_bytes = 16 << 10, body_bytes = 64 << 20;
  size_t all_bodies_bytes = 1 << 30;  // of all connections together
  int64_t connections = 1024;
  std::chrono::milliseconds header_time{10'000};  // from the first byte of a request to the last of its header
  std::chrono::milliseconds body_time{60'000};    // from there to the last of its body
  std::chrono::milliseconds idle_time{75'000};    // between requests
  std::chrono::milliseconds write_time{60'000};   // for an answer to be taken
  CallLimits limits = {};
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
