// What a local client says: a control message or a region full of anything is understood, refused, or hung up on.
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "tutti/base/error.h"
#include "tutti/serve/local/connection.h"
#include "tutti/serve/local/server.h"

namespace {

using namespace tutti;
using namespace tutti::serve;

void read_control(std::string bytes) {
  try {
    std::string message;
    while (local::take_message(bytes, message)) local::hello_of(message, 1 << 20);
  } catch (const Error&) {
  }
}

// The bytes are the header's words, the first requests, and the beginning of each slot.
void read_region(const uint8_t* data, size_t size) {
  static Models models({.poll = std::chrono::milliseconds(0)});
  static Scheduler scheduler({});
  const auto connection = std::make_shared<local::Connection>(scheduler, models, local::Layout{4, 4096});
  connection->handle_of("model", -1);
  local::Descriptor copy(::dup(connection->region_descriptor()));
  local::Region region(copy);
  const auto take = [&](void* to, size_t bytes) {
    bytes = std::min(bytes, size);
    std::memcpy(to, data, bytes);
    data += bytes;
    size -= bytes;
  };
  uint8_t count = 0;
  take(&count, 1);
  for (uint32_t i = 0; i < 8; ++i) take(&region.request(i), sizeof(local::RequestEntry));
  for (uint32_t i = 0; i < 4; ++i) take(region.slot(i).data(), 3 * sizeof(local::TensorEntry));
  local::store(region.header().request_tail, count % 10);
  bool any = false;
  while (connection->poll(any) && std::exchange(any, false)) {
  }
  connection->end();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  if (data[0] % 4 == 0)
    read_control(std::string(reinterpret_cast<const char*>(data + 1), size - 1));
  else
    read_region(data + 1, size - 1);
  return 0;
}
