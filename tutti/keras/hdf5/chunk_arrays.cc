// The fixed and the extensible array: chunk indexes of data sets with no and with one axis without limit.
#include <bit>

#include "tutti/keras/hdf5/chunk_index.h"

namespace tutti::keras::hdf5 {

namespace {

// What both arrays share: elements in data blocks, and large blocks cut into pages with a checksum each.
class ArrayWalker {
 public:
  ArrayWalker(Storage& storage, bool filtered, const EachElement& each) : storage_(storage), client_(filtered ? 1 : 0), each_(each) {}

 protected:
  // Signature, version and client begin every part.
  Fields open(std::span<const std::byte> bytes, std::string_view signature, std::string_view what) {
    Fields fields(bytes, storage_, what);
    fields.expect(signature);
    fields.expect_version(0);
    if (fields.u8() != client_) corrupt("{} is for {}filtered chunks", what, client_ ? "un" : "");
    return fields;
  }

  void elements(uint64_t first, uint64_t count, std::span<const std::byte> bytes) {
    for (uint64_t i = 0; i < count; ++i) each_(first + i, bytes.subspan(i * element_bytes_, element_bytes_));
  }

  // The page with elements first ... first + count - 1.
  void page(uint64_t address, uint64_t first, uint64_t count) {
    elements(first, count, storage_.read_checked(address, count * element_bytes_ + 4, "a chunk index page"));
  }

  static bool bit(std::span<const std::byte> bits, uint64_t index) {
    return (bits[index / 8] & (std::byte{0x80} >> static_cast<int>(index % 8))) != std::byte{0};
  }

  void check_element(uint8_t bytes) {
    if (bytes < storage_.offset_width() + (client_ ? 5u : 0u)) corrupt("a chunk index with entries of {} bytes", bytes);
    element_bytes_ = bytes;
  }

  Storage& storage_;
  uint8_t client_;
  const EachElement& each_;
  uint64_t element_bytes_ = 0, page_elements_ = 0;
};

class FixedArray : ArrayWalker {
 public:
  using ArrayWalker::ArrayWalker;

  void walk(uint64_t address) {
    const size_t offset = storage_.offset_width();
    auto header = storage_.read_checked(address, 12 + storage_.length_width() + offset, "a fixed array");
    Fields fields = open(header, "FAHD", "a fixed array");
    check_element(fields.u8());
    uint8_t page_bits = fields.u8();
    uint64_t count = fields.length(), block = fields.offset();
    if (page_bits > 32) corrupt("a fixed array with pages of 2^{} entries", page_bits);
    if (count > storage_.size()) corrupt("a fixed array of {} entries", count);
    if (block == undefined) return;
    page_elements_ = uint64_t{1} << page_bits;
    const uint64_t prefix = 6 + offset;
    if (count <= page_elements_) {
      auto bytes = storage_.read_checked(block, prefix + count * element_bytes_ + 4, "a fixed array block");
      open(bytes, "FADB", "a fixed array block");
      return elements(0, count, std::span(bytes).subspan(prefix));
    }
    uint64_t pages = (count + page_elements_ - 1) / page_elements_, bitmap_bytes = (pages + 7) / 8;
    auto bytes = storage_.read_checked(block, prefix + bitmap_bytes + 4, "a fixed array block");
    open(bytes, "FADB", "a fixed array block");
    auto bitmap = std::span(bytes).subspan(prefix, bitmap_bytes);
    uint64_t at = block + bytes.size();
    for (uint64_t i = 0; i < pages; ++i, at += page_elements_ * element_bytes_ + 4)
      if (bit(bitmap, i)) page(at, i * page_elements_, std::min(page_elements_, count - i * page_elements_));
  }
};

// Elements are in the index block, then in data blocks that grow: block group u has 2^(u/2) data blocks of 2^((u+1)/2) times the least
// size. The index block knows the data blocks of the first groups, and of each later group a secondary block that knows its data blocks.
class ExtensibleArray : ArrayWalker {
 public:
  using ArrayWalker::ArrayWalker;

