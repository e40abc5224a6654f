// Json::parse: recursive descent within budgets. Accepts what Python's json.loads accepts, except keys given twice and lone surrogates.
#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "tutti/base/error.h"
#include "tutti/base/json.h"
#include "tutti/base/utf8.h"

namespace tutti {

namespace {

class Parser {
 public:
  Parser(std::string_view text, const Json::Limits& limits) : text_(text), limits_(limits) {}

  Json document() {
    if (text_.size() > limits_.bytes) fail<InvalidArgument>("json", "at most {} bytes; got {}", limits_.bytes, text_.size());
    Json out = value(0);
    skip_space();
    if (at_ < text_.size()) wrong("text after the end of the value");
    return out;
  }

 private:
  Json value(int depth) {
    if (depth > limits_.depth) wrong(fmt::format("nested deeper than {}", limits_.depth));
    if (++values_ > limits_.values) wrong(fmt::format("more than {} values", limits_.values));
    skip_space();
    if (at_ >= text_.size()) wrong("the text ends where a value should be");
    switch (text_[at_]) {
      case '{': return object(depth);
      case '[': return list(depth);
      case '"': return Json(string());
      case 't': return word("true", true);
      case 'f': return word("false", false);
      case 'n': return word("null", nullptr);
      case 'N': return word("NaN", std::numeric_limits<double>::quiet_NaN());
      case 'I': return word("Infinity", std::numeric_limits<double>::infinity());
      default: return number();
    }
  }

  Json list(int depth) {
    ++at_;
    JsonList out;
    if (take(']')) return out;
    do out.push_back(value(depth + 1));
    while (take(','));
    if (!take(']')) wrong("expected ',' or ']'");
    return out;
  }

  Json object(int depth) {
    ++at_;
    JsonMembers out;
    if (take('}')) return out;
    do {
      skip_space();
      if (at_ >= text_.size() || text_[at_] != '"') wrong("expected a key in quotes");
      std::string key = string();
      if (!take(':')) wrong("expected ':' after a key");
      out.emplace_back(std::move(key), value(depth + 1));
    } while (take(','));
    if (!take('}')) wrong("expected ',' or '}'");
    if (auto key = repeated_key(out)) wrong(fmt::format("key '{}' is given twice in one object", escape(*key)));
    return out;
  }

  static std::optional<std::string_view> repeated_key(const JsonMembers& members) {
    std::vector<std::string_view> keys;
    for (const auto& member : members) keys.push_back(member.first);
    std::sort(keys.begin(), keys.end());
    auto twice = std::adjacent_find(keys.begin(), keys.end());
    return twice == keys.end() ? std::nullopt : std::optional(*twice);
  }

  std::string string() {
    ++at_;
    std::string out;
    while (true) {
      // Runs of plain ASCII are copied at once.
      size_t end = at_;
      while (end < text_.size() && is_plain(text_[end])) ++end;
      out += text_.substr(at_, end - at_);
      at_ = end;
      if (at_ >= text_.size()) wrong("a string without its closing quote");
      char c = text_[at_];
      if (c == '"') return ++at_, out;
      if (c == '\\') {
        escaped(out);
      } else {
        size_t length = utf8_length(text_, at_);
        if (length < 2) wrong(length ? "a control character inside of a string" : "a string is not valid UTF-8");
        out += text_.substr(at_, length);
        at_ += length;
      }
    }
  }

  static bool is_plain(char c) { return c >= 0x20 && static_cast<unsigned char>(c) < 0x80 && c != '"' && c != '\\'; }

  void escaped(std::string& out) {
    if (at_ + 1 >= text_.size()) wrong("a string without its closing quote");
    static constexpr std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
    char c = text_[at_ + 1];
    if (size_t i = from.find(c); i != from.npos) {
      at_ += 2;
      out += to[i];
    } else if (c == 'u') {
      char32_t code = hex4();
      if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_, 2) == "\\u") {
        char32_t low = hex4();
        if (low < 0xdc00 || low > 0xdfff) wrong("a \\u escape is half of a pair");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      } else if (code >= 0xd800 && code < 0xe000) {
        wrong("a \\u escape is half of a pair");
      }
      utf8_append(out, code);
    } else {
      wrong("an unknown escape in a string");
    }
  }

  char32_t hex4() {
    auto digits = text_.substr(at_ + 2, 4);
    uint32_t code = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (digits.size() < 4 || error != std::errc() || end != digits.data() + 4) wrong("expected four hexadecimal digits after \\u");
    at_ += 6;
    return code;
  }

  Json word(std::string_view expected, Json value) {
    if (text_.substr(at_, expected.size()) != expected) wrong("expected a value");
    at_ += expected.size();
    return value;
  }

  // -?(0|[1-9][0-9]*)(.[0-9]+)?([eE][+-]?[0-9]+)?
  Json number() {
    size_t start = at_;
    bool whole = true;
    if (peek() == '-') ++at_;
    if (at_ > start && peek() == 'I') return word("Infinity", -std::numeric_limits<double>::infinity());
    if (peek() == '0')
      ++at_;
    else if (digits() == 0)
      wrong("expected a value");
    if (peek() == '.') {
      ++at_;
      whole = false;
      if (digits() == 0) wrong("expected digits after the point");
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      whole = false;
      if (peek() == '+' || peek() == '-') ++at_;
      if (digits() == 0) wrong("expected digits in the exponent");
    }
    const char *first = text_.data() + start, *last = text_.data() + at_;
    if (int64_t number; whole && std::from_chars(first, last, number).ec == std::errc()) return number;
    if (uint64_t number; whole && std::from_chars(first, last, number).ec == std::errc()) return number;
    double real = 0;
    if (std::from_chars(first, last, real).ec == std::errc::result_out_of_range) real = out_of_range(std::string_view(first, last));
    return real;
  }

  // As Python: beyond the largest double is infinity, below the smallest is zero. from_chars does not say which.
  static double out_of_range(std::string_view digits) {
    // The sign of the decimal exponent decides: that of the first digit that is not 0, moved by the written exponent.
    double sign = digits[0] == '-' ? -1 : 1;
    size_t e = digits.find_first_of("eE");
    auto mantissa = digits.substr(0, e);
    int64_t exponent = 0;
    if (e != digits.npos) {
      auto text = digits.substr(e + 1 + (digits[e + 1] == '+'));
      if (std::from_chars(text.data(), text.data() + text.size(), exponent).ec != std::errc())
        exponent = text[0] == '-' ? -(int64_t{1} << 40) : int64_t{1} << 40;
    }
    auto point = static_cast<int64_t>(std::min(mantissa.find('.'), mantissa.size()));
    auto first = static_cast<int64_t>(std::min(mantissa.find_first_of("123456789"), mantissa.size()));
    return point - first + exponent > 0 ? sign * std::numeric_limits<double>::infinity() : sign * 0.0;
  }

  size_t digits() {
    size_t start = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ - start;
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool take(char c) {
    skip_space();
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) ++at_;
  }

  [[noreturn]] void wrong(std::string_view rule) const {
    auto before = text_.substr(0, at_);
    auto line = std::count(before.begin(), before.end(), '\n') + 1;
    size_t column = before.size() - (before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1) + 1;
    fail<InvalidArgument>("json", "{}, at line {} column {}", rule, line, column);
  }

  std::string_view text_;
  const Json::Limits& limits_;
  size_t at_ = 0;
  uint64_t values_ = 0;
};

}  // namespace

Json Json::parse(std::string_view text, const Limits& limits) { return Parser(text, limits).document(); }

}  // namespace tutti
