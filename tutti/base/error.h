// The errors of the library. Every one says where it arose, which rule was broken and with which values, and if useful
// what to do: "[keras] layer 'dense_3': kernel has shape [64, 10], expected [32, 10]; hint: ...". One line, always.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tutti {

class Error : public std::runtime_error {
 public:
  Error(std::string_view where, std::string_view message);
};

// The file is corrupt, malicious, or does not describe a model.
class InvalidModel : public Error {
  using Error::Error;
};
// The file is fine, and we do not do this (yet).
class Unsupported : public Error {
  using Error::Error;
};
// The caller's values do not fit: shapes, dtypes, names, options, data files.
class InvalidArgument : public Error {
  using Error::Error;
};
// A device is absent, lost or refuses the program.
class DeviceError : public Error {
  using Error::Error;
};
// More memory is needed than is there or allowed; thrown before allocating.
class OutOfMemory : public Error {
  using Error::Error;
};
// Our own bug.
class InternalError : public Error {
 public:
  InternalError(std::string_view where, std::string_view message);
};

// fail<InvalidModel>("keras", "layer '{}': ...", name)
template <class E, class... Args>
[[noreturn]] void fail(std::string_view where, fmt::format_string<Args...> format, Args&&... args) {
  throw E(where, fmt::vformat(format, fmt::make_format_args(args...)));
}

// Text from a file, made safe for one line of a terminal: control characters and invalid UTF-8 escaped, long text shortened.
std::string escape(std::string_view text, size_t longest = 200);

// " (did you mean 'a' or 'b'?)" for an unknown name, or "".
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

}  // namespace tutti
