#include "tutti/base/zip_writer.h"

#include <zlib.h>

#include <algorithm>

#include "tutti/base/error.h"

namespace tutti {

namespace {

constexpr uint64_t all_ones_32 = 0xffffffff, all_ones_16 = 0xffff;

// Little-endian fields, one after another.
struct Record {
  std::string bytes;
  Record& u16(uint64_t value) { return put(value, 2); }
  Record& u32(uint64_t value) { return put(value, 4); }
  Record& u64(uint64_t value) { return put(value, 8); }
  Record& text(std::string_view value) {
    bytes += value;
    return *this;
  }
  Record& put(uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i));
    return *this;
  }
};

constexpr uint64_t version_zip64 = 45, flag_utf8 = 0x800, stored = 0, midnight = 0, first_of_1980 = 0x21;

// Its sizes are in the zip64 field always: they are not known when it is written first, and its length must not change.
std::string local_header(std::string_view name, uint64_t size, uint32_t crc) {
  Record r;
  r.u32(0x04034b50).u16(version_zip64).u16(flag_utf8).u16(stored).u16(midnight).u16(first_of_1980).u32(crc);
  r.u32(all_ones_32).u32(all_ones_32).u16(name.size()).u16(20).text(name);
  r.u16(1).u16(16).u64(size).u64(size);
  return r.bytes;
}

uint32_t crc_of(uint32_t start, std::span<const std::byte> bytes) {
  return static_cast<uint32_t>(crc32_z(start, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

void ZipWriter::begin(std::string name, uint64_t head) {
  if (name.empty() || name.size() > 4096) fail<InvalidArgument>("zip", "member names have 1 to 4096 bytes; got {}", name.size());
  members_.push_back({std::move(name), file_.size(), head, head, 0});
  file_.write(local_header(members_.back().name, 0, 0));
  file_.write(std::string(head, '\0'));
}

void ZipWriter::write(std::span<const std::byte> bytes) {
  Member& member = members_.back();
  file_.write(bytes);
  member.crc = crc_of(member.crc, bytes);
  member.size += bytes.size();
}

void ZipWriter::end(std::string_view head) {
  Member& member = members_.back();
  if (head.size() != member.head) fail<InternalError>("zip", "a head of {} bytes was left open; got {}", member.head, head.size());
  auto head_bytes = std::as_bytes(std::span(head));
  member.crc = static_cast<uint32_t>(crc32_combine(crc_of(0, head_bytes), member.crc, static_cast<z_off_t>(member.size - member.head)));
  std::string start = local_header(member.name, member.size, member.crc);
  start += head;
  file_.write_at(member.offset, std::as_bytes(std::span(start)));
}

void ZipWriter::finish() {
  uint64_t directory = file_.size();
  for (const Member& member : members_) {
    bool large = member.size >= all_ones_32, far = member.offset >= all_ones_32;
    Record extra;
    if (large) extra.u64(member.size).u64(member.size);
    if (far) extra.u64(member.offset);
    Record r;
    r.u32(0x02014b50).u16(version_zip64).u16(version_zip64).u16(flag_utf8).u16(stored).u16(midnight).u16(first_of_1980).u32(member.crc);
    r.u32(large ? all_ones_32 : member.size).u32(large ? all_ones_32 : member.size);
    r.u16(member.name.size()).u16(extra.bytes.empty() ? 0 : extra.bytes.size() + 4).u16(0).u16(0).u16(0).u32(0);
    r.u32(far ? all_ones_32 : member.offset).text(member.name);
    if (!extra.bytes.empty()) r.u16(1).u16(extra.bytes.size()).text(extra.bytes);
    file_.write(r.bytes);
  }
  uint64_t end = file_.size(), count = members_.size();
  Record r;
  if (count >= all_ones_16 || directory >= all_ones_32 || end - directory >= all_ones_32) {
    r.u32(0x06064b50).u64(44).u16(version_zip64).u16(version_zip64).u32(0).u32(0).u64(count).u64(count).u64(end - directory).u64(directory);
    r.u32(0x07064b50).u32(0).u64(end).u32(1);
  }
  r.u32(0x06054b50).u16(0).u16(0).u16(std::min(count, all_ones_16)).u16(std::min(count, all_ones_16));
  r.u32(std::min(end - directory, all_ones_32)).u32(std::min(directory, all_ones_32)).u16(0);
  file_.write(r.bytes);
}

}  // namespace tutti
