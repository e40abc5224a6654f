#include "tutti/keras/hdf5/checksum.h"

#include <bit>

namespace tutti::keras::hdf5 {

uint32_t lookup3(std::span<const std::byte> bytes) {
  uint32_t a = 0xdeadbeef + static_cast<uint32_t>(bytes.size()), b = a, c = a;
  // Up to four bytes at `at`, little-endian, zeros beyond the end.
  auto word = [&](size_t at) {
    uint32_t out = 0;
    for (size_t i = 0; i < 4 && at + i < bytes.size(); ++i) out |= std::to_integer<uint32_t>(bytes[at + i]) << (8 * i);
    return out;
  };
  size_t at = 0;
  for (; bytes.size() - at > 12; at += 12) {
    a += word(at);
    b += word(at + 4);
    c += word(at + 8);
    a = (a - c) ^ std::rotl(c, 4), c += b;
    b = (b - a) ^ std::rotl(a, 6), a += c;
    c = (c - b) ^ std::rotl(b, 8), b += a;
    a = (a - c) ^ std::rotl(c, 16), c += b;
    b = (b - a) ^ std::rotl(a, 19), a += c;
    c = (c - b) ^ std::rotl(b, 4), b += a;
  }
  if (at == bytes.size()) return c;
  a += word(at);
  b += word(at + 4);
  c += word(at + 8);
  c = (c ^ b) - std::rotl(b, 14);
  a = (a ^ c) - std::rotl(c, 11);
  b = (b ^ a) - std::rotl(a, 25);
  c = (c ^ b) - std::rotl(b, 16);
  a = (a ^ c) - std::rotl(c, 4);
  b = (b ^ a) - std::rotl(a, 14);
  c = (c ^ b) - std::rotl(b, 24);
  return c;
}

// Over big-endian 16-bit words, whatever the data are; an odd last byte is the high half of a word.
uint32_t fletcher32(std::span<const std::byte> bytes) {
  uint32_t first = 0, second = 0;
  auto fold = [](uint32_t sum) { return (sum & 0xffff) + (sum >> 16); };
  for (size_t at = 0; at < bytes.size();) {
    // 360 words are the most that cannot overflow 32 bits between folds.
    for (size_t end = std::min(bytes.size(), at + 720); at < end; at += 2) {
      first += std::to_integer<uint32_t>(bytes[at]) << 8 | (at + 1 < bytes.size() ? std::to_integer<uint32_t>(bytes[at + 1]) : 0);
      second += first;
    }
    first = fold(first);
    second = fold(second);
  }
  return fold(second) << 16 | fold(first);
}

}  // namespace tutti::keras::hdf5
