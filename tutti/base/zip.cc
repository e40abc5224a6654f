#include "tutti/base/zip.h"

#include <zlib.h>

#include <algorithm>
#include <numeric>

#include "tutti/base/bytes.h"
#include "tutti/base/error.h"
#include "tutti/base/inflate.h"
#include "tutti/base/utf8.h"

namespace tutti {

namespace {

constexpr uint32_t local_signature = 0x04034b50, central_signature = 0x02014b50, end_signature = 0x06054b50, end64_signature = 0x06064b50,
                   locator64_signature = 0x07064b50, descriptor_signature = 0x08074b50;
constexpr uint64_t end_bytes = 22, locator64_bytes = 20, end64_bytes = 56, central_bytes = 46, local_bytes = 30;
constexpr uint16_t encrypted_flag = 1, descriptor_flag = 8;
constexpr uint64_t max_directory_bytes = 64 << 20;

std::vector<std::byte> read_some(const ByteSource& file, uint64_t offset, uint64_t count) {
  if (offset > file.size() || count > file.size() - offset)
    fail<InvalidModel>("zip", "{} bytes at offset {} are outside of the file's {} bytes", count, offset, file.size());
  std::vector<std::byte> out(count);
  file.read(offset, out);
  return out;
}

void check_name(const std::string& name, uint64_t longest) {
  auto wrong = [&](std::string_view why) { fail<InvalidModel>("zip", "member '{}': {}", escape(name), why); };
  if (name.empty()) wrong("the name is empty");
  if (name.size() > longest) wrong(fmt::format("the name is longer than {} bytes", longest));
  for (size_t i = 0, length = 0; i < name.size(); i += length) {
    length = utf8_length(name, i);
    if (length == 0) wrong("the name is not UTF-8");
    if (static_cast<unsigned char>(name[i]) < 0x20) wrong("a control character in the name");
  }
  if (name[0] == '/' || name.find('\\') != name.npos || name.find(':') == 1) wrong("the name is not a relative path");
  for (size_t start = 0; start <= name.size();) {
    size_t end = std::min(name.find('/', start), name.size());
    if (name.compare(start, end - start, "..") == 0) wrong("the name leaves the archive");
    start = end + 1;
  }
}

// The 64-bit values of fields that are all ones in the 32-bit record: the zip64 extra field, in the order given.
void read_zip64(std::span<const std::byte> extra, std::initializer_list<uint64_t*> fields) {
  ByteCursor cursor(extra, "zip", "an extra field");
  while (cursor.left() >= 4) {
    uint16_t id = cursor.u16(), size = cursor.u16();
    ByteCursor body(cursor.take(size), "zip", "the zip64 field");
    if (id != 1) continue;
    for (uint64_t* field : fields)
      if (*field == 0xffffffff) *field = body.u64();
    return;
  }
}

}  // namespace

ZipReader::ZipReader(std::shared_ptr<const ByteSource> file, ZipLimits limits) : file_(std::move(file)), limits_(limits) {
  Directory directory = find_directory();
  read_directory(directory);
  check_layout(directory);
}

const ZipReader::Member* ZipReader::find(std::string_view name) const {
  auto at = std::lower_bound(by_name_.begin(), by_name_.end(), name, [&](uint32_t i, std::string_view n) { return members_[i].name < n; });
  return at != by_name_.end() && members_[*at].name == name ? &members_[*at] : nullptr;
}

// The end record is the last thing in the file but for a comment whose length it holds.
ZipReader::Directory ZipReader::find_directory() const {
  uint64_t size = file_->size();
  if (size < end_bytes) fail<InvalidModel>("zip", "not a zip archive: only {} bytes", size);
  uint64_t tail_size = std::min<uint64_t>(size, end_bytes + 0xffff), tail_offset = size - tail_size;
  auto tail = read_some(*file_, tail_offset, tail_size);
  for (uint64_t at = tail_size - end_bytes + 1; at-- > 0;) {
    if (tail[at] != std::byte{'P'} || tail[at + 1] != std::byte{'K'}) continue;
    ByteCursor cursor{std::span(tail).subspan(at), "zip", "the end record"};
    if (cursor.u32() != end_signature) continue;
    uint16_t disk = cursor.u16(), directory_disk = cursor.u16(), members_here = cursor.u16(), members = cursor.u16();
    uint64_t directory_size = cursor.u32(), directory_offset = cursor.u32();
    if (cursor.u16() != cursor.left()) continue;
    uint64_t end_offset = tail_offset + at;
    if (end_offset >= locator64_bytes) {
      auto locator = read_some(*file_, end_offset - locator64_bytes, locator64_bytes);
      if (ByteCursor(locator, "zip", "the zip64 locator").u32() == locator64_signature)
        return find_directory64(end_offset - locator64_bytes);
    }
    if (disk != 0 || directory_disk != 0 || members_here != members) fail<InvalidModel>("zip", "an archive over several disks");
    if (directory_offset + directory_size != end_offset)
      fail<InvalidModel>("zip", "the directory ({} bytes at {}) does not end where the end record begins ({})", directory_size,
                         directory_offset, end_offset);
    return {directory_offset, directory_size, members};
  }
  fail<InvalidModel>("zip", "not a zip archive, or its end is missing");
}

ZipReader::Directory ZipReader::find_directory64(uint64_t locator_offset) const {
  auto locator = read_some(*file_, locator_offset, locator64_bytes);
  ByteCursor cursor{std::span(locator).subspan(4), "zip", "the zip64 locator"};
  uint32_t disk = cursor.u32();
  uint64_t end_offset = cursor.u64();
  uint32_t disks = cursor.u32();
  if (disk != 0 || disks != 1) fail<InvalidModel>("zip", "an archive over several disks");
  auto end = read_some(*file_, end_offset, end64_bytes);
  ByteCursor record(end, "zip", "the zip64 end record");
  if (record.u32() != end64_signature) fail<InvalidModel>("zip", "no zip64 end record at offset {}", end_offset);
  uint64_t record_size = record.u64();
  record.skip(4);  // versions
  if (record_size < end64_bytes - 12 || record_size > locator_offset || end_offset + 12 + record_size != locator_offset)
    fail<InvalidModel>("zip", "the zip64 end record ({} bytes at {}) does not end where its locator begins", record_size, end_offset);
  uint32_t this_disk = record.u32(), directory_disk = record.u32();
  uint64_t members_here = record.u64(), members = record.u64(), size = record.u64(), offset = record.u64();
  if (this_disk != 0 || directory_disk != 0 || members_here != members) fail<InvalidModel>("zip", "an archive over several disks");
  if (size > end_offset || offset != end_offset - size)
    fail<InvalidModel>("zip", "the directory ({} bytes at {}) does not end where the end record begins ({})", size, offset, end_offset);
  return {offset, size, members};
}

void ZipReader::read_directory(const Directory& directory) {
  if (directory.members > limits_.members) fail<InvalidModel>("zip", "at most {} members; got {}", limits_.members, directory.members);
  if (directory.size > max_directory_bytes)
    fail<InvalidModel>("zip", "a directory of at most {} bytes; got {}", max_directory_bytes, directory.size);
  if (directory.members > directory.size / central_bytes)
    fail<InvalidModel>("zip", "{} members do not fit in a directory of {} bytes", directory.members, directory.size);
  auto bytes = read_some(*file_, directory.offset, directory.size);
  ByteCursor cursor(bytes, "zip", "the directory");
  members_.reserve(directory.members);
  for (uint64_t i = 0; i < directory.members; ++i) {
    if (cursor.u32() != central_signature) fail<InvalidModel>("zip", "entry {} of the directory has a wrong signature", i);
    Member member;
    cursor.skip(4);  // versions
    member.flags = cursor.u16();
    member.method = cursor.u16();
    cursor.skip(4);  // time and date
    member.crc = cursor.u32();
    member.packed = cursor.u32();
    member.size = cursor.u32();
    uint16_t name_size = cursor.u16(), extra_size = cursor.u16(), comment_size = cursor.u16();
    cursor.skip(8);  // disk (only one, checked before) and attributes
    member.header_offset = cursor.u32();
    member.name = cursor.text(name_size);
    read_zip64(cursor.take(extra_size), {&member.size, &member.packed, &member.header_offset});
    cursor.skip(comment_size);
    check_name(member.name, limits_.name_bytes);
    if (member.flags & encrypted_flag) fail<InvalidModel>("zip", "member '{}' is encrypted", escape(member.name));
    if (member.method == 0 && member.size != member.packed)
      fail<InvalidModel>("zip", "member '{}' is stored, yet has {} bytes in {}", escape(member.name), member.size, member.packed);
    members_.push_back(std::move(member));
  }
  if (cursor.left() != 0) fail<InvalidModel>("zip", "{} bytes are left after the last of {} members", cursor.left(), directory.members);
}

// Members lie one after the other before the directory, and have different names.
void ZipReader::check_layout(const Directory& directory) {
  std::vector<uint32_t> order(members_.size());
  std::iota(order.begin(), order.end(), 0u);
  by_name_ = order;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return members_[a].header_offset < members_[b].header_offset; });
  for (size_t i = 0; i < order.size(); ++i) {
    Member& member = members_[order[i]];
    member.end_offset = i + 1 < order.size() ? members_[order[i + 1]].header_offset : directory.offset;
    uint64_t least = local_bytes + member.name.size();
    if (member.header_offset > directory.offset || member.end_offset - member.header_offset < least ||
        member.packed > member.end_offset - member.header_offset - least)
      fail<InvalidModel>("zip", "member '{}' ({} bytes at {}) overlaps what follows at {}", escape(member.name), member.packed,
                         member.header_offset, member.end_offset);
  }
  std::sort(by_name_.begin(), by_name_.end(), [&](uint32_t a, uint32_t b) { return members_[a].name < members_[b].name; });
  for (size_t i = 1; i < by_name_.size(); ++i)
    if (members_[by_name_[i - 1]].name == members_[by_name_[i]].name)
      fail<InvalidModel>("zip", "two members are named '{}'", escape(members_[by_name_[i]].name));
}

