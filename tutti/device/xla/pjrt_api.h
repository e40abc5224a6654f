// A plugin's table of C functions, called with checks: a function that an older plugin does not have, and every error, become ours. Only
// the .cc files of pjrt see this header, because it reads the API's own.
#pragma once

#include <pjrt_c_api.h>

#include <cstring>
#include <string>
#include <string_view>

namespace tutti::xla {

// Every argument struct begins with its own size: that is how a plugin knows which version of the struct it was given.
template <class Args>
Args pjrt() {
  Args args;
  std::memset(&args, 0, sizeof args);
  args.struct_size = sizeof args;
  return args;
}

class Api {
 public:
  // Opens a plugin, which stays open: plugins have threads of their own. Throws DeviceError.
  explicit Api(const std::string& path);

  std::string version() const;  // of the API, as the plugin has it

  // `doing` begins the message of a failure.
  template <class Args>
  void call(PJRT_Error* (*PJRT_Api::*function)(Args*), Args& args, std::string_view doing) const {
    if (PJRT_Error* error = find(function)(&args)) fail_with(error, doing);
  }
  // The same for what cannot be helped: destructors, and questions that not every plugin answers.
  template <class Args>
  bool try_call(PJRT_Error* (*PJRT_Api::*function)(Args*), Args& args) const {
    PJRT_Error* error = has(function) ? (api_->*function)(&args) : nullptr;
    if (error != nullptr) destroy(error);
    return has(function) && error == nullptr;
  }
  // Waits, and ends the event.
  void await(PJRT_Event* event, std::string_view doing) const;
  void drop(PJRT_Event* event) const;

 private:
  template <class Function>
  bool has(Function PJRT_Api::*function) const {
    const auto place = reinterpret_cast<const char*>(&(api_->*function)) - reinterpret_cast<const char*>(api_);
    return static_cast<size_t>(place) + sizeof(Function) <= api_->struct_size && api_->*function != nullptr;
  }
  template <class Function>
  Function find(Function PJRT_Api::*function) const {
    if (!has(function)) fail_absent();
    return api_->*function;
  }
  [[noreturn]] void fail_absent() const;
  [[noreturn]] void fail_with(PJRT_Error* error, std::string_view doing) const;
  void destroy(PJRT_Error* error) const;
  std::string path_;
  const PJRT_Api* api_ = nullptr;
};

}  // namespace tutti::xla
