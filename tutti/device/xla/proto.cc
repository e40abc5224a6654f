#include "tutti/device/xla/proto.h"

#include "tutti/base/error.h"

namespace tutti::xla {

namespace {

enum Wire : uint32_t { varint_wire = 0, fixed64_wire = 1, text_wire = 2, fixed32_wire = 5 };

[[noreturn]] void fail_cut_short() { fail<DeviceError>("xla", "a message of the plugin is cut short"); }

}  // namespace

void ProtoWriter::varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
  bytes_ += static_cast<char>(value);
}

ProtoWriter& ProtoWriter::number(uint32_t field, uint64_t value) {
  varint(field << 3 | varint_wire);
  varint(value);
  return *this;
}

ProtoWriter& ProtoWriter::text(uint32_t field, std::string_view value) {
  varint(field << 3 | text_wire);
  varint(value.size());
  bytes_ += value;
  return *this;
}

std::optional<uint64_t> ProtoReader::take_varint(std::string_view& bytes) {
  if (bytes.empty()) return {};
  uint64_t out = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (bytes.empty()) fail_cut_short();
    const auto byte = static_cast<unsigned char>(bytes[0]);
    bytes.remove_prefix(1);
    out |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return out;
  }
  fail<DeviceError>("xla", "a message of the plugin has a number of more than 64 bits");
}

std::string_view ProtoReader::take(uint64_t count) {
  if (count > left_.size()) fail_cut_short();
  const std::string_view out = left_.substr(0, count);
  left_.remove_prefix(count);
  return out;
}

std::optional<ProtoReader::Field> ProtoReader::next() {
  const auto key = take_varint(left_);
  if (!key) return {};
  Field out{static_cast<uint32_t>(*key >> 3), 0, {}};
  const auto number = [&] {
    const auto value = take_varint(left_);
    if (!value) fail_cut_short();
    return *value;
  };
  const auto fixed = [&](uint64_t width) {
    const std::string_view bytes = take(width);
    for (size_t i = width; i-- > 0;) out.value = out.value << 8 | static_cast<unsigned char>(bytes[i]);
  };
  switch (*key & 7) {
    case varint_wire: out.value = number(); break;
    case text_wire: out.text = take(number()); break;
    case fixed64_wire: fixed(8); break;
    case fixed32_wire: fixed(4); break;
    default: fail<DeviceError>("xla", "a message of the plugin has a field of unknown kind {}", *key & 7);
  }
  return out;
}

}  // namespace tutti::xla
