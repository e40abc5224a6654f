#include "tutti/base/error.h"

#include <algorithm>
#include <numeric>

namespace tutti {

Error::Error(std::string_view where, std::string_view message) : std::runtime_error(fmt::format("[{}] {}", where, escape(message, 8000))) {}

InternalError::InternalError(std::string_view where, std::string_view message)
    : Error(where, fmt::format("{}; this is a bug in tutti, please report it", message)) {}

namespace {

// Length of the valid UTF-8 sequence at `at`, or 0.
size_t utf8_length(std::string_view text, size_t at) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char lead = byte(at);
  size_t length = lead < 0x80 ? 1 : lead >= 0xc2 && lead < 0xe0 ? 2 : lead >= 0xe0 && lead < 0xf0 ? 3 : lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  // C1 controls, overlong forms, surrogates and beyond U+10FFFF are not for terminals.
  if (length == 2 && lead == 0xc2 && byte(at + 1) < 0xa0) return 0;
  if (length == 3 && ((lead == 0xe0 && byte(at + 1) < 0xa0) || (lead == 0xed && byte(at + 1) > 0x9f))) return 0;
  if (length == 4 && ((lead == 0xf0 && byte(at + 1) < 0x90) || (lead == 0xf4 && byte(at + 1) > 0x8f))) return 0;
  return length;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string escape(std::string_view text, size_t longest) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (out.size() >= longest) return out + "…";
    size_t length = utf8_length(text, i);
    auto byte = static_cast<unsigned char>(text[i]);
    if (length == 0 || (length == 1 && (byte < 0x20 || byte == 0x7f))) {
      out += byte == '\n' ? std::string("\\n") : byte == '\t' ? std::string("\\t") : fmt::format("\\x{:02x}", byte);
      i += 1;
    } else {
      out += text.substr(i, length);
      i += length;
    }
  }
  return out;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  if (name.size() > 100) return "";
  std::vector<std::pair<size_t, std::string>> near;
  for (const auto& candidate : known) {
    size_t distance = edit_distance(name, candidate);
    if (distance <= std::max<size_t>(2, name.size() / 3)) near.emplace_back(distance, candidate);
  }
  std::sort(near.begin(), near.end());
  if (near.empty()) return "";
  std::string out = fmt::format(" (did you mean '{}'", near[0].second);
  if (near.size() > 1 && near[1].first == near[0].first) out += fmt::format(" or '{}'", near[1].second);
  return out + "?)";
}

}  // namespace tutti