// Checks the member's own header against the directory; gives the offset of its data.
uint64_t ZipReader::find_data(const Member& member) const {
  auto header = read_some(*file_, member.header_offset, local_bytes + member.name.size());
  ByteCursor cursor(header, "zip", "a member's header");
  auto check = [&](bool good, std::string_view what) {
    if (!good) fail<InvalidModel>("zip", "member '{}': {} differs from the directory", escape(member.name), what);
  };
  check(cursor.u32() == local_signature, "the signature");
  cursor.skip(2);  // version
  check(cursor.u16() == member.flags, "a flag");
  check(cursor.u16() == member.method, "the method");
  cursor.skip(4);  // time and date
  uint32_t crc = cursor.u32();
  uint64_t packed = cursor.u32(), size = cursor.u32();
  uint16_t name_size = cursor.u16(), extra_size = cursor.u16();
  check(name_size == member.name.size() && cursor.text(name_size) == member.name, "the name");
  uint64_t extra_offset = member.header_offset + local_bytes + name_size, data_offset = extra_offset + extra_size;
  check(extra_size <= member.end_offset - extra_offset && member.packed <= member.end_offset - data_offset, "the size");
  read_zip64(read_some(*file_, extra_offset, extra_size), {&size, &packed});
  if (member.flags & descriptor_flag) {
    // The writer could not go back to fill in the header: zeros there, the values after the data.
    check((crc == 0 || crc == member.crc) && (packed == 0 || packed == member.packed) && (size == 0 || size == member.size),
          "a size or the CRC");
    check_descriptor(member, data_offset + member.packed);
  } else {
    check(crc == member.crc && packed == member.packed && size == member.size, "a size or the CRC");
  }
  return data_offset;
}

