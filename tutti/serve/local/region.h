// A region of shared memory, mapped; and descriptors that close themselves.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tutti/serve/local/layout.h"

namespace tutti::serve::local {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }  // whose it is from now on
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

class Region {
 public:
  // Makes one, sealed: nobody can make it smaller or larger. `descriptor` is what to hand over. Throws OutOfMemory or DeviceError.
  Region(const Layout& layout, Descriptor& descriptor);
  // Maps one that was handed over. Throws DeviceError when it is not of this layout, or could shrink.
  explicit Region(const Descriptor& descriptor);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  const Layout& layout() const { return layout_; }
  Header& header() { return *reinterpret_cast<Header*>(base_); }
  RequestEntry& request(uint32_t i) { return reinterpret_cast<RequestEntry*>(base_ + layout_.requests_at())[i % (2 * layout_.slots)]; }
  ResponseEntry& response(uint32_t i) { return reinterpret_cast<ResponseEntry*>(base_ + layout_.responses_at())[i % layout_.slots]; }
  std::span<std::byte> slot(uint32_t i) { return {base_ + layout_.slots_at() + i * layout_.slot_bytes, layout_.slot_bytes}; }

 private:
  void map(const Descriptor& descriptor);
  Layout layout_;
  std::byte* base_ = nullptr;
};

// A message of text and descriptors over a Unix socket: u32 length, then the text. False when the other side is gone, or does not read.
bool send_message(int socket, std::string_view text, std::span<const int> descriptors = {});
// Appends what has come to `buffer`, and descriptors; false when the other side is gone.
bool receive_some(int socket, std::string& buffer, std::vector<Descriptor>* descriptors, bool wait);
// Takes a whole message off the front of `buffer`; false while it is not all there. Throws InvalidArgument when it is too long.
bool take_message(std::string& buffer, std::string& message);

}  // namespace tutti::serve::local
