#include "tutti/keras/hdf5/storage.h"

#include <algorithm>
#include <cstring>

#include "tutti/keras/hdf5/checksum.h"

namespace tutti::keras::hdf5 {

namespace {
constexpr uint64_t page_bytes = 16 << 10, page_slots = 256;
constexpr uint64_t max_ratio = 1100;  // deflate cannot do better
constexpr std::string_view signature = "\x89HDF\r\n\x1a\n";
}  // namespace

uint64_t product(uint64_t a, uint64_t b) {
  uint64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out)) corrupt("a size of {} times {} bytes", a, b);
  return out;
}

Storage::Storage(std::shared_ptr<const ByteSource> source) : source_(std::move(source)), pages_(page_slots) {
  size_ = source_->size();
  // Honest metadata is read a few times over, honest data once or twice; both far below these.
  metadata_left_ = std::min<uint64_t>(size_, 4 << 20) * 64 + (16 << 20);
  data_left_ = std::max<uint64_t>(size_ > undefined / 20 ? undefined : size_ * 20, 192 << 20);
  for (uint64_t at = 0; at + signature.size() <= source_->size(); at = at == 0 ? 512 : at * 2)
    if (read_superblock(at)) return;
  corrupt("not an HDF5 file: its signature is missing");
}

bool Storage::read_superblock(uint64_t at) {
  std::vector<std::byte> bytes(std::min<uint64_t>(source_->size() - at, 128));
  source_->read(at, bytes);
  Fields fields(bytes, *this, "the superblock");
  if (fields.text(signature.size()) != signature) return false;
  base_ = at;
  size_ = source_->size() - at;
  uint8_t version = fields.u8();
  if (version > 3) unsupported("superblock version {}; 0 to 3 are read", version);
  if (version < 2) fields.skip(4);  // versions of parts that have only one
  offset_width_ = fields.u8();
  length_width_ = fields.u8();
  for (size_t width : {offset_width_, length_width_})
    if (width != 2 && width != 4 && width != 8) corrupt("addresses and sizes have 2, 4 or 8 bytes; got {}", width);
  fields.skip(version < 2 ? 9 : 1);  // group sizes, flags
  if (version == 1) fields.skip(4);
  Fields addresses(fields.take(fields.left()), *this, "the superblock");
  addresses.offset();  // the base; where the superblock is counts
  if (version < 2) {
    addresses.offset();  // free space
    addresses.offset();  // end of file: a file cut short is noticed where something is missing
    if (addresses.offset() != undefined) unsupported("a file in several parts (a driver information block)");
    addresses.offset();  // name of the root
    root_ = addresses.offset();
  } else {
    extension_ = addresses.offset();
    addresses.offset();
    root_ = addresses.offset();
    size_t summed = 12 + 4 * offset_width_;
    if (!checksums_agree(addresses.u32(), lookup3(std::span(bytes).first(summed)))) corrupt("the superblock's checksum is wrong");
  }
  return true;
}

void Storage::check_range(uint64_t address, uint64_t size, std::string_view what) const {
  if (address > size_ || size > size_ - address)
    corrupt("{} ({} bytes at {}) lies outside of the file's {} bytes", what, size, address, size_);
}

void Storage::charge_metadata(uint64_t bytes) {
  bytes += 16;  // even an empty step costs something
  if (bytes > metadata_left_) corrupt("more metadata is read than the file could hold: it refers to itself");
  metadata_left_ -= bytes;
}

void Storage::check_data(uint64_t bytes) const {
  if (bytes > data_left_ || bytes / max_ratio > size_)
    corrupt("{} bytes of data are more than a file of {} bytes may expand to", bytes, size_);
}

void Storage::charge_data(uint64_t bytes) {
  check_data(bytes);
  data_left_ -= bytes;
}

std::vector<std::byte> Storage::read(uint64_t address, uint64_t size, std::string_view what) {
  check_range(address, size, what);
  charge_metadata(size);
  std::vector<std::byte> out(size);
  if (size > page_bytes)
    source_->read(base_ + address, out);
  else
    copy_cached(base_ + address, out);
  return out;
}

// Direct-mapped: a page lives in the one slot its number picks.
void Storage::copy_cached(uint64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    uint64_t number = offset / page_bytes, start = offset % page_bytes;
    Page& page = pages_[number % page_slots];
    if (page.number != number) {
      page.number = undefined;
      page.bytes.resize(std::min(page_bytes, source_->size() - number * page_bytes));
      source_->read(number * page_bytes, page.bytes);
      page.number = number;
    }
    size_t count = std::min<uint64_t>(out.size(), page.bytes.size() - start);
    std::memcpy(out.data(), page.bytes.data() + start, count);
    out = out.subspan(count);
    offset += count;
  }
}

std::vector<std::byte> Storage::read_checked(uint64_t address, uint64_t size, std::string_view what) {
  auto bytes = read(address, size, what);
  if (bytes.size() < 4) corrupt("{} has no room for its checksum", what);
  Fields stored(std::span<const std::byte>(bytes).last(4), *this, what);
  if (!checksums_agree(stored.u32(), lookup3(std::span(bytes).first(bytes.size() - 4)))) corrupt("the checksum of {} is wrong", what);
  return bytes;
}

void Storage::read_data(uint64_t address, std::span<std::byte> out) {
  check_range(address, out.size(), "data");
  source_->read(base_ + address, out);
}

uint64_t Fields::offset() {
  uint64_t address = number(offset_width_);
  return offset_width_ < 8 && address == (uint64_t{1} << (8 * offset_width_)) - 1 ? undefined : address;
}

void Fields::expect(std::string_view expected) {
  if (text(expected.size()) != expected) corrupt("{} does not begin with '{}'", what_, expected);
}

void Fields::expect_version(uint8_t version) {
  if (uint8_t got = u8(); got != version) unsupported("{} has version {}; {} is read", what_, got, version);
}

}  // namespace tutti::keras::hdf5