// [signature] crc, packed, size; the sizes of 4 or 8 bytes. Signature and width are the writer's choice, and not announced.
void ZipReader::check_descriptor(const Member& member, uint64_t offset) const {
  auto bytes = read_some(*file_, offset, std::min<uint64_t>(member.end_offset - offset, 24));
  for (bool with_signature : {true, false})
    for (size_t width : {4, 8}) {
      if (bytes.size() < (with_signature ? 4 : 0) + 4 + 2 * width) continue;
      ByteCursor cursor(bytes, "zip", "a data descriptor");
      if (with_signature && cursor.u32() != descriptor_signature) continue;
      if (cursor.u32() == member.crc && cursor.number(width) == member.packed && cursor.number(width) == member.size) return;
    }
  fail<InvalidModel>("zip", "member '{}': the data descriptor differs from the directory", escape(member.name));
}

std::shared_ptr<const ByteSource> ZipReader::open(const Member& member) const {
  uint64_t offset = find_data(member);
  if (member.method == 0) return part_of(file_, offset, member.packed);
  if (member.method == 8) return inflate(member, offset);
  fail<Unsupported>("zip", "member '{}' is packed with method {}; only stored (0) and deflated (8) members are read", escape(member.name),
                    member.method);
}

std::shared_ptr<const ByteSource> ZipReader::inflate(const Member& member, uint64_t offset) const {
  // Divisions, not products: nothing overflows. The floor allows for the few bytes of an empty stream.
  uint64_t ratio = member.size / std::max<uint64_t>(member.packed, 16);
  if (ratio > limits_.ratio || member.size > limits_.inflated_bytes || (member.size > limits_.free_bytes && ratio > limits_.large_ratio))
    fail<InvalidModel>("zip", "member '{}' claims to inflate from {} to {} bytes: beyond what is allowed", escape(member.name),
                       member.packed, member.size);
  auto bytes = std::make_unique_for_overwrite<std::byte[]>(member.size);
  std::span<std::byte> out(bytes.get(), member.size);
  std::vector<std::byte> piece(std::min<uint64_t>(member.packed, 256 << 10));
  uint64_t done = 0;
  auto next = [&]() -> std::span<const std::byte> {
    auto part = std::span(piece).first(std::min<uint64_t>(piece.size(), member.packed - done));
    file_->read(offset + done, part);
    done += part.size();
    return part;
  };
  if (!inflate_exactly(Packing::raw, next, out))
    fail<InvalidModel>("zip", "member '{}' does not inflate to its {} bytes", escape(member.name), member.size);
  if (!checksums_agree(member.crc, static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(out.data()), out.size()))))
    fail<InvalidModel>("zip", "member '{}' has another CRC than the directory says", escape(member.name));
  return memory_source(std::move(bytes), member.size);
}

}  // namespace tutti
