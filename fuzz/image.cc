// .jpg, .png: any bytes are pixels as many as they say, or refused with an Error.
#include <cstdint>

#include "tutti/base/error.h"
#include "tutti/data/image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti;
  for (int64_t channels : {1, 3}) try {
      const Image image = decode_image(std::as_bytes(std::span(data, size)), {.channels = channels, .limits = {.pixels = 1 << 20}});
      if (image.channels != channels || static_cast<int64_t>(image.pixels.size()) != image.height * image.width * channels)
        __builtin_trap();
    } catch (const Error&) {
    }
  return 0;
}
