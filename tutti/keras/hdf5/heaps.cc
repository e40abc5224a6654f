#include "tutti/keras/hdf5/heaps.h"

#include <algorithm>

namespace tutti::keras::hdf5 {

LocalHeap::LocalHeap(Storage& storage, uint64_t address) {
  auto header = storage.read(address, 8 + 2 * storage.length_width() + storage.offset_width(), "a local heap");
  Fields fields(header, storage, "a local heap");
  fields.expect("HEAP");
  fields.expect_version(0);
  fields.skip(3);
  uint64_t size = fields.length();
  fields.length();  // free list
  bytes_ = storage.read(fields.offset(), size, "a local heap's data");
}

std::string LocalHeap::name(uint64_t offset) const {
  if (offset >= bytes_.size()) corrupt("a name lies outside of its local heap");
  auto end = std::find(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), bytes_.end(), std::byte{0});
  if (end == bytes_.end()) corrupt("a name without its end in a local heap");
  return {reinterpret_cast<const char*>(bytes_.data() + offset), reinterpret_cast<const char*>(&*end)};
}

std::string_view GlobalHeap::object(uint64_t address, uint32_t index, uint64_t size) {
  const auto& objects = collection(address).objects;
  auto found = objects.find(index);
  if (found == objects.end()) corrupt("the global heap at {} has no object {}", address, index);
  if (size > found->second.size()) corrupt("a global heap object of {} bytes is used as {}", found->second.size(), size);
  return {reinterpret_cast<const char*>(found->second.data()), size};
}

const GlobalHeap::Collection& GlobalHeap::collection(uint64_t address) {
  auto [at, added] = collections_.try_emplace(address);
  Collection& out = at->second;
  if (!added) return out;
  const size_t header_bytes = (8 + storage_.length_width() + 7) / 8 * 8;  // of the collection, and of each object
  auto header = storage_.read(address, header_bytes, "a global heap");
  Fields fields(header, storage_, "a global heap");
  fields.expect("GCOL");
  fields.expect_version(1);
  fields.skip(3);
  uint64_t size = fields.length();
  if (size < header_bytes) corrupt("a global heap of {} bytes", size);
  out.bytes = storage_.read(address, size, "a global heap");
  Fields objects(out.bytes, storage_, "a global heap");
  objects.skip(header_bytes);
  while (objects.left() >= header_bytes) {
    uint16_t index = objects.u16();
    objects.skip(6);  // reference count
    uint64_t object_size = objects.length();
    objects.skip(header_bytes - 8 - storage_.length_width());
    if (index == 0) break;  // the free rest
    auto bytes = objects.take(object_size);
    objects.skip(std::min<uint64_t>((8 - object_size % 8) % 8, objects.left()));
    if (!out.objects.emplace(index, bytes).second) corrupt("a global heap has object {} twice", index);
  }
  return out;
}

}  // namespace tutti::keras::hdf5
