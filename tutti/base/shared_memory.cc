#include "tutti/base/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tutti {

namespace {

std::shared_ptr<std::byte> map_shared(int file, size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return {};
  return {static_cast<std::byte*>(memory), [bytes](std::byte* own) { munmap(own, bytes); }};
}

}  // namespace

std::shared_ptr<std::byte> create_shared_memory(const std::string& name, size_t bytes) {
  const int file = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return {};
  // Had now: what is missing later, as in a container with little of it, is a signal to whoever writes there.
  std::shared_ptr<std::byte> out;
  if (posix_fallocate(file, 0, static_cast<off_t>(bytes)) == 0) out = map_shared(file, bytes);
  close(file);
  if (out == nullptr) forget_shared_memory(name);
  return out;
}

std::shared_ptr<std::byte> open_shared_memory(const std::string& name, size_t bytes) {
  const int file = shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0);
  if (file < 0) return {};
  struct stat facts {};
  std::shared_ptr<std::byte> out;
  if (fstat(file, &facts) == 0 && static_cast<size_t>(facts.st_size) >= bytes) out = map_shared(file, bytes);
  close(file);
  return out;
}

void forget_shared_memory(const std::string& name) { shm_unlink(name.c_str()); }

}  // namespace tutti
