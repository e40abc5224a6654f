// Writes zip archives of stored members (.npz, .keras), zip64 where a size asks for it. The same members give the same bytes: no times.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/file.h"

namespace tutti {

class ZipWriter {
 public:
  explicit ZipWriter(OutputFile& file) : file_(file) {}
  // A member is begun, written in any number of pieces and ended. Its first `head` bytes may be left open until end(), for formats whose
  // header counts what follows.
  void begin(std::string name, uint64_t head = 0);
  void write(std::span<const std::byte> bytes);
  void end(std::string_view head = {});
  void finish();  // the directory; the file is committed by its owner

 private:
  struct Member {
    std::string name;
    uint64_t offset = 0, size = 0, head = 0;
    uint32_t crc = 0;  // of what follows the head; of all of it once ended
  };
  OutputFile& file_;
  std::vector<Member> members_;
};

}  // namespace tutti
