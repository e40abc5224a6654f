// What the HTTP server answers, without the server: a request with its body in, an answer out, at once or when the scheduler has computed
// it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/serve/http/route.h"
#include "tutti/serve/models.h"
#include "tutti/serve/protocol/network_options.h"
#include "tutti/serve/scheduler.h"

namespace tutti::serve {

struct HttpRequest {
  std::string_view method, target;
  // Headers; "" when not given.
  std::string_view authorization, content_encoding, inference_header_length, host, origin;
  std::string body = {};
  MemoryClaim claim = {};  // for the body and for what is made of it
};

struct HttpAnswer {
  int status = 200;
  std::string_view content_type = "application/json";
  std::string headers = {};  // more lines, each with its "\r\n"
  std::string body = {};
  std::vector<Tensor> tail = {};  // bytes that follow the body
  MemoryClaim claim = {};         // for all of it, until it is written
};

class HttpApi {
 public:
  // `loopback`: Host must be this machine then; a web page elsewhere cannot reach us by a name of its own.
  HttpApi(Models& models, Scheduler& scheduler, NetworkOptions options, bool loopback);

  // Who may not ask at all, or not this: to be called when the header is there, before a body is taken. Nothing: go on.
  std::optional<HttpAnswer> refusal(const HttpRequest& request) const;
  // `reply` is called exactly once, perhaps before this returns, perhaps on another thread, which should not have to write the answer: it
  // is given what writes it. The ticket cancels.
  using Write = std::function<HttpAnswer()>;
  using Reply = std::function<void(Write)>;
  Ticket handle(HttpRequest request, uint64_t client, Reply reply);

  NetworkCounters& counters() { return *options_.counters; }

 private:
  HttpAnswer answer(const HttpRequest& request, const Route& route) const;
  Ticket infer(HttpRequest& request, const Route& route, uint64_t client, const Reply& reply);
  Ticket predict(HttpRequest& request, const Route& route, uint64_t client, const Reply& reply);
  void change(const Route& route, const Reply& reply);
  void check_access(const HttpRequest& request, const Route& route) const;

  Models& models_;
  Scheduler& scheduler_;
  const NetworkOptions options_;
  const bool loopback_;
};

HttpAnswer error_answer(int status, std::string_view message);
HttpAnswer error_answer(const Failure& failure);
int http_status(FailureKind kind);
// Of what is being thrown; our own bugs and what we did not foresee are 500 and say no more than that.
HttpAnswer error_answer_of_exception();

// Prometheus' text format.
std::string metrics_text(const Models& models, const Scheduler& scheduler, const NetworkCounters& counters);
// The built-in page: page.html.
std::string_view page_html();

// Compares all of `given`, however early it differs.
bool same_secret(std::string_view given, std::string_view secret);

}  // namespace tutti::serve
