#include "tutti/base/error.h"

#include <algorithm>
#include <numeric>

#include "tutti/base/utf8.h"

namespace tutti {

namespace {

// A name of thousands of characters would drown its message: of so long a word the two ends stay.
std::string with_short_words(std::string_view text) {
  constexpr size_t longest = 400, end = 150;
  const auto character_at = [&](size_t i) {  // where the one begins that this byte is a part of
    for (int back = 0; back < 3 && (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80; ++back) --i;
    return i;
  };
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t after = std::min(text.find(' ', begin), text.size() - 1) + 1;
    if (after - begin <= longest) {
      out += text.substr(begin, after - begin);
    } else {
      const size_t cut = character_at(begin + end), rest = character_at(after - end);
      out.append(text.substr(begin, cut - begin)).append("…").append(text.substr(rest, after - rest));
    }
    begin = after;
  }
  return out;
}

}  // namespace

Error::Error(std::string_view where, std::string_view message)
    : std::runtime_error(fmt::format("[{}] {}", where, escape(with_short_words(message), 8000))) {}

InternalError::InternalError(std::string_view where, std::string_view message)
    : Error(where, fmt::format("{}; this is a bug in tutti, please report it", message)) {}

namespace {

// C1 controls are valid UTF-8 and not for terminals.
bool is_control(std::string_view sequence) {
  char32_t code = utf8_decode(sequence);
  return code < 0x20 || (code >= 0x7f && code < 0xa0);
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

// Whether a name is made of beginnings of another's words, in their order, as lr and learn_rate are of learning_rate. One of two letters
// begins all of them.
bool is_short_for(std::string_view name, std::string_view known) {
  const bool begins_all = name.size() == 2;
  while (!name.empty() && !known.empty()) {
    const size_t word = std::min(known.find('_'), known.size());
    const size_t same = static_cast<size_t>(std::ranges::mismatch(name, known.substr(0, word)).in1 - name.begin());
    if (same == 0) return false;
    name.remove_prefix(same);
    if (name.starts_with('_')) name.remove_prefix(1);
    known.remove_prefix(std::min(word + 1, known.size()));
  }
  return name.empty() && (known.empty() || !begins_all);
}

}  // namespace

std::string escape(std::string_view text, size_t longest) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (out.size() >= longest) return out + "…";
    auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte < 0x7f) {  // most of it, everywhere
      out += text[i++];
      continue;
    }
    size_t length = utf8_length(text, i);
    if (length == 0 || is_control(text.substr(i, length))) {
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
  if (name.empty() || name.size() > 100) return "";
  std::vector<std::pair<size_t, std::string>> near;
  const size_t most = std::max<size_t>(2, name.size() / 3);
  const std::string lower = in_lower_case(name);
  // Known names may come from a file: a hint is not worth more than a moment.
  for (size_t i = 0; i < std::min<size_t>(known.size(), 2000); ++i) {
    const auto& candidate = known[i];
    if (candidate.empty()) continue;
    const bool same = lower == in_lower_case(candidate);
    if (same || (name.size() > 1 && is_short_for(name, candidate))) {
      near.emplace_back(same ? 0 : 1, candidate);
      continue;
    }
    if (candidate.size() > name.size() + most || name.size() > candidate.size() + most) continue;
    size_t distance = edit_distance(name, candidate);
    // All letters others: only of single ones.
    if (distance <= most && distance < std::max({name.size(), candidate.size(), size_t{2}})) near.emplace_back(distance, candidate);
  }
  std::sort(near.begin(), near.end());
  if (near.empty()) return "";
  std::string out = fmt::format(" (did you mean '{}'", near[0].second);
  if (near.size() > 1 && near[1].first == near[0].first) out += fmt::format(" or '{}'", near[1].second);
  return out + "?)";
}

}  // namespace tutti
