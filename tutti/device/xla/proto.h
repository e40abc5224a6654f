// Protocol buffers on the wire, as far as XLA's options and programs need them: fields of numbers, text and messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tutti::xla {

class ProtoWriter {
 public:
  ProtoWriter& number(uint32_t field, uint64_t value);
  ProtoWriter& text(uint32_t field, std::string_view value);  // a string, bytes or a message
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value);
  std::string bytes_;
};

// The fields of a message one after another. Throws DeviceError where the bytes are no message.
class ProtoReader {
 public:
  struct Field {
    uint32_t number;
    uint64_t value;         // of numbers; of fixed ones their bits
    std::string_view text;  // of strings, bytes and messages
  };
  explicit ProtoReader(std::string_view bytes) : left_(bytes) {}
  std::optional<Field> next();
  // A list of numbers in one field.
  static std::optional<uint64_t> take_varint(std::string_view& bytes);

 private:
  std::string_view take(uint64_t count);
  std::string_view left_;
};

}  // namespace tutti::xla
