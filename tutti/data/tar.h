// The members of a tar archive, one after another: ustar, pax and GNU names. Only headers are read here; data are read by whoever wants
// them, in any order.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tutti/base/file.h"

namespace tutti {

struct TarMember {
  std::string name;
  uint64_t offset = 0, size = 0;  // of its data, in the archive
  std::string link = {};          // to which it only points: it has no data of its own
};

class TarReader {
 public:
  // `file` names the source in messages.
  TarReader(std::shared_ptr<const ByteSource> source, std::string file) : source_(std::move(source)), file_(std::move(file)) {}
  // The next regular file, or link; nothing at the end of the archive. Throws InvalidArgument where it is broken or cut off.
  std::optional<TarMember> next();

 private:
  std::string text(uint64_t offset, uint64_t size) const;
  [[noreturn]] void refuse(std::string_view why) const;
  std::shared_ptr<const ByteSource> source_;
  std::string file_;
  uint64_t at_ = 0;
};

// Whether the source begins with the header of a tar archive.
bool is_tar(const ByteSource& source);

}  // namespace tutti
