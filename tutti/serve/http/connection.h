// One connection of the HTTP server, for server.cc alone: reads a request, hands it to the api, writes the answer, again and again. All of
// it runs on the thread of its loop; only replies come from others, and are posted there.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <list>
#include <optional>

#include "tutti/serve/http/server.h"

namespace tutti::serve::net {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Socket = asio::basic_stream_socket<asio::ip::tcp, asio::io_context::executor_type>;
using TlsStream = asio::ssl::stream<Socket>;
using ErrorCode = boost::system::error_code;

// What connections share.
struct Shared {
  HttpApi& api;
  Scheduler& scheduler;
  const HttpOptions& options;
};

class AnyConnection {
 public:
  virtual ~AnyConnection() = default;
  virtual void sweep(Clock::time_point now) = 0;  // closes what took too long, cancels for clients that are gone
  virtual void finish() = 0;                      // no further request
  virtual void abort() = 0;                       // not even the answer
};

// One thread and its connections. A connection is in the list from its start until it is closed and owed no reply.
struct Loop {
  asio::io_context context{1};
  std::list<std::shared_ptr<AnyConnection>> connections;
};

std::string answer_head(const HttpAnswer& answer, bool keep_alive);

template <class Stream>
class Connection final : public AnyConnection, public std::enable_shared_from_this<Connection<Stream>> {
 public:
  Connection(Stream stream, Loop& loop, Shared& shared)
      : stream_(std::move(stream)), loop_(loop), shared_(shared), client_(shared.scheduler.new_client()) {
    on_chunk_ = [this](uint64_t, boost::string_view, ErrorCode& error) {
      if (++chunks_ > shared_.options.chunks) error = http::error::body_limit;
    };
  }
  // Counted by who accepted it: before it exists, so that no more are accepted than may be.
  ~Connection() override { --shared_.api.counters().http.open; }

  void start() {
    place_ = loop_.connections.insert(loop_.connections.end(), this->shared_from_this());
    socket().set_option(asio::ip::tcp::no_delay(true), ignored_);
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      wait_in(State::handshake, shared_.options.header_time);
      stream_.async_handshake(asio::ssl::stream_base::server, [self = this->shared_from_this()](ErrorCode error) {
        if (error)
          self->close();
        else
          self->next_request();
      });
    } else {
      next_request();
    }
  }

  void sweep(Clock::time_point now) override {
    if (state_ == State::computing) {
      char byte = 0;
      const ssize_t got = ::recv(socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) abort();
    } else if (state_ != State::closed && now > deadline_) {
      const bool begun = state_ == State::header || state_ == State::body;
      if (begun)
        refuse_and_close(error_answer(408, "[serve] the request took too long to arrive"));
      else
        close();
    }
  }

  void finish() override {
    last_ = true;
    if (state_ == State::idle || state_ == State::handshake) close();
  }

  void abort() override {
    const Ticket ticket = ticket_;
    close();
    shared_.scheduler.cancel(ticket);
  }

 private:
  enum class State { handshake, idle, header, body, computing, writing, lingering, closed };
  using Parser = http::request_parser<http::string_body>;

  static constexpr size_t kept_buffer = 64 << 10;

  Socket& socket() {
    if constexpr (std::is_same_v<Stream, TlsStream>)
      return stream_.next_layer();
    else
      return stream_;
  }

  void wait_in(State state, std::chrono::milliseconds time) {
    state_ = state;
    deadline_ = Clock::now() + time;
  }

