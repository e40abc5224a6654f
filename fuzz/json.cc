// JSON: any bytes are a value that is written and read back the same, or refused with an Error.
#include <cstdint>
#include <string_view>

#include "tutti/base/error.h"
#include "tutti/base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti;
  try {
    Json value = Json::parse({reinterpret_cast<const char*>(data), size});
    std::string text = value.dump(), indented = value.dump(2);
    // As text: NaN does not equal itself.
    if (Json::parse(text).dump() != text || Json::parse(indented).dump() != text) __builtin_trap();
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {
  }
  return 0;
}
