// A file is a row of records: the length of its data (u64), a checksum of that, the data, a checksum of them. The data are a message
// `tensorflow.Event` of protocol buffers: wall_time (1: double), step (2: int64), file_version (3: text) in the first, summary (5) in the
// others; that is a list (1) of values with a tag (1: text) and a simple_value (2: float).
#include "tutti/data/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <system_error>

#include "tutti/base/error.h"
#include "tutti/base/file.h"

namespace tutti {

namespace {

// CRC-32C (Castagnoli) by bytes.
uint32_t crc32c(std::string_view bytes) {
  static const auto table = [] {
    std::array<uint32_t, 256> out{};
    for (uint32_t i = 0; i < out.size(); ++i) {
      out[i] = i;
      for (int bit = 0; bit < 8; ++bit) out[i] = out[i] >> 1 ^ ((out[i] & 1) != 0 ? 0x82F63B78u : 0u);
    }
    return out;
  }();
  uint32_t crc = ~0u;
  for (char c : bytes) crc = crc >> 8 ^ table[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~crc;
}

template <class T>
std::string little_endian(T value) {
  std::string out;
  for (size_t i = 0; i < sizeof value; ++i) out += static_cast<char>(value >> 8 * i & 0xFF);
  return out;
}

// As records hold it: turned and moved, so that a checksum among the data stays one.
std::string masked(std::string_view bytes) { return little_endian(std::rotr(crc32c(bytes), 15) + 0xA282EAD8u); }

std::string record(std::string_view data) {
  const std::string length = little_endian(uint64_t{data.size()});
  return length + masked(length) + std::string(data) + masked(data);
}

// Fields of a message: a key of number and kind, then the value.
enum class Wire { varint = 0, eight_bytes = 1, text = 2, four_bytes = 5 };

std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
  return out += static_cast<char>(value);
}

std::string key(uint64_t number, Wire kind) { return varint(number << 3 | static_cast<uint64_t>(kind)); }
std::string text_field(uint64_t number, std::string_view text) { return key(number, Wire::text) + varint(text.size()) + std::string(text); }

std::string time_field() {
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return key(1, Wire::eight_bytes) + little_endian(std::bit_cast<uint64_t>(now));
}

void append_to(const std::string& path, std::string_view bytes) {
  const auto refuse = [&] {
    fail<InvalidArgument>("file", "cannot write '{}': {}", escape(path), std::error_code(errno, std::generic_category()).message());
  };
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (descriptor < 0) refuse();
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int error = errno;
      ::close(descriptor);
      errno = error;
      refuse();
    }
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  ::close(descriptor);
}

}  // namespace

void EventFile::add(int64_t step, std::span<const std::string> names, std::span<const double> values) {
  std::string summary;
  for (size_t i = 0; i < names.size(); ++i)
    summary += text_field(
        1, text_field(1, names[i]) + key(2, Wire::four_bytes) + little_endian(std::bit_cast<uint32_t>(static_cast<float>(values[i]))));
  waiting_ += record(time_field() + key(2, Wire::varint) + varint(static_cast<uint64_t>(step)) + text_field(5, summary));
}

void EventFile::flush() {
  if (waiting_.empty() && begun_) return;
  if (begun_) {
    append_to(path_, waiting_);
  } else {
    OutputFile file(path_);
    file.write(record(time_field() + text_field(3, "brain.Event:2")));
    file.write(waiting_);
    file.commit(false);
    begun_ = true;
  }
  waiting_.clear();
}

}  // namespace tutti
