// Zip archives: any bytes are an archive whose members are all read, or refused with an Error.
#include <cstdint>

#include "tutti/base/error.h"
#include "tutti/base/zip.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti;
  auto bytes = std::as_bytes(std::span(data, size));
  try {
    ZipReader zip(memory_source({bytes.begin(), bytes.end()}));
    for (const auto& member : zip.members()) {
      if (zip.find(member.name) != &member) __builtin_trap();
      try {
        if (read_all(*zip.open(member), 1 << 30).size() != member.size) __builtin_trap();
      } catch (const InternalError&) {
        throw;
      } catch (const Error&) {
      }
    }
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {
  }
  return 0;
}
