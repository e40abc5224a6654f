#include "tutti/serve/http/api.h"

#include <charconv>

#include "tutti/serve/protocol/compression.h"
#include "tutti/serve/protocol/tf_json.h"
#include "tutti/serve/protocol/v2_json.h"

namespace tutti::serve {

namespace {

HttpAnswer json_answer(const Json& json) { return {.body = json.dump()}; }

// A request in the scheduler, and its answer.
template <class Asked>
struct UnderWay {
  Asked call;
  std::shared_ptr<ModelVersion> model;
  std::vector<size_t> wanted;
  size_t bytes = 0;  // of the request
  MemoryClaim claim;
  Answer answer;

  UnderWay(std::shared_ptr<ModelVersion> of, Asked asked, HttpRequest& request)
      : call(std::move(asked)), model(std::move(of)), bytes(request.body.size()), claim(std::move(request.claim)) {
    request.body = {};
  }

  // Before it is written: as text a number takes more bytes than as tensor.
  void claim_answer(bool text) {
    constexpr size_t number_text = 4;
    size_t all = bytes;
    for (const Tensor& output : answer.outputs) all += output.bytes().size() * (text ? number_text : 1);
    claim.grow(all);
  }
};

size_t json_bytes_of(const HttpRequest& request) {
  const std::string_view text = request.inference_header_length;
  if (text.empty()) return request.body.size();
  size_t bytes = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error != std::errc() || end != text.data() + text.size())
    refuse(FailureKind::bad_request, "Inference-Header-Content-Length is a number of bytes; got '{}'", escape(text, 40));
  return bytes;
}

std::vector<VersionInfo> known_versions(const Models& models, const Route& route) {
  const int64_t version = version_from(route.version);
  std::vector<VersionInfo> out;
  for (VersionInfo& info : models.index(route.model))
    if (version < 0 || info.version == version) out.push_back(std::move(info));
  if (out.empty()) models.find(route.model, version);  // says what there is
  return out;
}

HttpAnswer server_metadata(std::string_view version) {
  Json extensions = Json::list();
  for (const char* name : v2_extensions) extensions.push(name);
  return json_answer(JsonMembers{{"name", "tutti"}, {"version", version}, {"extensions", std::move(extensions)}});
}

Json parse_small(const HttpRequest& request, const CallLimits& limits) {
  return request.body.empty() ? Json()
                              : Json::parse(request.body, {.bytes = request.body.size(), .depth = limits.json_depth, .values = 1000});
}

// Of Triton, a client may send a configuration or files of its own.
void refuse_parameters(const HttpRequest& request, const CallLimits& limits) {
  const Json json = parse_small(request, limits);
  const Json* parameters = json.is_object() ? json.find("parameters") : nullptr;
  if (parameters && parameters->is_object() && parameters->size() > 0)
    refuse(FailureKind::bad_request, "models are loaded from the server's own files; parameters are not taken");
}

// {"ready": true} leaves out what is not.
HttpAnswer repository_index(const Models& models, const HttpRequest& request, const CallLimits& limits) {
  const Json json = parse_small(request, limits);
  const Json* ready = json.is_object() ? json.find("ready") : nullptr;
  const bool ready_only = ready && ready->is_bool() && ready->as_bool();
  Json out = Json::list();
  for (const VersionInfo& info : models.index())
    if (!ready_only || info.state == ModelState::ready)
      out.push(JsonMembers{
          {"name", info.name}, {"version", std::to_string(info.version)}, {"state", v2_state(info.state)}, {"reason", info.reason}});
  return json_answer(out);
}

}  // namespace

HttpApi::HttpApi(Models& models, Scheduler& scheduler, NetworkOptions options, bool loopback)
    : models_(models), scheduler_(scheduler), options_(std::move(options)), loopback_(loopback) {}

Ticket HttpApi::handle(HttpRequest request, uint64_t client, Reply reply) {
  try {
    const Route route = route_of(request.target);
    if (route.endpoint == Endpoint::none) {
      reply([] { return error_answer(404, "[serve] there is no such path; see /v2, /v1/models/NAME, /metrics"); });
      return {};
    }
    const std::string_view method = request.method == "HEAD" ? "GET" : request.method;
    if ((method != "GET" && method != "POST") || route.methods.find(method) == std::string_view::npos) {
      reply([allowed = route.methods] {
        HttpAnswer out = error_answer(405, fmt::format("[serve] this path answers {}", allowed));
        out.headers = fmt::format("Allow: {}\r\n", allowed == "GET" ? "GET, HEAD" : allowed);
        return out;
      });
      return {};
    }
    if (!request.content_encoding.empty() && request.content_encoding != "identity") {
      request.body = decompressed(request.body, request.content_encoding, options_.request_bytes, request.claim);
    }
    switch (route.endpoint) {
      case Endpoint::infer: return infer(request, route, client, reply);
      case Endpoint::tf_predict: return predict(request, route, client, reply);
      case Endpoint::load: refuse_parameters(request, options_.limits); [[fallthrough]];
      case Endpoint::unload: change(route, reply); return {};
      default: break;
    }
    reply([made = std::make_shared<HttpAnswer>(answer(request, route))] { return std::move(*made); });
  } catch (...) {
    reply([made = std::make_shared<HttpAnswer>(error_answer_of_exception())] { return std::move(*made); });
  }
  return {};
}

