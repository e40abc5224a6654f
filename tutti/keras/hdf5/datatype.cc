#include "tutti/keras/hdf5/datatype.h"

#include <algorithm>
#include <array>
#include <optional>

namespace tutti::keras::hdf5 {

namespace {

constexpr std::array<std::string_view, 12> class_names = {"integer",     "float",           "time",     "string",
                                                          "bit field",   "opaque",          "compound", "reference",
                                                          "enumeration", "variable-length", "array",    "complex"};

// What makes a float an IEEE one (or bfloat16): where sign, exponent and mantissa are, in bits.
struct FloatLayout {
  DType dtype;
  uint32_t size, sign, exponent_at, exponent_bits, mantissa_bits, bias;
};
constexpr FloatLayout float_layouts[] = {
    {DType::f16, 2, 15, 10, 5, 10, 15},
    {DType::bf16, 2, 15, 7, 8, 7, 127},
    {DType::f32, 4, 31, 23, 8, 23, 127},
    {DType::f64, 8, 63, 52, 11, 52, 1023},
};

std::optional<DType> integer_type(uint32_t size, bool is_signed) {
  switch (size) {
    case 1: return is_signed ? DType::i8 : DType::u8;
    case 2: return is_signed ? DType::i16 : DType::u16;
    case 4: return is_signed ? DType::i32 : DType::u32;
    case 8: return is_signed ? DType::i64 : DType::u64;
    default: return {};
  }
}

// One datatype message, which may hold others: an enumeration its base.
class Parser {
 public:
  Parser(Fields& fields, int depth) : fields_(fields), depth_(depth) {}

  Datatype parse() {
    uint8_t head = fields_.u8();
    version_ = head >> 4;
    uint8_t kind = head & 15;
    if (version_ == 0 || version_ > 5) unsupported("a datatype of version {}", version_);
    if (kind >= class_names.size()) unsupported("a datatype of class {}", kind);
    bits_ = static_cast<uint32_t>(fields_.number(3));
    out_.size = fields_.u32();
    if (out_.size == 0) corrupt("a datatype of no bytes");
    out_.description = class_names[kind];
    if (kind == 0) integer();
    if (kind == 1) real();
    if (kind == 3) {
      out_.kind = Datatype::Class::fixed_string;
      if ((bits_ & 15) > 2) unsupported("a string with padding of type {}", bits_ & 15);
      out_.padding = static_cast<Datatype::Padding>(bits_ & 15);
    }
    if (kind == 5) out_.kind = Datatype::Class::opaque;
    if (kind == 8) enumeration();
    if (kind == 9 && (bits_ & 15) == 1) out_.kind = Datatype::Class::variable_string;
    return out_;
  }

 private:
  void number(DType dtype, bool big_endian) {
    out_.kind = Datatype::Class::number;
    out_.dtype = dtype;
    out_.big_endian = big_endian;
  }

  void integer() {
    uint16_t at = fields_.u16(), precision = fields_.u16();
    auto dtype = integer_type(out_.size, bits_ & 8);
    if (dtype && at == 0 && precision == 8 * out_.size)
      number(*dtype, bits_ & 1);
    else
      out_.description = fmt::format("integer of {} bits in {} bytes", precision, out_.size);
  }

  void real() {
    uint16_t at = fields_.u16(), precision = fields_.u16();
    uint8_t exponent_at = fields_.u8(), exponent_bits = fields_.u8(), mantissa_at = fields_.u8(), mantissa_bits = fields_.u8();
    uint32_t bias = fields_.u32(), sign = bits_ >> 8 & 0xff;
    bool implied_one = (bits_ >> 4 & 3) == 2, vax = bits_ & 64;
    for (const auto& layout : float_layouts)
      if (layout.size == out_.size && layout.sign == sign && layout.exponent_at == exponent_at && layout.exponent_bits == exponent_bits &&
          layout.mantissa_bits == mantissa_bits && layout.bias == bias && mantissa_at == 0 && at == 0 && precision == 8 * layout.size &&
          implied_one && !vax)
        return number(layout.dtype, bits_ & 1);
    out_.description = fmt::format("float of {} bits with {} exponent bits", precision, exponent_bits);
  }

