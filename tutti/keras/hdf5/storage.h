// The file as HDF5 sees it: addresses count from the superblock, their width is the file's choice, and everything read is paid for from
// a budget, so that no file can make its reader work or allocate out of proportion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tutti/base/bytes.h"
#include "tutti/base/error.h"
#include "tutti/base/file.h"

namespace tutti::keras::hdf5 {

inline constexpr uint64_t undefined = ~uint64_t{0};  // the address of what is not there

template <class... Args>
[[noreturn]] void corrupt(fmt::format_string<Args...> format, Args&&... args) {
  fail<InvalidModel>("hdf5", format, std::forward<Args>(args)...);
}
template <class... Args>
[[noreturn]] void unsupported(fmt::format_string<Args...> format, Args&&... args) {
  fail<Unsupported>("hdf5", format, std::forward<Args>(args)...);
}

// a * b, or corrupt when it does not fit: sizes come from the file.
uint64_t product(uint64_t a, uint64_t b);

class Storage {
 public:
  // Finds and checks the superblock (versions 0 to 3, at 0, 512, 1024, ... behind a user block).
  explicit Storage(std::shared_ptr<const ByteSource> source);
  uint64_t root() const { return root_; }            // address of the root group's header
  uint64_t extension() const { return extension_; }  // of the superblock's extension, or undefined
  size_t offset_width() const { return offset_width_; }
  size_t length_width() const { return length_width_; }
  uint64_t size() const { return size_; }  // bytes from the superblock to the end of the file

  // Metadata, through the page cache. `what` names it in errors.
  std::vector<std::byte> read(uint64_t address, uint64_t size, std::string_view what);
  // The same, where the last four bytes must be the checksum of the others.
  std::vector<std::byte> read_checked(uint64_t address, uint64_t size, std::string_view what);
  // Data, straight from the file.
  void read_data(uint64_t address, std::span<std::byte> out);

  void check_range(uint64_t address, uint64_t size, std::string_view what) const;
  // Takes from the budgets that last for the life of the file; call before allocating. check_data only asks.
  void charge_metadata(uint64_t bytes);
  void charge_data(uint64_t bytes);
  void check_data(uint64_t bytes) const;

 private:
  bool read_superblock(uint64_t at);
  void copy_cached(uint64_t offset, std::span<std::byte> out);

  std::shared_ptr<const ByteSource> source_;
  uint64_t base_ = 0, size_ = 0, root_ = undefined, extension_ = undefined;
  size_t offset_width_ = 8, length_width_ = 8;
  uint64_t metadata_left_ = 0, data_left_ = 0;
  struct Page {
    uint64_t number = undefined;
    std::vector<std::byte> bytes;
  };
  std::vector<Page> pages_;
};

// A cursor over metadata that knows the file's widths.
class Fields : public ByteCursor {
 public:
  Fields(std::span<const std::byte> bytes, const Storage& storage, std::string_view what)
      : ByteCursor(bytes, "hdf5", what), what_(what), offset_width_(storage.offset_width()), length_width_(storage.length_width()) {}
  uint64_t offset();  // an address; all ones is `undefined`
  uint64_t length() { return number(length_width_); }
  void expect(std::string_view signature);
  void expect_version(uint8_t version);

 private:
  std::string_view what_;
  size_t offset_width_, length_width_;
};

}  // namespace tutti::keras::hdf5
