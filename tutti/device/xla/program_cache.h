// Compiled programs kept on disk: a program that any process has compiled before is loaded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tutti::xla {

class ProgramCache {
 public:
  static constexpr uint64_t default_limit = uint64_t{1} << 30;  // bytes

  // In TUTTI_CACHE, else XDG_CACHE_HOME/tutti, else HOME/.cache/tutti; TUTTI_CACHE=off: nowhere, nothing is kept.
  ProgramCache();
  explicit ProgramCache(std::string folder, uint64_t limit = default_limit) : folder_(std::move(folder)), limit_(limit) {}

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

// What programs compiled on this processor need of it; "" for other platforms, whose devices say it by their kind.
std::string machine_of(std::string_view platform);

}  // namespace tutti::xla
