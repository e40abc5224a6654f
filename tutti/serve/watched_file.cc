#include "tutti/serve/watched_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "tutti/base/error.h"
#include "tutti/serve/models.h"

namespace tutti::serve {

namespace fs = std::filesystem;

std::optional<FileStamp> stamp_of(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return {};
  return FileStamp{found.st_size, found.st_mtim.tv_sec * int64_t{1'000'000'000} + found.st_mtim.tv_nsec, found.st_ino};
}

bool WatchedFile::is_news() {
  const auto now = stamp_of(path_);
  const bool steady = now == seen_;
  seen_ = now;
  return now && steady && now != taken_;
}

namespace {

std::optional<int64_t> version_number(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1 || text[0] == '0') return {};
  return number;
}

bool is_name(const std::string& text) {
  try {
    check_name(text);
    return true;
  } catch (const InvalidArgument&) {
    return false;
  }
}

}  // namespace

std::vector<RepositoryFile> list_repository(const std::string& folder, size_t most) {
  constexpr size_t most_entries = 100'000;
  std::vector<RepositoryFile> files;
  std::error_code error;
  fs::directory_iterator models(folder, error);
  if (error) fail<InvalidArgument>("serve", "the repository '{}' cannot be read: {}", escape(folder), error.message());
  std::set<std::string> names;
  for (; models != fs::directory_iterator() && names.size() < most_entries; models.increment(error)) {
    if (error) break;
    // Hidden ones are where models are made ready, and what file systems and mounts keep for themselves.
    if (const std::string found = models->path().filename().string(); is_name(found) && found[0] != '.') names.insert(found);
  }
  for (const std::string& name : names) {
    if (most == 0) break;
    const size_t before = files.size();
    fs::directory_iterator versions(fs::path(folder) / name, error);
    for (size_t looked = 0; !error && versions != fs::directory_iterator() && looked < most_entries; versions.increment(error), ++looked) {
      const auto number = version_number(versions->path().filename().string());
      if (!number) continue;
      for (const char* file : {"model.keras", "model.h5", "model.hdf5", "model.toml"}) {
        const std::string path = (versions->path() / file).string();
        if (!stamp_of(path)) continue;
        files.push_back({name, *number, path});
        break;
      }
    }
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end(),
              [](const auto& a, const auto& b) { return a.version > b.version; });
    if (files.size() > before) --most;
  }
  return files;
}

}  // namespace tutti::serve
