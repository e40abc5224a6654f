// Memory for numbers, 64-byte aligned and uninitialised. What is as large as a huge page lies on huge pages, where the system has them: a
// model's weights and values are read again and again, and the processor remembers where few pages are, not many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace tutti {

// As programs want what they compute with in place.
inline bool is_aligned(std::span<const std::byte> bytes) { return reinterpret_cast<uintptr_t>(bytes.data()) % 64 == 0; }

// Nothing when there is not so much.
std::shared_ptr<std::byte> allocate(size_t bytes);

// The same for what lives as long as many others of its kind, the weights of one model: middling ones share huge pages.
std::shared_ptr<std::byte> allocate_among_others(size_t bytes);

}  // namespace tutti
