// Reads zip archives (.keras, .npz) from a hostile file: the central directory is checked before anything is used, uncompressed
// members are handed out as parts of the file without a copy, compressed ones are inflated within a budget.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/file.h"

namespace tutti {

struct ZipLimits {
  uint64_t members = 100'000;
  uint64_t name_bytes = 4096;
  uint64_t inflated_bytes = uint64_t{16} << 30;  // of one compressed member
  uint64_t ratio = 1100;                         // deflate cannot do better; more is a lie in the directory
  // A compressed member may be this large at any ratio; beyond, `large_ratio` tells weights (seldom more than 3) from bombs.
  uint64_t free_bytes = 128 << 20;
  uint64_t large_ratio = 20;
};

class ZipReader {
 public:
  struct Member {
    std::string name;  // relative, '/' between folders, valid UTF-8; a folder ends with '/'
    uint64_t size = 0, packed = 0, header_offset = 0;
    uint64_t end_offset = 0;  // where the next member, or the directory, begins
    uint32_t crc = 0;
    uint16_t flags = 0, method = 0;  // method 0 stored, 8 deflated
  };
  // Throws InvalidModel("zip", ...): not a zip, truncated, encrypted, multi-disk, overlapping or duplicate members, absolute or ".." names.
  explicit ZipReader(std::shared_ptr<const ByteSource> file, ZipLimits limits = {});
  const std::vector<Member>& members() const { return members_; }
  const Member* find(std::string_view name) const;
  // Stored: a view of the file (its CRC is not read: loading would cost another pass). Deflated: inflated and CRC-checked.
  // Throws InvalidModel when the member disagrees with the directory, Unsupported for other methods.
  std::shared_ptr<const ByteSource> open(const Member& member) const;

 private:
  struct Directory {
    uint64_t offset, size, members;
  };
  Directory find_directory() const;
  Directory find_directory64(uint64_t locator_offset) const;
  void read_directory(const Directory& directory);
  void check_layout(const Directory& directory);
  uint64_t find_data(const Member& member) const;
  void check_descriptor(const Member& member, uint64_t offset) const;
  std::shared_ptr<const ByteSource> inflate(const Member& member, uint64_t offset) const;

  std::shared_ptr<const ByteSource> file_;
  ZipLimits limits_;
  std::vector<Member> members_;
  std::vector<uint32_t> by_name_;  // indexes into members_
};

}  // namespace tutti
