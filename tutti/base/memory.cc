#include "tutti/base/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

namespace tutti {

namespace {

constexpr size_t huge_page = size_t{2} << 20;
// From here on a share of a huge page, and not yet one of its own.
constexpr size_t middling = size_t{64} << 10;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool are_together = false;  // reading over the end of one into the next would not be noticed
#else
constexpr bool are_together = true;
#endif

size_t rounded(size_t bytes) { return (std::max<size_t>(bytes, 1) + 63) / 64 * 64; }

}  // namespace

std::shared_ptr<std::byte> allocate(size_t bytes) {
  void* data = nullptr;
  if (posix_memalign(&data, bytes < huge_page ? 64 : huge_page, rounded(bytes)) != 0) return {};
  if (bytes >= huge_page) madvise(data, bytes / huge_page * huge_page, MADV_HUGEPAGE);  // a wish
  return {static_cast<std::byte*>(data), [](std::byte* p) { std::free(p); }};
}

std::shared_ptr<std::byte> allocate_among_others(size_t bytes) {
  if (!are_together || bytes < middling || bytes >= huge_page) return allocate(bytes);
  constexpr size_t size = 4 * huge_page;
  static std::mutex mutex;
  static std::shared_ptr<std::byte> block;
  static size_t used = 0;
  std::lock_guard lock(mutex);
  if (!block || used + bytes > size) {
    block = allocate(size);
    used = 0;
    if (!block) return {};
  }
  std::shared_ptr<std::byte> part(block, block.get() + used);
  used += rounded(bytes);
  return part;
}

}  // namespace tutti