HttpAnswer HttpApi::answer(const HttpRequest& request, const Route& route) const {
  switch (route.endpoint) {
    case Endpoint::page:
      return {.content_type = "text/html; charset=utf-8",
              .headers =
                  "Cache-Control: no-store\r\nContent-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src "
                  "'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'\r\n",
              .body = std::string(page_html())};
    case Endpoint::metrics:
      return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics_text(models_, scheduler_, *options_.counters)};
    case Endpoint::server: return server_metadata(options_.version);
    case Endpoint::live: return json_answer(JsonMembers{{"live", true}});
    case Endpoint::ready: {
      std::string why;
      if (scheduler_.load().draining) return error_answer(503, "[serve] the server ends");
      if (!models_.ready(&why)) return error_answer(503, why);
      return json_answer(JsonMembers{{"ready", true}});
    }
    case Endpoint::model_ready: {
      auto model = models_.find(route.model, version_from(route.version));
      return json_answer(JsonMembers{{"name", model->name()}, {"ready", true}});
    }
    case Endpoint::metadata: {
      auto model = models_.find(route.model, version_from(route.version));
      std::vector<int64_t> versions;
      for (const VersionInfo& info : models_.index(route.model))
        if (info.state == ModelState::ready) versions.push_back(info.version);
      return json_answer(v2_metadata(*model, versions));
    }
    case Endpoint::config: return json_answer(v2_config(*models_.find(route.model, version_from(route.version))));
    case Endpoint::statistics: return json_answer(v2_statistics(route.model.empty() ? models_.index() : known_versions(models_, route)));
    case Endpoint::index: return repository_index(models_, request, options_.limits);
    case Endpoint::shared_memory:
      if (request.method == "GET") return json_answer(Json::list());
      return error_answer(400,
                          "[serve] the shared memory extensions are off; send tensors in the body, or use the local socket (--socket)");
    case Endpoint::tf_status: return json_answer(tf_status(known_versions(models_, route)));
    case Endpoint::tf_metadata: return json_answer(tf_metadata(*models_.find(route.model, version_from(route.version))));
    case Endpoint::tf_other: return error_answer(400, "[serve] of TF Serving's methods only :predict is offered");
    default: break;
  }
  fail<InternalError>("serve", "a path without an answer");
}

Ticket HttpApi::infer(HttpRequest& request, const Route& route, uint64_t client, const Reply& reply) {
  auto model = models_.find(route.model, version_from(route.version));
  auto pending = std::make_shared<UnderWay<Call>>(model, parse_v2(request.body, json_bytes_of(request), options_.limits), request);
  pending->wanted = wanted_outputs(pending->call, *pending->model);
  Request scheduled = request_of(pending->call, pending->model);
  scheduled.client = client;
  scheduled.done = [pending, reply](Answer&& answer) {
    pending->answer = std::move(answer);
    reply([pending] {
      if (pending->answer.failure) return error_answer(pending->answer.failure);
      pending->claim_answer(!pending->call.binary_outputs);
      V2Answer written = write_v2(pending->call, *pending->model, pending->wanted, pending->answer.outputs);
      HttpAnswer out;
      if (!written.binary.empty()) {
        out.headers = fmt::format("Inference-Header-Content-Length: {}\r\n", written.json.size());
        out.content_type = "application/octet-stream";
      }
      out.body = std::move(written.json);
      out.tail = std::move(written.binary);
      out.claim = std::move(pending->claim);
      return out;
    });
  };
  return scheduler_.submit(std::move(scheduled));
}

Ticket HttpApi::predict(HttpRequest& request, const Route& route, uint64_t client, const Reply& reply) {
  auto model = models_.find(route.model, version_from(route.version));
  auto pending = std::make_shared<UnderWay<TfCall>>(model, parse_tf(request.body, model->inputs(), options_.limits), request);
  Request scheduled = request_of(pending->call.call, pending->model);
  scheduled.client = client;
  scheduled.done = [pending, reply](Answer&& answer) {
    pending->answer = std::move(answer);
    reply([pending] {
      if (pending->answer.failure) return error_answer(pending->answer.failure);
      pending->claim_answer(true);
      return HttpAnswer{.body = write_tf(pending->call, *pending->model, pending->answer.outputs), .claim = std::move(pending->claim)};
    });
  };
  return scheduler_.submit(std::move(scheduled));
}

void HttpApi::change(const Route& route, const Reply& reply) {
  const auto done = [reply](const Failure& failure) {
    reply([failure] { return failure ? error_answer(failure) : HttpAnswer{.body = "{}"}; });
  };
  if (route.endpoint == Endpoint::load)
    models_.load(route.model, done);
  else
    models_.unload(route.model, done);
}

}  // namespace tutti::serve
