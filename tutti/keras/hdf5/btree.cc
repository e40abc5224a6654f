#include "tutti/keras/hdf5/btree.h"

#include <bit>
#include <limits>
#include <optional>

namespace tutti::keras::hdf5 {

namespace {

using Leaf = std::function<void(std::span<const std::byte>, uint64_t)>;

// `level` is what the parent says, nothing for the root. Levels fall by one, so the recursion ends; the budget ends wide cycles.
void walk_node_1(Storage& storage, uint64_t address, Tree1 type, size_t key_bytes, std::optional<int> level, const Leaf& leaf) {
  const size_t prefix_bytes = 8 + 2 * storage.offset_width();
  auto prefix = storage.read(address, prefix_bytes, "a B-tree node");
  Fields head(prefix, storage, "a B-tree node");
  head.expect("TREE");
  if (head.u8() != static_cast<uint8_t>(type)) corrupt("the B-tree node at {} is of another type", address);
  int own_level = head.u8();
  if (own_level != level.value_or(own_level)) corrupt("the B-tree node at {} has level {}, expected {}", address, own_level, *level);
  uint64_t count = head.u16();
  auto body = storage.read(address + prefix_bytes, count * (key_bytes + storage.offset_width()) + key_bytes, "a B-tree node");
  Fields fields(body, storage, "a B-tree node");
  for (uint64_t i = 0; i < count; ++i) {
    auto key = fields.take(key_bytes);
    uint64_t child = fields.offset();
    if (own_level == 0)
      leaf(key, child);
    else
      walk_node_1(storage, child, type, key_bytes, own_level - 1, leaf);
  }
}

// Bytes that hold numbers up to `largest`.
size_t bytes_for(uint64_t largest) { return std::max<size_t>(1, (static_cast<size_t>(std::bit_width(largest)) + 7) / 8); }

class Walker2 {
 public:
  Walker2(Storage& storage, Tree2 type, const std::function<void(std::span<const std::byte>)>& each)
      : storage_(storage), type_(type), each_(each) {}

  void walk(uint64_t address) {
    const size_t header_bytes = 22 + storage_.offset_width() + storage_.length_width();
    auto bytes = storage_.read_checked(address, header_bytes, "a B-tree header");
    Fields fields(bytes, storage_, "a B-tree header");
    fields.expect("BTHD");
    fields.expect_version(0);
    if (fields.u8() != static_cast<uint8_t>(type_)) corrupt("the B-tree at {} is of another type", address);
    node_bytes_ = fields.u32();
    record_bytes_ = fields.u16();
    uint16_t depth = fields.u16();
    fields.skip(2);  // split and merge percentages
    uint64_t root = fields.offset();
    uint16_t records = fields.u16();
    if (root == undefined) return;
    if (record_bytes_ == 0 || node_bytes_ < 10 + record_bytes_)
      corrupt("a B-tree with nodes of {} and records of {} bytes", node_bytes_, record_bytes_);
    plan(depth);
    node(root, depth, records);
  }

 private:
  // A child pointer holds the child's record count and, above the lowest two levels, that of its whole subtree, in as few bytes as the
  // largest possible count needs.
  void plan(uint16_t depth) {
    if (depth > 32) corrupt("a B-tree of depth {}", depth);
    uint64_t most = (node_bytes_ - 10) / record_bytes_, most_below = most;
    count_bytes_ = bytes_for(most);
    total_bytes_.assign(1, 0);
    for (uint16_t level = 1; level <= depth; ++level) {
      size_t pointer_bytes = storage_.offset_width() + count_bytes_ + total_bytes_.back();
      if (node_bytes_ < 10 + pointer_bytes) corrupt("a B-tree with nodes of {} bytes", node_bytes_);
      most = (node_bytes_ - 10 - pointer_bytes) / (record_bytes_ + pointer_bytes);
      uint64_t sum = 0;
      if (__builtin_mul_overflow(most + 1, most_below, &sum) || __builtin_add_overflow(sum, most, &sum))
        sum = std::numeric_limits<uint64_t>::max();
      most_below = sum;
      total_bytes_.push_back(bytes_for(most_below));
    }
  }

  void node(uint64_t address, uint16_t level, uint64_t records) {
    // Only the used part of a node is covered by its checksum, which follows it.
    uint64_t size = 10 + records * record_bytes_;
    size_t pointer_bytes = 0;
    if (level > 0) {
      pointer_bytes = storage_.offset_width() + count_bytes_ + total_bytes_[level - 1u];
      size += (records + 1) * pointer_bytes;
    }
    if (size > node_bytes_) corrupt("a B-tree node of {} bytes holds {} records", node_bytes_, records);
    auto bytes = storage_.read_checked(address, size, "a B-tree node");
    Fields fields(bytes, storage_, "a B-tree node");
    fields.expect(level > 0 ? "BTIN" : "BTLF");
    fields.expect_version(0);
    if (fields.u8() != static_cast<uint8_t>(type_)) corrupt("the B-tree node at {} is of another type", address);
    auto all = fields.take(records * record_bytes_);
    for (uint64_t i = 0; i <= records; ++i) {
      if (level > 0) {
        uint64_t child = fields.offset(), child_records = fields.number(count_bytes_);
        fields.skip(total_bytes_[level - 1u]);
        node(child, static_cast<uint16_t>(level - 1), child_records);
      }
      if (i < records) each_(all.subspan(i * record_bytes_, record_bytes_));
    }
  }

  Storage& storage_;
  Tree2 type_;
  const std::function<void(std::span<const std::byte>)>& each_;
  uint64_t node_bytes_ = 0, record_bytes_ = 0;
  size_t count_bytes_ = 0;
  std::vector<size_t> total_bytes_;  // by the level of the child
};

}  // namespace

void walk_tree_1(Storage& storage, uint64_t address, Tree1 type, size_t key_bytes, const Leaf& leaf) {
  walk_node_1(storage, address, type, key_bytes, {}, leaf);
}

void walk_tree_2(Storage& storage, uint64_t address, Tree2 type, const std::function<void(std::span<const std::byte>)>& each) {
  Walker2(storage, type, each).walk(address);
}

}  // namespace tutti::keras::hdf5
