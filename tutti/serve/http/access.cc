// Who may ask, and the answers of those who ask wrongly.
#include <algorithm>
#include <new>

#include "tutti/base/json.h"
#include "tutti/base/utf8.h"
#include "tutti/serve/http/api.h"

namespace tutti::serve {

namespace {

// "localhost:8000" -> "localhost", "[::1]:8000" -> "::1".
std::string_view host_name(std::string_view host) {
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

// An address cannot be made to point elsewhere, unlike a name.
bool is_address(std::string_view host) {
  return !host.empty() && (host.find(':') != host.npos || host.find_first_not_of("0123456789.") == host.npos);
}

// A status that no failure of the scheduler has.
class HttpError : public Error {
 public:
  HttpError(int http_status, std::string_view message) : Error("serve", message), status(http_status) {}
  const int status;
};

}  // namespace

int http_status(FailureKind kind) {
  switch (kind) {
    case FailureKind::none: return 200;
    case FailureKind::bad_request: return 400;
    case FailureKind::not_found: return 404;
    case FailureKind::not_ready:
    case FailureKind::queue_full:
    case FailureKind::draining: return 503;
    case FailureKind::deadline: return 504;
    case FailureKind::cancelled: return 499;
    case FailureKind::failed: break;
  }
  return 500;
}

HttpAnswer error_answer(int status, std::string_view message) {
  HttpAnswer out{.status = status, .body = Json(JsonMembers{{"error", message}}).dump()};
  if (status == 503) out.headers = "Retry-After: 1\r\n";
  if (status == 401) out.headers = "WWW-Authenticate: Bearer\r\n";
  return out;
}

HttpAnswer error_answer(const Failure& failure) { return error_answer(http_status(failure.kind), failure.message); }

HttpAnswer error_answer_of_exception() {
  try {
    throw;
  } catch (const HttpError& e) {
    return error_answer(e.status, e.what());
  } catch (const RequestError& e) {
    return error_answer(e.failure());
  } catch (const InvalidArgument& e) {  // of JSON
    return error_answer(400, e.what());
  } catch (const OutOfMemory&) {
    return error_answer(503, "[serve] there is not enough memory for this request");
  } catch (const std::bad_alloc&) {
    return error_answer(503, "[serve] there is not enough memory for this request");
  } catch (...) {
    return error_answer(500, "[serve] an internal error");
  }
}

bool same_secret(std::string_view given, std::string_view secret) {
  unsigned different = given.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    different |= static_cast<unsigned char>(given[i]) ^ (secret.empty() ? 1u : static_cast<unsigned char>(secret[i % secret.size()]));
    asm volatile("" : "+r"(different));  // not to be left early by an optimiser
  }
  return different == 0;
}

void HttpApi::check_access(const HttpRequest& request, const Route& route) const {
  const std::string_view host = host_name(request.host);
  if (loopback_ && !host.empty() && in_lower_case(host) != "localhost" && !is_address(host))
    throw HttpError(403, fmt::format("the server listens for this machine only; Host is '{}'", escape(host, 60)));
  // A page of another site may send requests from a browser here; its answers would stay hidden, its effects not.
  if (const std::string_view origin = request.origin; !origin.empty()) {
    const size_t scheme = origin.find("://");
    if (scheme == origin.npos || origin.substr(scheme + 3) != request.host)
      throw HttpError(403, "requests from pages of other sites are refused");
  }
  const bool open = route.endpoint == Endpoint::page || route.endpoint == Endpoint::live || route.endpoint == Endpoint::ready;
  if (options_.token.empty() || open) return;
  constexpr std::string_view bearer = "bearer ";
  std::string_view given = request.authorization;
  const bool is_bearer = given.size() > bearer.size() &&
                         std::equal(bearer.begin(), bearer.end(), given.begin(), [](char a, char b) { return a == (b | 0x20); });
  if (!is_bearer || !same_secret(given.substr(bearer.size()), options_.token))
    throw HttpError(401, "a bearer token is needed: the header 'Authorization: Bearer TOKEN'");
}

std::optional<HttpAnswer> HttpApi::refusal(const HttpRequest& request) const {
  try {
    check_access(request, route_of(request.target));
    return {};
  } catch (...) {
    return error_answer_of_exception();
  }
}

}  // namespace tutti::serve
