#include "tutti/device/host.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>

#include "tutti/base/error.h"

namespace tutti {

namespace {

constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

// The first number of a one-line file; "max" and an absent file mean no limit.
int64_t read_number(const char* path) {
  std::ifstream file(path);
  int64_t value = 0;
  return file >> value ? value : unlimited;
}

// "name   123 kB" lines of /proc/meminfo (scale 1024) and "name 123" lines of memory.stat (scale 1).
int64_t read_field(const char* path, std::string_view field, int64_t scale) {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    int64_t value = 0;
    if (word == field && file >> value) return value * scale;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return unlimited;
}

struct Cgroup {
  const char *limit, *used, *stat, *reclaimable;
};
constexpr Cgroup cgroups[] = {
    {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat", "inactive_file"},
    {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes", "/sys/fs/cgroup/memory/memory.stat",
     "total_inactive_file"},
};

int64_t address_space_left() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return unlimited;
  int64_t pages = read_number("/proc/self/statm");
  if (pages == unlimited) return unlimited;
  return std::max<int64_t>(0, static_cast<int64_t>(limit.rlim_cur) - pages * sysconf(_SC_PAGESIZE));
}

}  // namespace

int thread_limit() {
  if (const char* text = std::getenv("TUTTI_THREADS"); text != nullptr && *text != 0) {
    int count = 0;
    auto [end, error] = std::from_chars(text, text + std::strlen(text), count);
    if (error != std::errc() || *end != 0 || count < 1 || count > 1024)
      fail<InvalidArgument>("cpu", "TUTTI_THREADS is a number from 1 to 1024; got '{}'", text);
    return count;
  }
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? std::max(1, CPU_COUNT(&cores)) : 1;
}

int machine_cores() { return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))); }

int64_t total_memory() {
  int64_t least = read_field("/proc/meminfo", "MemTotal:", 1024);
  for (const auto& group : cgroups) least = std::min(least, read_number(group.limit));
  return least;
}

int64_t available_memory() {
  int64_t least = std::min(read_field("/proc/meminfo", "MemAvailable:", 1024), address_space_left());
  for (const auto& group : cgroups) {
    int64_t limit = read_number(group.limit), used = read_number(group.used);
    if (limit == unlimited || used == unlimited) continue;
    int64_t reclaimable = read_field(group.stat, group.reclaimable, 1);  // page cache the kernel gives back
    if (reclaimable != unlimited) used -= std::min(used, reclaimable);
    least = std::min(least, std::max<int64_t>(0, limit - used));
  }
  return least;
}

TooLarge::TooLarge(std::string_view where, std::string_view what, int64_t needed_bytes, int64_t available_bytes)
    : OutOfMemory(where, fmt::format("{} needs {} bytes; {} bytes are available", what, needed_bytes, available_bytes)),
      needed(needed_bytes),
      available(available_bytes) {}

void require_memory(int64_t bytes, std::string_view what) {
  if (bytes < (int64_t{1} << 20)) return;  // not worth a look at /proc
  int64_t available = available_memory();
  if (bytes > available) throw TooLarge("memory", what, bytes, available);
}

std::unique_ptr<Buffer> HostDevice::allocate(const Type& type) {
  require_memory(type.bytes(), "a buffer " + to_string(type));
  return std::make_unique<HostBuffer>(type);
}

void HostDevice::to_device(std::span<const std::byte> from, Buffer& to) {
  auto target = to.host();
  if (from.size() != target.size())
    fail<InvalidArgument>(name(), "{} bytes do not fill a buffer {} of {} bytes", from.size(), to_string(to.type()), target.size());
  if (!from.empty() && from.data() != target.data()) std::memcpy(target.data(), from.data(), from.size());
}

void HostDevice::to_host(Buffer& from, std::span<std::byte> to) {
  auto source = from.host();
  if (to.size() != source.size())
    fail<InvalidArgument>(name(), "a buffer {} of {} bytes does not fill {} bytes", to_string(from.type()), source.size(), to.size());
  if (!to.empty()) std::memcpy(to.data(), source.data(), to.size());
}

}  // namespace tutti
