#include "tutti/keras/hdf5/writer.h"

#include "tutti/base/error.h"
#include "tutti/keras/hdf5/checksum.h"
#include "tutti/keras/hdf5/object_header.h"

namespace tutti::keras::hdf5 {

namespace {

constexpr uint64_t nowhere = ~uint64_t{0};
constexpr uint64_t superblock_bytes = 48, data_alignment = 64;

void put_number(std::string& out, uint64_t value, int width) {
  for (int i = 0; i < width; ++i) out += static_cast<char>(value >> (8 * i) & 255);
}

uint32_t checksum_of(const std::string& text) { return lookup3(std::as_bytes(std::span(text.data(), text.size()))); }

void put_message(std::string& out, MessageType type, const std::string& body) {
  put_number(out, static_cast<uint64_t>(type), 1);
  put_number(out, body.size(), 2);
  put_number(out, 0, 1);
  out += body;
}

// Class, bits, size, then the properties of that class.
std::string float_type(int bits, int exponent, int mantissa) {
  std::string out;
  put_number(out, 0x11, 1);
  put_number(out, 0x20, 1);  // little-endian, the mantissa's first bit implied
  put_number(out, static_cast<uint64_t>(bits - 1), 1);
  put_number(out, 0, 1);
  put_number(out, static_cast<uint64_t>(bits / 8), 4);
  put_number(out, 0, 2);
  put_number(out, static_cast<uint64_t>(bits), 2);
  for (int part : {mantissa, exponent, 0, mantissa}) put_number(out, static_cast<uint64_t>(part), 1);
  put_number(out, (uint64_t{1} << (exponent - 1)) - 1, 4);
  return out;
}

std::string integer_type(int bits, bool is_signed) {
  std::string out;
  put_number(out, 0x10, 1);
  put_number(out, is_signed ? 8 : 0, 3);
  put_number(out, static_cast<uint64_t>(bits / 8), 4);
  put_number(out, 0, 2);
  put_number(out, static_cast<uint64_t>(bits), 2);
  return out;
}

// As h5py writes bool: an enumeration of bytes.
std::string bool_type() {
  std::string out;
  put_number(out, 0x38, 1);
  put_number(out, 2, 3);  // members
  put_number(out, 1, 4);
  out += integer_type(8, true);
  for (const char* name : {"FALSE", "TRUE"}) out += std::string(name) + '\0';
  put_number(out, 0, 1);
  put_number(out, 1, 1);
  return out;
}

std::string type_message(DType dtype) {
  switch (dtype) {
    case DType::f16: return float_type(16, 5, 10);
    case DType::f32: return float_type(32, 8, 23);
    case DType::f64: return float_type(64, 11, 52);
    case DType::boolean: return bool_type();
    case DType::i8: return integer_type(8, true);
    case DType::i16: return integer_type(16, true);
    case DType::i32: return integer_type(32, true);
    case DType::i64: return integer_type(64, true);
    case DType::u8: return integer_type(8, false);
    case DType::u16: return integer_type(16, false);
    case DType::u32: return integer_type(32, false);
    case DType::u64: return integer_type(64, false);
    default: fail<Unsupported>("hdf5", "{} has no type in HDF5 files", name(dtype));
  }
}

}  // namespace

Writer::Object& Writer::find(const std::string& path) {
  Object* object = &root_;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (part.empty() || part.size() > 60'000 || object->is_dataset()) fail<InvalidArgument>("hdf5", "'{}' is no path of a file", path);
    auto& child = object->children[part];
    if (!child) child = std::make_unique<Object>();
    object = child.get();
    begin = end + 1;
  }
  return *object;
}

void Writer::group(const std::string& path) { find(path); }

void Writer::dataset(const std::string& path, Tensor value) {
  type_message(value.dtype());
  Object& object = find(path);
  if (object.is_dataset() || !object.children.empty()) fail<InvalidArgument>("hdf5", "'{}' is there already", path);
  object.value = std::move(value);
}

// In the order in which they stand in the file.
template <class F>
void Writer::visit(Object& object, F&& f) {
  f(object);
  for (auto& [name, child] : object.children) visit(*child, f);
}

std::string Writer::header_of(const Object& object) {
  std::string messages;
  if (object.is_dataset()) {
    const Shape& shape = object.value.shape();
    std::string space, place;
    put_number(space, 2, 1);
    put_number(space, static_cast<uint64_t>(shape.rank()), 1);
    put_number(space, 0, 1);
    put_number(space, shape.rank() == 0 ? 0 : 1, 1);
    for (int64_t extent : shape) put_number(space, static_cast<uint64_t>(extent), 8);
    const auto bytes = static_cast<uint64_t>(object.value.type().bytes());
    put_number(place, 0x0103, 2);  // version 3, contiguous
    put_number(place, bytes == 0 ? nowhere : object.data, 8);
    put_number(place, bytes, 8);
    put_message(messages, MessageType::dataspace, space);
    put_message(messages, MessageType::datatype, type_message(object.value.dtype()));
    put_message(messages, MessageType::fill_value, std::string("\x03\x0a", 2));  // none of our own
    put_message(messages, MessageType::layout, place);
  } else {
    std::string info(2, '\0');
    put_number(info, nowhere, 8);  // no heap, no tree: links stand here
    put_number(info, nowhere, 8);
    put_message(messages, MessageType::link_info, info);
    put_message(messages, MessageType::group_info, std::string(2, '\0'));
    for (const auto& [name, child] : object.children) {
      std::string to;
      put_number(to, 1, 1);
      put_number(to, 0x11, 1);  // the name is UTF-8, its length has two bytes
      put_number(to, 1, 1);
      put_number(to, name.size(), 2);
      to += name;
      put_number(to, child->header, 8);
      put_message(messages, MessageType::link, to);
    }
  }
  std::string out = "OHDR";
  put_number(out, 2, 1);
  put_number(out, 2, 1);  // the size below has four bytes
  put_number(out, messages.size(), 4);
  out += messages;
  put_number(out, checksum_of(out), 4);
  return out;
}

void Writer::write(const Sink& sink) {
  uint64_t end = superblock_bytes;
  visit(root_, [&](Object& object) {
    object.header = end;
    end += header_of(object).size();  // the same size wherever things stand
  });
  const uint64_t headers_end = end;
  visit(root_, [&](Object& object) {
    if (!object.is_dataset()) return;
    end = (end + data_alignment - 1) / data_alignment * data_alignment;
    object.data = end;
    end += static_cast<uint64_t>(object.value.type().bytes());
  });

  std::string head("\x89HDF\r\n\x1a\n", 8);
  put_number(head, 2, 1);
  put_number(head, 8, 1);
  put_number(head, 8, 1);
  put_number(head, 0, 1);
  put_number(head, 0, 8);
  put_number(head, nowhere, 8);
  put_number(head, end, 8);
  put_number(head, root_.header, 8);
  put_number(head, checksum_of(head), 4);

  const auto put = [&](const std::string& text) { sink(std::as_bytes(std::span(text.data(), text.size()))); };
  put(head);
  visit(root_, [&](Object& object) { put(header_of(object)); });
  uint64_t position = headers_end;
  visit(root_, [&](Object& object) {
    if (!object.is_dataset()) return;
    put(std::string(object.data - position, '\0'));
    sink(std::as_const(object.value).bytes());
    position = object.data + static_cast<uint64_t>(object.value.type().bytes());
  });
}

}  // namespace tutti::keras::hdf5
