// Reads zip archives (.keras, .npz) from a hostile file: the central directory is checked before anything is used, uncompressed
// members are handed out as parts of the file without a copy, compressed ones are inflated within a budget.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tutti/base/file.h"

namespace tutti {

struct ZipLimits {
  uint64_t members = 100'000;
  uint64_t name_bytes = 4096;
  uint64_t inflated_bytes = uint64_t{16} << 30;  // of one compressed member
  uint64_t ratio = 1100;                         // deflate cannot do better; more is a lie in the directory
};

class ZipReader {
 public:
  struct Member {
    std::string name;
    uint64_t size = 0, packed = 0, header_offset = 0;
    uint32_t crc = 0;
    uint16_t method = 0;  // 0 stored, 8 deflated
  };
  // Throws InvalidModel("zip", ...): not a zip, truncated, encrypted, multi-disk, overlapping or duplicate members, absolute or ".." names.
  explicit ZipReader(std::shared_ptr<const ByteSource> file, ZipLimits limits = {});
  const std::vector<Member>& members() const { return members_; }
  const Member* find(std::string_view name) const;
  // Stored: a view of the file (its CRC is not read: loading would cost another pass). Deflated: inflated and CRC-checked.
  std::shared_ptr<const ByteSource> open(const Member& member) const;

 private:
  std::shared_ptr<const ByteSource> file_;
  ZipLimits limits_;
  std::vector<Member> members_;
};

}  // namespace tutti