  void walk(uint64_t address) {
    const size_t offset = storage_.offset_width();
    auto header = storage_.read_checked(address, 16 + 6 * storage_.length_width() + offset, "an extensible array");
    Fields fields = open(header, "EAHD", "an extensible array");
    check_element(fields.u8());
    uint8_t index_bits = fields.u8();
    uint64_t index_elements = fields.u8();
    least_elements_ = fields.u8();
    uint64_t least_pointers = fields.u8();
    uint8_t page_bits = fields.u8();
    fields.skip(6 * storage_.length_width());  // statistics
    uint64_t index_block = fields.offset();
    if (index_bits > 64 || page_bits > 32 || !std::has_single_bit(least_elements_) || !std::has_single_bit(least_pointers) ||
        index_bits < std::countr_zero(least_elements_))
      corrupt("an extensible array of {} bits, blocks of {}, {} pointers, {} page bits", index_bits, least_elements_, least_pointers,
              page_bits);
    if (index_block == undefined) return;
    page_elements_ = uint64_t{1} << page_bits;
    array_offset_bytes_ = (index_bits + 7u) / 8;
    uint64_t groups = 1 + index_bits - static_cast<uint64_t>(std::countr_zero(least_elements_));
    uint64_t direct_groups = 2 * static_cast<uint64_t>(std::countr_zero(least_pointers)), direct_blocks = 2 * (least_pointers - 1);
    uint64_t secondary_blocks = groups > direct_groups ? groups - direct_groups : 0;

    auto bytes =
        storage_.read_checked(index_block, 10 + offset + index_elements * element_bytes_ + (direct_blocks + secondary_blocks) * offset,
                              "an extensible array's index");
    Fields index = open(bytes, "EAIB", "an extensible array's index");
    index.offset();  // the header
    elements(0, index_elements, index.take(index_elements * element_bytes_));
    uint64_t first = index_elements;
    for (uint64_t group = 0; group < direct_groups + secondary_blocks; ++group) {
      if (group < direct_groups) {
        for (uint64_t i = 0; i < block_count(group); ++i)
          data_block(index.offset(), first + i * block_elements(group), block_elements(group), {}, 0);
      } else {
        secondary_block(index.offset(), first, group);
      }
      first += block_count(group) * block_elements(group);
    }
  }

 private:
  static uint64_t block_count(uint64_t group) { return uint64_t{1} << (group / 2); }
  uint64_t block_elements(uint64_t group) const { return least_elements_ << ((group + 1) / 2); }
  uint64_t pages_of(uint64_t count) const { return count > page_elements_ ? count / page_elements_ : 0; }

  void secondary_block(uint64_t address, uint64_t first, uint64_t group) {
    if (address == undefined) return;
    const uint64_t count = block_count(group), pages = pages_of(block_elements(group)), bitmap_bytes = product(count, (pages + 7) / 8);
    const size_t offset = storage_.offset_width();
    storage_.check_range(address, bitmap_bytes, "a secondary block");
    auto bytes = storage_.read_checked(address, 10 + offset + array_offset_bytes_ + bitmap_bytes + count * offset, "a secondary block");
    Fields fields = open(bytes, "EASB", "a secondary block");
    fields.offset();  // the header
    fields.skip(array_offset_bytes_);
    auto bitmap = fields.take(bitmap_bytes);
    for (uint64_t i = 0; i < count; ++i)
      data_block(fields.offset(), first + i * block_elements(group), block_elements(group), bitmap, i * pages);
  }

  // `first_page`: the block's first bit in the bitmap of written pages.
  void data_block(uint64_t address, uint64_t first, uint64_t count, std::span<const std::byte> bitmap, uint64_t first_page) {
    if (address == undefined) return;
    const uint64_t prefix = 6 + storage_.offset_width() + array_offset_bytes_, pages = pages_of(count);
    if (pages == 0) {
      auto bytes = storage_.read_checked(address, prefix + count * element_bytes_ + 4, "a data block");
      open(bytes, "EADB", "a data block");
      return elements(first, count, std::span(bytes).subspan(prefix));
    }
    if (bitmap.empty()) corrupt("a data block in pages without a bitmap of them");
    auto bytes = storage_.read_checked(address, prefix + 4, "a data block");
    open(bytes, "EADB", "a data block");
    uint64_t at = address + bytes.size();
    for (uint64_t i = 0; i < pages; ++i, at += page_elements_ * element_bytes_ + 4)
      if (bit(bitmap, first_page + i)) page(at, first + i * page_elements_, page_elements_);
  }

  uint64_t least_elements_ = 1;
  size_t array_offset_bytes_ = 0;
};

}  // namespace

void walk_fixed_array(Storage& storage, uint64_t address, bool filtered, const EachElement& each) {
  FixedArray(storage, filtered, each).walk(address);
}

void walk_extensible_array(Storage& storage, uint64_t address, bool filtered, const EachElement& each) {
  ExtensibleArray(storage, filtered, each).walk(address);
}

}  // namespace tutti::keras::hdf5
