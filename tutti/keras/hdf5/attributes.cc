#include "tutti/keras/hdf5/attributes.h"

#include <algorithm>

#include "tutti/keras/hdf5/btree.h"
#include "tutti/keras/hdf5/heaps.h"

namespace tutti::keras::hdf5 {

namespace {

Attribute parse_attribute(Storage& storage, std::span<const std::byte> bytes, uint32_t creation_order) {
  Fields fields(bytes, storage, "an attribute");
  uint8_t version = fields.u8();
  if (version < 1 || version > 3) unsupported("an attribute of version {}", version);
  uint8_t flags = fields.u8();
  if (version == 1) flags = 0;  // reserved there
  uint16_t name_bytes = fields.u16(), type_bytes = fields.u16(), space_bytes = fields.u16();
  if (version == 3) fields.skip(1);  // character set
  // Version 1 pads each part to eight bytes.
  auto part = [&](uint16_t size) {
    auto out = fields.take(size);
    if (version == 1) fields.skip((8u - size % 8u) % 8u);
    return out;
  };
  Attribute out;
  out.creation_order = creation_order;
  auto name = part(name_bytes);
  out.name = std::string(reinterpret_cast<const char*>(name.data()), name.size());
  out.name.resize(std::min(out.name.find('\0'), out.name.size()));
  Message type{MessageType::datatype, (flags & 1) != 0, 0, part(type_bytes)};
  out.type = parse_datatype(storage, type);
  if (flags & 2) unsupported("attribute '{}' with a shared dataspace", escape(out.name));
  out.space = parse_dataspace(storage, part(space_bytes));
  uint64_t size = product(static_cast<uint64_t>(out.space.shape().elements()), out.type.size);
  auto data = fields.take(size);
  out.data.assign(data.begin(), data.end());
  return out;
}

bool read_dense(Storage& storage, const Message& message, std::vector<Attribute>& out) {
  Fields fields(message.bytes, storage, "attribute information");
  fields.expect_version(0);
  bool ordered = fields.u8() & 1;
  if (ordered) fields.skip(2);  // next creation order
  uint64_t heap_address = fields.offset(), names = fields.offset();
  if (heap_address == undefined) return ordered;
  FractalHeap heap(storage, heap_address);
  walk_tree_2(storage, names, Tree2::attribute_name, [&](std::span<const std::byte> record) {
    Fields row(record, storage, "an attribute's record");
    auto id = row.take(8);
    if (row.u8() & 2) unsupported("a shared attribute");
    uint32_t order = row.u32();
    out.push_back(parse_attribute(storage, heap.object(id), order));
  });
  return ordered;
}

}  // namespace

std::vector<Attribute> read_attributes(Storage& storage, const ObjectHeader& header) {
  std::vector<Attribute> out;
  bool ordered = false;
  if (auto* info = header.find(MessageType::attribute_info)) ordered = read_dense(storage, *info, out);
  for (const auto& message : header.messages)
    if (message.type == MessageType::attribute) {
      if (message.shared) unsupported("a shared attribute");
      out.push_back(parse_attribute(storage, message.bytes, message.creation_order));
    }
  std::sort(out.begin(), out.end(), [](const Attribute& a, const Attribute& b) { return a.name < b.name; });
  for (size_t i = 1; i < out.size(); ++i)
    if (out[i - 1].name == out[i].name) corrupt("two attributes are named '{}'", escape(out[i].name));
  if (ordered)
    std::stable_sort(out.begin(), out.end(), [](const Attribute& a, const Attribute& b) { return a.creation_order < b.creation_order; });
  return out;
}

std::vector<std::string> decode_strings(Storage& storage, const Datatype& type, std::span<const std::byte> elements) {
  std::vector<std::string> out;
  // A string object costs memory even when it is empty.
  storage.charge_data(product(elements.size() / type.size, sizeof(std::string)));
  GlobalHeap heap(storage);
  Fields fields(elements, storage, "a string");
  while (fields.left() >= type.size) {
    if (type.kind == Datatype::Class::variable_string) {
      Fields element(fields.take(type.size), storage, "a variable-length string");
      uint64_t size = element.u32(), address = element.offset();
      uint32_t index = element.u32();
      storage.charge_data(size);
      out.emplace_back(size == 0 ? std::string_view() : heap.object(address, index, size));
    } else {
      auto text = fields.text(type.size);
      switch (type.padding) {
        case Datatype::Padding::zero_terminated: text = text.substr(0, text.find('\0')); break;
        case Datatype::Padding::zeros: text = text.substr(0, text.find_last_not_of('\0') + 1); break;
        case Datatype::Padding::spaces: text = text.substr(0, text.find_last_not_of(std::string_view(" \0", 2)) + 1); break;
      }
      storage.charge_data(text.size());
      out.emplace_back(text);
    }
  }
  return out;
}

}  // namespace tutti::keras::hdf5