  void next_request() {
    if (state_ == State::closed) return;
    if (last_) return close();
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(shared_.options.header_bytes));
    parser_->body_limit(shared_.options.request_bytes);
    claim_ = MemoryClaim(shared_.options.budget);
    is_head_ = false;
    chunks_ = 0;
    parser_->on_chunk_header(on_chunk_);
    if (buffer_.size() == 0 && buffer_.capacity() > kept_buffer) buffer_.shrink_to_fit();
    wait_in(State::idle, shared_.options.idle_time);
    parse();
  }

  void read() {
    constexpr size_t header_piece = 8 << 10, body_piece = 256 << 10;
    stream_.async_read_some(buffer_.prepare(state_ == State::body ? body_piece : header_piece),
                            [self = this->shared_from_this()](ErrorCode error, size_t bytes) {
                              if (self->state_ == State::closed || self->reading_over_) return;
                              if (error) return self->close();
                              self->buffer_.commit(bytes);
                              self->parse();
                            });
  }

  void parse() {
    if (state_ == State::idle) {
      // Some clients end a body with a line more than they count.
      while (buffer_.size() > 0 && (front() == '\r' || front() == '\n')) buffer_.consume(1);
      if (buffer_.size() > 0) wait_in(State::header, shared_.options.header_time);
    }
    while (true) {
      if (buffer_.size() == 0) return read();
      ErrorCode error;
      buffer_.consume(parser_->put(buffer_.data(), error));
      if (error && error != http::error::need_more) return refuse_and_close(parse_error(error));
      if (parser_->is_header_done() && !claim_body()) return;
      if (parser_->is_done()) return handle();
      if (error) {
        // What is left of a body is the header of a chunk, or what follows the last.
        if (state_ == State::body && buffer_.size() > shared_.options.header_bytes)
          return refuse_and_close(parse_error(http::error::header_limit));
        return read();
      }
    }
  }

  char front() const { return *static_cast<const char*>(buffer_.cdata().data()); }

  HttpAnswer parse_error(ErrorCode error) const {
    if (error == http::error::body_limit) {
      return error_answer(
          413, fmt::format("[serve] a body has at most {} bytes and {} chunks", shared_.options.request_bytes, shared_.options.chunks));
    }
    if (error == http::error::header_limit || error == http::error::buffer_overflow)
      return error_answer(431, fmt::format("[serve] a header has at most {} bytes", shared_.options.header_bytes));
    return error_answer(400, fmt::format("[serve] not a request of HTTP/1.1: {}", error.message()));
  }

  // Between the header and the body, and while the body grows: whether to go on reading. Else something else is under way that will, or the
  // answer is.
  bool claim_body() {
    const bool first = state_ == State::header;
    if (first) {
      wait_in(State::body, shared_.options.request_time);
      parser_->eager(true);  // until now nothing was allocated for the body
      is_head_ = parser_->get().method() == http::verb::head;
      if (const char* wrong = ambiguity()) {
        refuse_and_close(error_answer(400, wrong));
        return false;
      }
      if (auto refused = shared_.api.refusal(request_head())) {
        refuse_and_close(std::move(*refused));
        return false;
      }
    }
    try {
      claim_.grow(first ? parser_->content_length().value_or(0) : parser_->get().body().size());
    } catch (const RequestError& e) {
      refuse_and_close(error_answer(e.failure()));
      return false;
    }
    const auto expected = parser_->get()[http::field::expect];
    if (!first || parser_->is_done() || expected.empty()) return true;
    if (!boost::beast::iequals(expected, "100-continue")) {
      refuse_and_close(error_answer(417, "[serve] of expectations only 100-continue is met"));
      return false;
    }
    static constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(stream_, asio::buffer(go_on), [self = this->shared_from_this()](ErrorCode error, size_t) {
      if (self->state_ != State::body) return;
      if (error) return self->close();
      self->parse();
    });
    return false;
  }

  // What others on the way might have understood otherwise.
  const char* ambiguity() const {
    const auto& message = parser_->get();
    if (message.count(http::field::host) > 1) return "[serve] a request has one Host";
    const auto coding = message[http::field::transfer_encoding];
    if (!coding.empty() && !boost::beast::iequals(coding, "chunked")) return "[serve] of transfer codings only chunked is understood";
    return nullptr;
  }

  // All but the body.
  HttpRequest request_head() const {
    const auto& message = parser_->get();
    const auto view = [](auto text) { return std::string_view(text.data(), text.size()); };
    const auto header = [&](auto name) { return view(message[name]); };
    return {.method = view(message.method_string()),
            .target = view(message.target()),
            .authorization = header(http::field::authorization),
            .content_encoding = header(http::field::content_encoding),
            .inference_header_length = header("Inference-Header-Content-Length"),
            .host = header(http::field::host),
            .origin = header(http::field::origin)};
  }

  void handle() {
    auto& message = parser_->get();
    keep_alive_ = parser_->keep_alive();
    is_old_ = message.version() < 11;
    HttpRequest request = request_head();
    request.body = std::move(message.body());
    request.claim = std::move(claim_);
    state_ = State::computing;
    ticket_ = shared_.api.handle(std::move(request), client_, [self = this->shared_from_this()](HttpApi::Write write) {
      asio::post(self->loop_.context, [self, written = std::move(write)] { self->replied(written); });
    });
  }

  void replied(const HttpApi::Write& write) {
    ticket_ = {};
    if (state_ == State::closed) return leave();
    HttpAnswer answer;
    try {
      answer = write();
    } catch (...) {
      answer = error_answer_of_exception();
    }
    send(std::move(answer));
  }

  void send(HttpAnswer answer) {
    constexpr size_t one_piece = 32 << 10;
    keep_alive_ = keep_alive_ && !last_;
    ++shared_.api.counters().http_answers[static_cast<size_t>(std::min(answer.status / 100, 5))];
    if (keep_alive_ && is_old_) answer.headers += "Connection: keep-alive\r\n";
    head_ = answer_head(answer, keep_alive_);
    answer_ = std::move(answer);
    std::vector<asio::const_buffer> pieces;
    size_t bytes = answer_.body.size();
    for (const Tensor& tensor : answer_.tail) bytes += tensor.bytes().size();
    if (is_head_) {
      pieces = {asio::buffer(head_)};
    } else if (bytes <= one_piece) {
      head_ += answer_.body;
      for (const Tensor& tensor : answer_.tail) head_.append(reinterpret_cast<const char*>(tensor.bytes().data()), tensor.bytes().size());
      pieces = {asio::buffer(head_)};
    } else {
      pieces = {asio::buffer(head_), asio::buffer(answer_.body)};
      for (const Tensor& tensor : answer_.tail) pieces.emplace_back(tensor.bytes().data(), tensor.bytes().size());
    }
    wait_in(State::writing, shared_.options.request_time);
    asio::async_write(stream_, pieces, [self = this->shared_from_this()](ErrorCode error, size_t) {
      self->answer_ = {};
      if (self->state_ == State::closed) return;
      if (error) return self->close();
      if (self->keep_alive_) return self->next_request();
      self->linger();
    });
  }

  void refuse_and_close(HttpAnswer answer) {
    keep_alive_ = false;
    reading_over_ = true;  // a read may be under way
    socket().cancel(ignored_);
    send(std::move(answer));
  }

  // Closed with bytes unread, the client might be told of that before it has read its answer.
  void linger() {
    wait_in(State::lingering, std::chrono::milliseconds(1000));
    socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored_);
    discard();
  }

  void discard() {
    buffer_.clear();
    socket().async_read_some(buffer_.prepare(64 << 10), [self = this->shared_from_this()](ErrorCode error, size_t) {
      if (self->state_ == State::closed) return;
      if (error) return self->close();
      self->discard();
    });
  }

  void close() {
    if (state_ == State::closed) return;
    const bool owed = state_ == State::computing;
    state_ = State::closed;
    claim_.release();
    socket().close(ignored_);
    if (!owed) leave();
  }

  void leave() { loop_.connections.erase(place_); }  // handlers under way hold it a little longer

  Stream stream_;
  Loop& loop_;
  Shared& shared_;
  const uint64_t client_;
  std::list<std::shared_ptr<AnyConnection>>::iterator place_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  MemoryClaim claim_;
  State state_ = State::idle;
  Clock::time_point deadline_ = {};
  std::function<void(uint64_t, boost::string_view, ErrorCode&)> on_chunk_;
  int64_t chunks_ = 0;
  bool keep_alive_ = false, is_old_ = false, is_head_ = false, last_ = false, reading_over_ = false;
  Ticket ticket_;
  std::string head_;
  HttpAnswer answer_;
  ErrorCode ignored_;
};

}  // namespace tutti::serve::net
