#include "tutti/serve/http/server.h"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <thread>

#include "tutti/base/start_thread.h"
#include "tutti/serve/http/connection.h"
#include "tutti/serve/protocol/address.h"

namespace tutti::serve {

namespace net {

namespace {

constexpr std::chrono::milliseconds sweep_every(100);

std::string_view reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 413: return "Payload Too Large";
    case 417: return "Expectation Failed";
    case 431: return "Request Header Fields Too Large";
    case 499: return "Client Closed Request";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    default: return "Internal Server Error";
  }
}

asio::ssl::context tls_context(const HttpOptions& options) {
  asio::ssl::context context(asio::ssl::context::tls_server);
  context.set_options(asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1);
  context.use_certificate_chain_file(options.tls_certificate);  // check_tls() has looked at both
  context.use_private_key_file(options.tls_key, asio::ssl::context::pem);
  return context;
}

// Each may leave the list meanwhile, and would be gone with it.
template <class F>
void for_each(Loop& loop, F&& f) {
  for (auto at = loop.connections.begin(); at != loop.connections.end();) {
    const std::shared_ptr<AnyConnection> connection = *at++;
    f(*connection);
  }
}

}  // namespace

std::string answer_head(const HttpAnswer& answer, bool keep_alive) {
  size_t bytes = answer.body.size();
  for (const Tensor& tensor : answer.tail) bytes += tensor.bytes().size();
  std::string out;
  fmt::format_to(std::back_inserter(out), "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n", answer.status,
                 reason_of(answer.status), answer.content_type, bytes);
  if (!keep_alive) out += "Connection: close\r\n";
  out += "X-Content-Type-Options: nosniff\r\n";
  out += answer.headers;
  out += "\r\n";
  return out;
}

}  // namespace net

using net::asio::ip::tcp;

class HttpServer::Server {
 public:
  Server(Models& models, Scheduler& scheduler, HttpOptions options)
      : options_(std::move(options)),
        endpoint_(endpoint_of(place_to_listen(options_.address))),
        api_(models, scheduler, options_, endpoint_.address().is_loopback()),
        shared_{api_, scheduler, options_},
        loops_(static_cast<size_t>(std::max(options_.threads, 1))) {
    check_tls(options_);
    if (!options_.tls_certificate.empty()) tls_.emplace(net::tls_context(options_));
    listen();
    try {
      for (auto& loop : loops_) {
        sweep(loop);
        loop.thread = start_thread([&context = loop.loop.context] { context.run(); });
      }
      accept();
    } catch (...) {
      end_loops();
      throw;
    }
  }

  ~Server() { stop(std::chrono::milliseconds(0)); }

  std::string address() const { return address_text({endpoint_.address().to_string(), endpoint_.port()}); }

  void stop(std::chrono::milliseconds timeout) {
    if (stopped_) return;
    stopped_ = true;
    net::asio::post(loops_[0].loop.context, [this] {
      net::ErrorCode ignored;
      acceptor_.close(ignored);
    });
    const auto deadline = Clock::now() + timeout;
    each_connection([](net::AnyConnection& connection) { connection.finish(); });
    while (counters().open > 0 && Clock::now() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    // What is still there is cut off. A connection whose request is being computed goes when that has ended, which it always does.
    while (counters().open > 0) {
      each_connection([](net::AnyConnection& connection) { connection.abort(); });
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    end_loops();
  }

 private:
  struct Thread {
    net::Loop loop;
    net::asio::steady_timer timer{loop.context};
    std::thread thread;
  };

  void end_loops() {
    for (auto& loop : loops_) loop.loop.context.stop();
    for (auto& loop : loops_)
      if (loop.thread.joinable()) loop.thread.join();
  }

  static tcp::endpoint endpoint_of(const HostAndPort& place) { return {net::asio::ip::make_address(place.host), place.port}; }

  ConnectionCounters& counters() { return api_.counters().http; }

  void listen() {
    net::ErrorCode error;
    acceptor_.open(endpoint_.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint_, error);
    if (!error) acceptor_.listen(1024, error);
    if (error) fail<InvalidArgument>("serve", "cannot listen on {}: {}", address(), error.message());
    endpoint_ = acceptor_.local_endpoint();
  }

  void accept() {
    net::Loop& loop = loops_[next_++ % loops_.size()].loop;
    acceptor_.async_accept(loop.context, [this, &loop](net::ErrorCode error, net::Socket socket) {
      if (!acceptor_.is_open()) return;
      if (error) {
        // Out of descriptors, most likely: they come back.
        retry_.expires_after(net::sweep_every);
        retry_.async_wait([this](net::ErrorCode cancelled) {
          if (!cancelled && acceptor_.is_open()) accept();
        });
        return;
      }
      if (counters().open >= options_.connections) {
        refuse_connection(std::move(socket));
      } else {
        ++counters().open;
        net::asio::post(loop.context, [this, &loop, moved = std::make_shared<net::Socket>(std::move(socket))] {
          if (stopped_) {
            --counters().open;
            return;
          }
          if (tls_)
            std::make_shared<net::Connection<net::TlsStream>>(net::TlsStream(std::move(*moved), *tls_), loop, shared_)->start();
          else
            std::make_shared<net::Connection<net::Socket>>(std::move(*moved), loop, shared_)->start();
        });
      }
      accept();
    });
  }

  void refuse_connection(net::Socket socket) {
    ++counters().refused;
    if (tls_) return;
    const HttpAnswer answer = error_answer(503, "[serve] there are too many connections");
    const std::string text = net::answer_head(answer, false) + answer.body;
    net::ErrorCode ignored;
    socket.non_blocking(true, ignored);
    socket.write_some(net::asio::buffer(text), ignored);
  }

  void sweep(Thread& thread) {
    thread.timer.expires_after(net::sweep_every);
    thread.timer.async_wait([this, &thread](net::ErrorCode error) {
      if (error) return;
      const auto now = Clock::now();
      net::for_each(thread.loop, [now](net::AnyConnection& connection) { connection.sweep(now); });
      sweep(thread);
    });
  }

  void each_connection(void (*f)(net::AnyConnection&)) {
    for (auto& loop : loops_) net::asio::post(loop.loop.context, [&loop = loop.loop, f] { net::for_each(loop, f); });
  }

  HttpOptions options_;
  tcp::endpoint endpoint_;
  HttpApi api_;
  net::Shared shared_;
  std::optional<net::asio::ssl::context> tls_;
  std::vector<Thread> loops_;
  net::asio::basic_socket_acceptor<tcp, net::asio::io_context::executor_type> acceptor_{loops_.at(0).loop.context};
  net::asio::steady_timer retry_{loops_.at(0).loop.context};
  size_t next_ = 0;
  std::atomic<bool> stopped_ = false;
};

HttpServer::HttpServer(Models& models, Scheduler& scheduler, HttpOptions options)
    : server_(std::make_unique<Server>(models, scheduler, std::move(options))) {}
HttpServer::~HttpServer() = default;
std::string HttpServer::address() const { return server_->address(); }
void HttpServer::stop(std::chrono::milliseconds timeout) { server_->stop(timeout); }

}  // namespace tutti::serve
