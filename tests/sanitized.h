// Whether this is a build with a sanitizer. They make everything slower, have allocators of their own, which end the process where there is
// no memory, and reserve terabytes of address space.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TUTTI_SANITIZED true
#else
#define TUTTI_SANITIZED false
#endif

namespace tutti {

inline constexpr bool sanitized = TUTTI_SANITIZED;

}  // namespace tutti
