#include "tutti/data/tar.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "tutti/base/error.h"

namespace tutti {

namespace {

constexpr uint64_t tar_block = 512, longest_tar_name = 1 << 16;
using TarHeader = std::array<char, tar_block>;

TarHeader read_tar_header(const ByteSource& source, uint64_t at) {
  TarHeader header;
  source.read(at, std::as_writable_bytes(std::span(header)));
  return header;
}

std::string_view tar_field(const TarHeader& header, size_t begin, size_t size) {
  const std::string_view text(header.data() + begin, size);
  return text.substr(0, text.find('\0'));
}

// Octal digits; or, where the first bit is set, a binary number.
std::optional<uint64_t> tar_number(const TarHeader& header, size_t begin, size_t size) {
  uint64_t out = 0;
  if ((static_cast<uint8_t>(header[begin]) & 0x80) != 0) {
    for (size_t i = begin + 1; i < begin + size; ++i) {
      if (out >> 55 != 0) return {};
      out = out << 8 | static_cast<uint8_t>(header[i]);
    }
    return out;
  }
  std::string_view text = tar_field(header, begin, size);
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  if (text.empty()) return 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, 8);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(out) : std::nullopt;
}

bool tar_sum_is_right(const TarHeader& header) {
  uint64_t sum = 0;
  for (size_t i = 0; i < header.size(); ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<uint8_t>(header[i]);
  return tar_number(header, 148, 8) == sum;
}

// "LENGTH KEY=VALUE\n" again and again.
std::optional<std::string> pax_value(std::string_view records, std::string_view key) {
  std::optional<std::string> out;
  while (!records.empty()) {
    size_t length = 0;
    const auto [end, error] = std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<size_t>(end - records.data());
    if (error != std::errc{} || length > records.size() || length < digits + 2 || records[digits] != ' ') return {};
    std::string_view record = records.substr(digits + 1, length - digits - 2);
    if (record.starts_with(key) && record.substr(key.size()).starts_with('=')) out = std::string(record.substr(key.size() + 1));
    records.remove_prefix(length);
  }
  return out;
}

}  // namespace

bool is_tar(const ByteSource& source) {
  if (source.size() < tar_block) return false;
  const TarHeader header = read_tar_header(source, 0);
  return header[0] != '\0' && tar_sum_is_right(header);
}

void TarReader::refuse(std::string_view why) const { fail<InvalidArgument>("tar", "{}: {} at offset {}", escape(file_), why, at_); }

std::string TarReader::text(uint64_t offset, uint64_t size) const {
  if (size > longest_tar_name) refuse(fmt::format("a name of {} bytes", size));
  std::string out(size, '\0');
  source_->read(offset, std::as_writable_bytes(std::span(out)));
  return out;
}

std::optional<TarMember> TarReader::next() {
  std::string long_name;
  std::optional<uint64_t> long_size;
  while (at_ < source_->size()) {
    if (source_->size() - at_ < tar_block) refuse("the archive ends within a header");
    const TarHeader header = read_tar_header(*source_, at_);
    if (std::all_of(header.begin(), header.end(), [](char c) { return c == '\0'; })) return {};
    if (!tar_sum_is_right(header)) refuse("a header with a wrong checksum");
    const char kind = header[156];
    std::optional<uint64_t> size = tar_number(header, 124, 12);
    const bool file = kind == '0' || kind == '\0' || kind == '7';
    if (file && long_size) size = long_size;
    const uint64_t data = at_ + tar_block;
    if (!size || *size > source_->size() - data) refuse("a member that is longer than the archive");
    if (kind == 'L') long_name = text(data, *size).c_str();  // up to its final zero
    if (kind == 'x') {
      const std::string records = text(data, *size);
      if (auto path = pax_value(records, "path")) long_name = *path;
      if (auto digits = pax_value(records, "size")) {
        uint64_t value = 0;
        const auto [end, error] = std::from_chars(digits->data(), digits->data() + digits->size(), value);
        if (error != std::errc{} || end != digits->data() + digits->size()) refuse("a size that is no number");
        long_size = value;
      }
    }
    const uint64_t whole = *size + (tar_block - *size % tar_block) % tar_block;
    at_ = std::min(data + whole, source_->size());
    const bool link = kind == '1' || kind == '2';  // hard, symbolic
    if (file || link) {
      const bool ustar = std::string_view(header.data() + 257, 6) == std::string_view("ustar\0", 6);
      const std::string prefix(ustar ? tar_field(header, 345, 155) : "");
      std::string name = (prefix.empty() ? "" : prefix + "/") + std::string(tar_field(header, 0, 100));
      return TarMember{long_name.empty() ? std::move(name) : std::move(long_name), data, link ? 0 : *size,
                       link ? std::string(tar_field(header, 157, 100)) : ""};
    }
    if (kind != 'x' && kind != 'L' && kind != 'K' && kind != 'g') long_name.clear(), long_size.reset();  // of a folder
  }
  return {};
}

}  // namespace tutti
