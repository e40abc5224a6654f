#include "tutti/base/disk_cache.h"

#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "tutti/base/bytes.h"
#include "tutti/base/file.h"

namespace tutti {

namespace {

namespace fs = std::filesystem;

// An entry: magic, checksum of what follows it (u32), length of the key (u64), the key, the value.
constexpr std::string_view magic = "tutti program 1\n", ending = ".program";
constexpr size_t header_bytes = magic.size() + 4 + 8;

std::string folder_from_environment() {
  const auto value = [](const char* name) { return std::string(std::getenv(name) == nullptr ? "" : std::getenv(name)); };
  if (const std::string asked = value("TUTTI_CACHE"); !asked.empty()) return asked == "off" ? "" : asked;
  if (const std::string base = value("XDG_CACHE_HOME"); base.starts_with("/")) return base + "/tutti";
  const std::string home = value("HOME");
  return home.empty() ? "" : home + "/.cache/tutti";
}

// FNV-1a.
uint64_t hash_of(std::string_view text, uint64_t seed) {
  uint64_t hash = seed;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

uint32_t checksum(std::string_view text) {
  uint32_t sum = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t count = std::min<size_t>(text.size() - at, 1 << 30);
    sum = static_cast<uint32_t>(crc32(sum, reinterpret_cast<const Bytef*>(text.data() + at), static_cast<uInt>(count)));
    at += count;
  }
  return sum;
}

std::string little_endian(uint64_t value, size_t width) {
  std::string out;
  for (size_t i = 0; i < width; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

}  // namespace

std::string processor_features() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("flags") || line.starts_with("Features")) return line;
  return "";
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string name;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model") || line.starts_with("cpu family") || line.starts_with("CPU part") || line.starts_with("cache size"))
      name += line + "\n";
    else if (line.empty())
      break;  // the first of them stands for all
  return fmt::format("{}{} of them\n", name, std::thread::hardware_concurrency());
}

std::string build_name() {
  std::error_code unknown;
  const fs::path program = fs::read_symlink("/proc/self/exe", unknown);
  const auto size = fs::file_size(program, unknown);
  const auto made = fs::last_write_time(program, unknown);
  return unknown ? "" : fmt::format("{} bytes of {}", size, made.time_since_epoch().count());
}

std::string fingerprint(std::string_view text) {
  return fmt::format("{:016x}{:016x}", hash_of(text, 0xcbf29ce484222325), hash_of(text, 0x84222325cbf29ce4));
}

DiskCache::DiskCache() : folder_(folder_from_environment()) {}

std::string DiskCache::path_of(const std::string& key) const { return fmt::format("{}/{}{}", folder_, fingerprint(key), ending); }

std::optional<std::string> DiskCache::find(const std::string& key) const {
  if (folder_.empty()) return {};
  try {
    const std::string path = path_of(key);
    const auto file = open_file(path);
    if (file->size() > limit_) return {};
    const auto bytes = read_all(*file, limit_);
    ByteCursor cursor(bytes, "cache", "an entry");
    if (cursor.text(magic.size()) != magic) return {};
    const uint32_t sum = cursor.u32();
    const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!checksums_agree(sum, checksum(all.substr(magic.size() + 4)))) return {};
    if (cursor.text(cursor.u64()) != key) return {};
    std::error_code ignored;
    fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);  // used lately
    return std::string(cursor.text(cursor.left()));
  } catch (const Error&) {
    return {};  // not there, or damaged
  }
}

void DiskCache::store(const std::string& key, const std::string& value) const {
  if (folder_.empty() || header_bytes + key.size() + value.size() > limit_) return;
  try {
    std::error_code ignored;
    if (fs::create_directories(folder_, ignored)) fs::permissions(folder_, fs::perms::owner_all, ignored);  // what is loaded from here runs
    make_room(header_bytes + key.size() + value.size());
    const std::string entry = little_endian(key.size(), 8) + key + value;
    OutputFile file(path_of(key));
    file.write(magic);
    file.write(little_endian(checksum(entry), 4));
    file.write(entry);
    file.commit();
  } catch (const Error&) {
    return;
  }
}

void DiskCache::remove(const std::string& key) const {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove(path_of(key), ignored);
}

void DiskCache::make_room(uint64_t bytes) const {
  struct Entry {
    fs::file_time_type used;
    fs::path path;
    uint64_t bytes;
  };
  std::vector<Entry> entries;
  uint64_t all = bytes;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;  // by another process, meanwhile
    const uint64_t size = fs::file_size(at->path(), gone);
    const auto used = fs::last_write_time(at->path(), gone);
    if (gone || at->path().extension() != ending) continue;
    entries.push_back({used, at->path(), size});
    all += size;
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (all <= limit_) return;
    std::error_code ignored;
    fs::remove(entry.path, ignored);
    all -= entry.bytes;
  }
}

}  // namespace tutti
