#include "tutti/data/npy_header.h"

#include <array>
#include <charconv>
#include <optional>

#include "tutti/base/error.h"

namespace tutti {

namespace {

// Above this a header is no header: NumPy's own are at most a few hundred bytes.
constexpr uint64_t longest_header = 1 << 20;
constexpr int64_t largest_extent = int64_t{1} << 48;

struct Descr {
  std::string_view code;
  DType dtype;
};
// Without the byte order. NumPy has no bfloat16; V2 is what it makes of the one of ml_dtypes, whose only two-byte type it is.
constexpr Descr descrs[] = {{"b1", DType::boolean}, {"i1", DType::i8},  {"i2", DType::i16}, {"i4", DType::i32}, {"i8", DType::i64},
                            {"u1", DType::u8},      {"u2", DType::u16}, {"u4", DType::u32}, {"u8", DType::u64}, {"f2", DType::f16},
                            {"V2", DType::bf16},    {"f4", DType::f32}, {"f8", DType::f64}};

// Reads the dict literal {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, keys in any order.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  void parse() {
    expect('{');
    while (!accept('}')) {
      std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !descr) {
        descr = dtype_text();
      } else if (key == "fortran_order" && !fortran_order) {
        fortran_order = boolean();
      } else if (key == "shape" && !shape) {
        shape = tuple();
      } else {
        refuse(fmt::format("unknown or repeated key '{}'", escape(key, 40)));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) refuse("text after the closing brace");
    if (!descr || !fortran_order || !shape) refuse("the keys descr, fortran_order and shape are needed");
  }

  std::optional<std::string_view> descr;
  std::optional<bool> fortran_order;
  std::optional<Ints> shape;

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    fail<InvalidArgument>("npy", "{}: broken header: {}; got {}", file_, why, escape(text_, 120));
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) refuse(fmt::format("expected '{}' at character {}", wanted, at_ + 1));
  }
  bool accept(std::string_view word) {
    skip_space();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  std::string_view quoted() {
    char quote = peek();
    if (quote != '\'' && quote != '"') refuse(fmt::format("expected a quoted name at character {}", at_ + 1));
    size_t end = text_.find(quote, at_ + 1);
    if (end == text_.npos) refuse("a quote is not closed");
    std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return inside;
  }
  std::string_view dtype_text() {
    if (peek() == '[')
      fail<Unsupported>("npy", "{}: arrays with named fields are not read; hint: save one plain array per file, or an .npz", file_);
    return quoted();
  }
  bool boolean() {
    if (accept("True")) return true;
    if (!accept("False")) refuse("fortran_order is True or False");
    return false;
  }
  Ints tuple() {
    Ints extents;
    expect('(');
    while (!accept(')')) {
      skip_space();
      int64_t extent = 0;
      auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
      if (error != std::errc{} || extent < 0 || extent > largest_extent)
        refuse(fmt::format("extents are whole numbers from 0 to 2^48, at character {}", at_ + 1));
      at_ = static_cast<size_t>(end - text_.data());
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // a long of Python 2
      extents.push_back(extent);
      if (extents.size() > 32) refuse("at most 32 axes");
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return extents;
  }

  std::string_view text_, file_;
  size_t at_ = 0;
};

DType dtype_of_descr(std::string_view descr, std::string_view file, bool& big_endian) {
  std::string_view code = descr;
  if (!code.empty() && std::string_view("<>|=").find(code[0]) != code.npos) {
    big_endian = code[0] == '>';
    code.remove_prefix(1);
  }
  for (const auto& row : descrs)
    if (row.code == code) return row.dtype;
  if (code.starts_with("O"))
    fail<Unsupported>(
        "npy", "{}: holds Python objects, which are a pickle, and pickles are never read; hint: save numbers (array.astype('float32'))",
        file);
  fail<Unsupported>("npy", "{}: arrays of dtype '{}' are not read; hint: integers, bool and float16, float32, float64 are", file,
                    escape(descr, 40));
}

template <class T>
T little_endian(std::span<const std::byte> bytes) {
  T value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = static_cast<T>((value << 8) | std::to_integer<T>(bytes[i]));
  return value;
}

}  // namespace

NpyHeader read_npy_header(const ByteSource& source, std::string_view file) {
  std::array<std::byte, 12> start{};
  if (source.size() < start.size()) fail<InvalidArgument>("npy", "{}: not an .npy file; it has {} bytes", file, source.size());
  source.read(0, start);
  if (std::string_view(reinterpret_cast<const char*>(start.data()), npy_magic.size()) != npy_magic)
    fail<InvalidArgument>("npy", "{}: not an .npy file; it does not begin with \\x93NUMPY", file);
  int version = std::to_integer<int>(start[6]);
  if (version < 1 || version > 3) fail<Unsupported>("npy", "{}: format versions 1, 2 and 3 are read; got {}", file, version);

  size_t length_bytes = version == 1 ? 2 : 4;
  uint64_t length = little_endian<uint32_t>(std::span(start).subspan(8, length_bytes));
  NpyHeader header;
  header.data_offset = 8 + length_bytes + length;
  if (length > longest_header) fail<InvalidArgument>("npy", "{}: a header has at most {} bytes; got {}", file, longest_header, length);
  if (header.data_offset > source.size())
    fail<InvalidArgument>("npy", "{}: cut short; the header alone has {} bytes and the file {}", file, header.data_offset, source.size());
  std::string text(length, '\0');
  source.read(8 + length_bytes, std::as_writable_bytes(std::span(text)));

  HeaderParser parser(text, file);
  parser.parse();
  header.fortran_order = *parser.fortran_order;
  header.type.dtype = dtype_of_descr(*parser.descr, file, header.big_endian);

  // The product may pass 2^63, and an extent of zero does not excuse the others: Shape refuses both beyond 2^48.
  uint64_t held = source.size() - header.data_offset;
  try {
    header.type.shape = Shape(*parser.shape);
  } catch (const InvalidArgument&) {
    fail<InvalidArgument>("npy", "{}: declares shape {}, which no file can hold; it has {} bytes of data", file, to_string(*parser.shape),
                          held);
  }
  auto declared = static_cast<uint64_t>(header.type.bytes());
  if (declared != held)
    fail<InvalidArgument>("npy", "{}: {} array of shape {} needs {} bytes of data; the file has {}", file, numpy_name(header.type.dtype),
                          to_string(header.type.shape), declared, held);
  return header;
}

std::string npy_header(const Type& type) {
  std::string_view code;
  for (const auto& row : descrs)
    if (row.dtype == type.dtype) code = row.code;
  char order = byte_size(type.dtype) == 1 ? '|' : '<';
  std::string shape;
  for (int64_t extent : type.shape) shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
  if (type.shape.rank() == 1) shape += ",";
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}", order, code, shape);
  // NumPy leaves room for 21 digits of the first extent, then pads to 64 bytes with the preamble (magic, version, length) and newline in
  // it.
  if (type.shape.rank() > 0) text.append(21 - std::to_string(type.shape[0]).size(), ' ');
  constexpr size_t preamble = 10;
  text.append(64 - (preamble + text.size() + 1) % 64, ' ');
  text += '\n';
  std::string out(npy_magic);
  out += {'\1', '\0', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return out + text;
}

}  // namespace tutti
