// What took long to find out, kept on disk for other processes: compiled programs, how ensembles are arranged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tutti {

class DiskCache {
 public:
  static constexpr uint64_t default_limit = uint64_t{1} << 30;  // bytes

  // In TUTTI_CACHE, else XDG_CACHE_HOME/tutti, else HOME/.cache/tutti; TUTTI_CACHE=off: nowhere, nothing is kept.
  DiskCache();
  explicit DiskCache(std::string folder, uint64_t limit = default_limit) : folder_(std::move(folder)), limit_(limit) {}

  // The value kept for exactly this key; a damaged entry is none. Entries are whole files, renamed into place, so processes may do what
  // they like at the same time.
  std::optional<std::string> find(const std::string& key) const;
  // Makes room by dropping what was not asked for longest. Keeps nothing where that fails: a full disk is no reason to stop.
  void store(const std::string& key, const std::string& value) const;
  void remove(const std::string& key) const;
  const std::string& folder() const { return folder_; }  // "": nothing is kept

 private:
  std::string path_of(const std::string& key) const;
  void make_room(uint64_t bytes) const;
  std::string folder_;
  uint64_t limit_ = default_limit;
};

// All that this processor can do, by name: what programs compiled on it need.
std::string processor_features();
// What it is called, and how many of it there are.
std::string processor_name();
// This program, as it was built: what is measured with one build says little of the next.
std::string build_name();
// Two numbers in words, different for texts that are.
std::string fingerprint(std::string_view text);

}  // namespace tutti
