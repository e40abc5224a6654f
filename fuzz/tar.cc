// .tar: any bytes are members that lie within them, or refused with an Error.
#include <cstdint>

#include "tutti/base/error.h"
#include "tutti/data/tar.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti;
  const auto bytes = std::as_bytes(std::span(data, size));
  const std::shared_ptr<const ByteSource> archive = memory_source(std::vector<std::byte>(bytes.begin(), bytes.end()));
  try {
    is_tar(*archive);
    TarReader reader(archive, "fuzz.tar");
    while (auto member = reader.next())
      if (member->offset > size || member->size > size - member->offset) __builtin_trap();
  } catch (const Error&) {
  }
  return 0;
}
