// The C library's functions, replaced in this program by ones that count and pass the call on.
#include "tests/run/count_calls.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace tutti {
namespace {
std::atomic<int64_t> allocations = 0, locks = 0, asked = 0;

[[maybe_unused]] void count(size_t bytes) {
  ++allocations;
  asked += static_cast<int64_t>(bytes);
}
}  // namespace
Calls count_calls() { return {allocations, locks, asked}; }
}  // namespace tutti

#if !TUTTI_SANITIZED

extern "C" {

// glibc's own names for what malloc and its family are when nobody replaces them. NOLINTBEGIN(bugprone-reserved-identifier)
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
// NOLINTEND(bugprone-reserved-identifier)

void* malloc(size_t bytes) {
  tutti::count(bytes);
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  tutti::count(count * bytes);
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) {
  tutti::count(bytes);
  return __libc_realloc(old, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  tutti::count(bytes);
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** place, size_t alignment, size_t bytes) {
  *place = memalign(alignment, bytes);
  return *place == nullptr ? ENOMEM : 0;
}
void free(void* p) {
  if (p != nullptr) ++tutti::allocations;
  __libc_free(p);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  static const auto real = reinterpret_cast<int (*)(pthread_mutex_t*)>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  ++tutti::locks;
  return real(mutex);
}
int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  static const auto real = reinterpret_cast<int (*)(pthread_cond_t*, pthread_mutex_t*)>(dlsym(RTLD_NEXT, "pthread_cond_wait"));
  ++tutti::locks;
  return real(condition, mutex);
}
int pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
  static const auto real = reinterpret_cast<int (*)(pthread_rwlock_t*)>(dlsym(RTLD_NEXT, "pthread_rwlock_rdlock"));
  ++tutti::locks;
  return real(lock);
}
}

#endif
