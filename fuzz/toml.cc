// Job files and manifests: TOML from anywhere.
#include "tutti/base/toml.h"

#include <cstddef>
#include <cstdint>

#include "tutti/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    tutti::parse_toml({reinterpret_cast<const char*>(data), size});
  } catch (const tutti::InternalError&) {
    throw;
  } catch (const tutti::Error&) {
  }
  return 0;
}