  // h5py's bool is an enumeration {FALSE: 0, TRUE: 1}; any other is read as its integers.
  void enumeration() {
    if (depth_ > 0) corrupt("an enumeration of enumerations");
    size_t count = bits_ & 0xffff;
    Datatype base = Parser(fields_, depth_ + 1).parse();
    if (base.kind != Datatype::Class::number || base.size != out_.size || is_float(base.dtype)) return;
    out_.kind = Datatype::Class::number;
    out_.dtype = base.dtype;
    out_.big_endian = base.big_endian;
    if (count != 2 || base.size != 1) return;
    auto first = member_name(), second = member_name();
    uint8_t first_value = fields_.u8(), second_value = fields_.u8();
    if ((first == "FALSE" && second == "TRUE" && first_value == 0 && second_value == 1) ||
        (first == "TRUE" && second == "FALSE" && first_value == 1 && second_value == 0))
      out_.dtype = DType::boolean;
  }

  // Ends with a zero; before version 3 padded to a multiple of eight.
  std::string member_name() {
    std::string name;
    for (char c; (c = static_cast<char>(fields_.u8())) != 0;) name += c;
    if (version_ < 3) fields_.skip((8 - (name.size() + 1) % 8) % 8);
    return name;
  }

  Fields& fields_;
  int depth_;
  uint8_t version_ = 0;
  uint32_t bits_ = 0;
  Datatype out_;
};

}  // namespace

Datatype parse_datatype(Storage& storage, std::span<const std::byte> bytes) {
  Fields fields(bytes, storage, "a datatype");
  return Parser(fields, 0).parse();
}

Datatype parse_datatype(Storage& storage, const Message& message) {
  if (!message.shared) return parse_datatype(storage, message.bytes);
  ObjectHeader named = read_object_header(storage, shared_address(storage, message.bytes));
  const Message* inner = named.find(MessageType::datatype);
  if (inner == nullptr || inner->shared) corrupt("a named type is none");
  return parse_datatype(storage, inner->bytes);
}

Shape Dataspace::shape() const {
  if (null) return {0};
  Ints out;
  uint64_t elements = 1;
  for (uint64_t extent : extents) {
    if (extent != 0 && elements > (uint64_t{1} << 48) / extent) corrupt("a dataspace of more than 2^48 elements");
    elements *= extent;
    if (extent > uint64_t{1} << 48) corrupt("a dataspace with an extent of {}", extent);
    out.push_back(static_cast<int64_t>(extent));
  }
  return out;
}

Dataspace parse_dataspace(Storage& storage, std::span<const std::byte> bytes) {
  Fields fields(bytes, storage, "a dataspace");
  uint8_t version = fields.u8(), rank = fields.u8(), flags = fields.u8();
  if (version != 1 && version != 2) unsupported("a dataspace of version {}", version);
  if (rank > 32) corrupt("a dataspace of {} axes; at most 32", rank);
  Dataspace out;
  if (version == 1)
    fields.skip(5);
  else
    out.null = fields.u8() == 2;
  for (int i = 0; i < rank; ++i) out.extents.push_back(fields.length());
  out.maxima = out.extents;
  if (flags & 1)
    for (auto& maximum : out.maxima) {
      maximum = fields.length();
      if (storage.length_width() < 8 && maximum == (uint64_t{1} << (8 * storage.length_width())) - 1) maximum = undefined;
    }
  return out;
}

void to_native(const Datatype& type, std::span<std::byte> elements) {
  if (type.dtype == DType::boolean)
    for (auto& value : elements) value = value == std::byte{0} ? std::byte{0} : std::byte{1};
  if (type.big_endian && type.size > 1)
    for (size_t at = 0; at + type.size <= elements.size(); at += type.size)
      std::reverse(elements.begin() + static_cast<std::ptrdiff_t>(at), elements.begin() + static_cast<std::ptrdiff_t>(at + type.size));
}

}  // namespace tutti::keras::hdf5
