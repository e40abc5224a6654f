// Little-endian numbers in bytes from a file, and a cursor that cannot leave them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tutti/base/error.h"

namespace tutti {

// A fuzzer cannot guess checksums: in its build they are computed, and a wrong one is no error.
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
inline bool checksums_agree(uint32_t, uint32_t) { return true; }
#else
inline bool checksums_agree(uint32_t stored, uint32_t computed) { return stored == computed; }
#endif

// Reads front to back; every step beyond the end throws InvalidModel(where, "'what' is cut short").
class ByteCursor {
 public:
  ByteCursor(std::span<const std::byte> bytes, std::string_view where, std::string_view what) : bytes_(bytes), where_(where), what_(what) {}

  size_t position() const { return at_; }
  size_t left() const { return bytes_.size() - at_; }
  std::span<const std::byte> take(uint64_t count) {
    if (count > left())
      fail<InvalidModel>(where_, "{} is cut short: {} bytes are needed at byte {} of {}", what_, count, at_, bytes_.size());
    at_ += count;
    return bytes_.subspan(at_ - count, count);
  }
  void skip(uint64_t count) { take(count); }
  // An unsigned number of 0 to 8 bytes.
  uint64_t number(size_t width) {
    uint64_t out = 0;
    auto bytes = take(width);
    for (size_t i = width; i-- > 0;) out = out << 8 | std::to_integer<uint64_t>(bytes[i]);
    return out;
  }
  uint8_t u8() { return static_cast<uint8_t>(number(1)); }
  uint16_t u16() { return static_cast<uint16_t>(number(2)); }
  uint32_t u32() { return static_cast<uint32_t>(number(4)); }
  uint64_t u64() { return number(8); }
  std::string_view text(uint64_t count) {
    auto bytes = take(count);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  std::span<const std::byte> bytes_;
  std::string_view where_, what_;
  size_t at_ = 0;
};

}  // namespace tutti
