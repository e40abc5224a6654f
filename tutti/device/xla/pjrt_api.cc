#include "tutti/device/xla/pjrt_api.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/base/stopwatch.h"
#include "tutti/device/xla/trace.h"

namespace tutti::xla {

namespace {

constexpr double longest_spin = 20e-6;  // seconds

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == '\n' || text.front() == ' ')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

// A plugin's message as one line. Plugins append where in their own sources an error arose, on lines of its own: a trace.
std::string message_of(std::string_view text) {
  const size_t end = std::min({text.find("\n\n"), text.find("=== Source Location"), text.size()});
  tell_trace(trimmed(text.substr(end)));
  std::string out(trimmed(text.substr(0, end)));
  std::replace(out.begin(), out.end(), '\n', ' ');
  return out;
}

// While one lives, what is written to standard error is lost.
class Silence {
 public:
  Silence() : kept_(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) {
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (kept_ >= 0 && nowhere >= 0) dup2(nowhere, STDERR_FILENO);
    if (nowhere >= 0) close(nowhere);
  }
  ~Silence() {
    if (kept_ < 0) return;
    dup2(kept_, STDERR_FILENO);
    close(kept_);
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  int kept_;
};

}  // namespace

Api::Api(const std::string& path) : path_(path) {
  setenv("TF_CPP_MIN_LOG_LEVEL", "3", 0);  // a plugin logs its errors and gives them back as well
  const Silence silence;                   // while it is loaded, one for CUDA says that there is no driver, whatever the level
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail<DeviceError>("xla", "cannot open the plugin '{}': {}", path, dlerror());
  using Get = const PJRT_Api* (*)();
  const auto get = reinterpret_cast<Get>(dlsym(library, "GetPjrtApi"));
  if (get == nullptr || (api_ = get()) == nullptr) fail<DeviceError>("xla", "'{}' is no PJRT plugin: it has no GetPjrtApi", path);
  if (api_->pjrt_api_version.major_version != PJRT_API_MAJOR)
    fail<DeviceError>("xla", "'{}' has the PJRT API {}, this program {}.{}", path, version(), PJRT_API_MAJOR, PJRT_API_MINOR);
  auto initialize = pjrt<PJRT_Plugin_Initialize_Args>();
  call(&PJRT_Api::PJRT_Plugin_Initialize, initialize, "starting the plugin");
}

std::string Api::version() const {
  return fmt::format("{}.{}", api_->pjrt_api_version.major_version, api_->pjrt_api_version.minor_version);
}

void Api::await(PJRT_Event* event, std::string_view doing) const {
  if (event == nullptr) return;
  // Small programs are done before a thread could fall asleep and be woken; where cores are scarce, the thread that computes may need this
  // one's.
  auto ask = pjrt<PJRT_Event_IsReady_Args>();
  ask.event = event;
  for (const Stopwatch watch; watch.seconds() < longest_spin && try_call(&PJRT_Api::PJRT_Event_IsReady, ask) && !ask.is_ready;)
    std::this_thread::yield();
  auto wait = pjrt<PJRT_Event_Await_Args>();
  wait.event = event;
  PJRT_Error* error = find(&PJRT_Api::PJRT_Event_Await)(&wait);
  drop(event);
  if (error != nullptr) fail_with(error, doing);
}

void Api::drop(PJRT_Event* event) const {
  auto end = pjrt<PJRT_Event_Destroy_Args>();
  end.event = event;
  if (event != nullptr) try_call(&PJRT_Api::PJRT_Event_Destroy, end);
}

void Api::fail_absent() const {
  fail<DeviceError>("xla", "the plugin '{}' (PJRT API {}) is too old for this program ({}.{})", path_, version(), PJRT_API_MAJOR,
                    PJRT_API_MINOR);
}

void Api::fail_with(PJRT_Error* error, std::string_view doing) const {
  auto message = pjrt<PJRT_Error_Message_Args>();
  message.error = error;
  api_->PJRT_Error_Message(&message);
  const std::string text = message_of({message.message, message.message_size});
  auto code = pjrt<PJRT_Error_GetCode_Args>();
  code.error = error;
  try_call(&PJRT_Api::PJRT_Error_GetCode, code);
  destroy(error);
  if (code.code == PJRT_Error_Code_RESOURCE_EXHAUSTED) fail<OutOfMemory>("xla", "{}: {}", doing, text);
  fail<DeviceError>("xla", "{}: {}", doing, text);
}

void Api::destroy(PJRT_Error* error) const {
  auto end = pjrt<PJRT_Error_Destroy_Args>();
  end.error = error;
  api_->PJRT_Error_Destroy(&end);
}

}  // namespace tutti::xla
