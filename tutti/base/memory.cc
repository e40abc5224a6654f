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
  const size_t down = bytes / huge_page * huge_page, up = (bytes + huge_page - 1) / huge_page * huge_page;
  const size_t on_pages = up - bytes <= bytes / 16 ? up : down;  // the last page too, unless much of it would be for nothing
  void* data = nullptr;
  if (posix_memalign(&data, on_pages == 0 ? 64 : huge_page, std::max(rounded(bytes), on_pages)) != 0) return {};
  if (on_pages != 0) madvise(data, on_pages, MADV_HUGEPAGE);  // a wish
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
