#include "tutti/keras/hdf5/filters.h"

#include <algorithm>
#include <bit>

#include "tutti/base/inflate.h"
#include "tutti/keras/hdf5/checksum.h"

namespace tutti::keras::hdf5 {

namespace {

std::string_view known_name(uint16_t id) {
  switch (id) {
    case 4: return "szip";
    case 5: return "nbit";
    case 6: return "scaleoffset";
    case 32000: return "lzf";
    case 32001: return "blosc";
    case 32004: return "lz4";
    case 32008: return "bitshuffle";
    case 32013: return "zfp";
    case 32015: return "zstd";
    default: return "unknown";
  }
}

std::vector<std::byte> inflated(const std::vector<std::byte>& stored, size_t size) {
  // Before allocating: deflate cannot do better than 1032 to 1.
  if (size / 1100 > stored.size()) corrupt("a chunk of {} bytes cannot inflate to {}", stored.size(), size);
  std::vector<std::byte> out(size);
  bool given = false;
  auto next = [&]() -> std::span<const std::byte> { return std::exchange(given, true) ? std::span<const std::byte>() : std::span(stored); };
  if (!inflate_exactly(Packing::zlib, next, out)) corrupt("a chunk does not inflate to its {} bytes", size);
  return out;
}

// The first bytes of all elements, then the second ones, ...; what does not fill an element stays at the end.
std::vector<std::byte> unshuffled(const std::vector<std::byte>& stored, size_t element_size) {
  size_t count = stored.size() / element_size;
  if (element_size < 2 || count < 2) return stored;
  std::vector<std::byte> out = stored;
  for (size_t byte = 0; byte < element_size; ++byte)
    for (size_t i = 0; i < count; ++i) out[i * element_size + byte] = stored[byte * count + i];
  return out;
}

void check_fletcher32(std::vector<std::byte>& stored) {
  if (stored.size() < 4) corrupt("a chunk of {} bytes has no room for its checksum", stored.size());
  uint32_t sum = ByteCursor(std::span(stored).last(4), "hdf5", "a checksum").u32();
  stored.resize(stored.size() - 4);
  uint32_t computed = fletcher32(stored);
  // Old libraries on little-endian machines swapped the bytes of each half.
  uint32_t swapped = (computed & 0x00ff00ff) << 8 | (computed & 0xff00ff00) >> 8;
  if (!checksums_agree(sum, computed) && !checksums_agree(sum, swapped)) corrupt("the checksum of a chunk is wrong");
}

}  // namespace

Filters parse_filters(Storage& storage, std::span<const std::byte> bytes) {
  Fields fields(bytes, storage, "a filter pipeline");
  uint8_t version = fields.u8(), count = fields.u8();
  if (version != 1 && version != 2) unsupported("a filter pipeline of version {}", version);
  if (count > 32) corrupt("a pipeline of {} filters; at most 32", count);
  if (version == 1) fields.skip(6);
  Filters out;
  for (int i = 0; i < count; ++i) {
    Filter filter;
    filter.id = fields.u16();
    uint16_t name_bytes = version == 1 || filter.id >= 256 ? fields.u16() : 0;
    fields.skip(2);  // flags
    uint16_t values = fields.u16();
    std::string_view name = fields.text(name_bytes);
    name = name.substr(0, name.find('\0'));
    if (version == 1) fields.skip((8u - name_bytes % 8u) % 8u);
    for (uint16_t v = 0; v < values; ++v) {
      uint32_t value = fields.u32();
      if (v == 0) filter.element_size = value;
    }
    if (version == 1 && values % 2 != 0) fields.skip(4);
    if (filter.id < Filter::deflate || filter.id > Filter::fletcher)
      unsupported("filter {} ({}); only deflate, shuffle and fletcher32 are read", filter.id, name.empty() ? known_name(filter.id) : name);
    out.push_back(filter);
  }
  if (std::count_if(out.begin(), out.end(), [](const Filter& f) { return f.id == Filter::deflate; }) > 1)
    unsupported("data deflated twice");
  return out;
}

void undo_filters(const Filters& filters, uint32_t skipped, std::vector<std::byte> stored, std::span<std::byte> out) {
  auto applied = [&](size_t i) { return (skipped >> i & 1) == 0; };
  for (size_t i = filters.size(); i-- > 0;) {
    if (!applied(i)) continue;
    switch (filters[i].id) {
      case Filter::deflate: {
        // What went into deflate: the chunk, and the checksums of the filters before it.
        size_t size = out.size();
        for (size_t before = 0; before < i; ++before)
          if (applied(before) && filters[before].id == Filter::fletcher) size += 4;
        stored = inflated(stored, size);
        break;
      }
      case Filter::shuffle: stored = unshuffled(stored, filters[i].element_size); break;
      default: check_fletcher32(stored);
    }
  }
  if (stored.size() != out.size()) corrupt("a chunk has {} bytes, expected {}", stored.size(), out.size());
  std::copy(stored.begin(), stored.end(), out.begin());
}

}  // namespace tutti::keras::hdf5
