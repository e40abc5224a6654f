// random_bits: Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3".
#include <array>
#include <cstring>

#include "tutti/device/reference/kernel.h"

namespace tutti::reference {

namespace {

using Words = std::array<uint32_t, 4>;

Words philox(uint64_t seed, uint64_t block, uint64_t counter) {
  Words c{static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), static_cast<uint32_t>(counter),
          static_cast<uint32_t>(counter >> 32)};
  auto low = static_cast<uint32_t>(seed), high = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xd2511f53} * c[0], second = uint64_t{0xcd9e8d57} * c[2];
    c = {static_cast<uint32_t>(second >> 32) ^ c[1] ^ low, static_cast<uint32_t>(second), static_cast<uint32_t>(first >> 32) ^ c[3] ^ high,
         static_cast<uint32_t>(first)};
    low += 0x9e3779b9;
    high += 0xbb67ae85;
  }
  return c;
}

Kernel random_bits(const Graph& graph, const Node& node) {
  const Shape& shape = operand_type(graph, node, 0).shape;
  const int64_t parts = shape[shape.rank() - 1], keys = shape.elements() / parts;  // seed, counter, and maybe the first element's place
  const int64_t count = keys == 0 ? 0 : result_type(graph, node).shape.elements() / keys;
  return {[keys, parts, count](const Pointers& p) {
            const auto* key = reinterpret_cast<const uint64_t*>(p.operands[0]);
            auto* to = reinterpret_cast<uint32_t*>(p.results[0]);
            for (int64_t k = 0; k < keys; ++k, key += parts) {
              const uint64_t first = parts > 2 ? key[2] : 0;
              for (int64_t i = 0; i < count;) {
                const uint64_t place = first + static_cast<uint64_t>(i);
                const auto begin = static_cast<int64_t>(place % 4), some = std::min(4 - begin, count - i);
                const Words words = philox(key[0], place / 4, key[1]);
                std::memcpy(to + k * count + i, words.data() + begin, static_cast<size_t>(some) * sizeof(uint32_t));
                i += some;
              }
            }
          },
          0};
}

}  // namespace

std::span<const KernelRow> random_kernels() {
  static constexpr KernelRow rows[] = {{Op::random_bits, random_bits}};
  return rows;
}

}  // namespace tutti::reference
