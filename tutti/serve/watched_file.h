// A model's file as it is found: which one it is, and whether somebody is still writing it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tutti::serve {

struct FileStamp {
  int64_t size = 0, modified_ns = 0;
  uint64_t inode = 0;
  bool operator==(const FileStamp&) const = default;
};

std::optional<FileStamp> stamp_of(const std::string& path);  // nothing where there is no file

// Notices that a file changed, once it is the same at two looks.
class WatchedFile {
 public:
  explicit WatchedFile(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  // Before it is read: from now on what differs from this is news.
  void take() { taken_ = seen_ = stamp_of(path_); }
  bool is_news();

 private:
  std::string path_;
  std::optional<FileStamp> taken_, seen_;
};

// DIR/NAME/N/model.keras, .h5, .hdf5 or .toml: what a repository holds now. Folders whose names are none are passed over.
struct RepositoryFile {
  std::string name;
  int64_t version;
  std::string path;
};
// Sorted by name, then by version, the largest first; at most so many models. Throws InvalidArgument when the folder cannot be read.
std::vector<RepositoryFile> list_repository(const std::string& folder, size_t most);

}  // namespace tutti::serve
