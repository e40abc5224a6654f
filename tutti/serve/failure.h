// Why a request has no answer. The numbers are part of the local protocol (docs/serving.md): new ones go to the end.
#pragma once

#include <string>
#include <string_view>

#include "tutti/base/error.h"

namespace tutti::serve {

enum class FailureKind : uint8_t {
  none = 0,
  bad_request = 1,  // shapes, dtypes, names or counts that do not fit       400, INVALID_ARGUMENT
  not_found = 2,    // no such model, or no such version of it               404, NOT_FOUND
  not_ready = 3,    // there is such a model; it loads, or failed to         503, UNAVAILABLE
  queue_full = 4,   // refused at once                                       503, RESOURCE_EXHAUSTED
  deadline = 5,     // passed while the request was queued                   504, DEADLINE_EXCEEDED
  cancelled = 6,    // by its client, or the client is gone                  499, CANCELLED
  draining = 7,     // the server ends                                       503, UNAVAILABLE
  failed = 8,       // the device or the program failed                      500, INTERNAL
};
inline constexpr int failure_kinds = 9;
std::string_view name(FailureKind kind);  // "queue_full"

// One line, as all errors: "[serve] model 'a': input 'x' is f32[-1, 10]; got f32[1, 9]". It names no path.
struct Failure {
  FailureKind kind = FailureKind::none;
  std::string message;
  explicit operator bool() const { return kind != FailureKind::none; }
};

// The same where it is thrown.
class RequestError : public Error {
 public:
  RequestError(FailureKind failure_kind, std::string_view message) : Error("serve", message), kind(failure_kind) {}
  Failure failure() const { return {kind, what()}; }
  const FailureKind kind;
};

template <class... Args>
[[noreturn]] void refuse(FailureKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw RequestError(kind, fmt::vformat(format, fmt::make_format_args(args...)));
}

}  // namespace tutti::serve
