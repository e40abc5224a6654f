#include "tutti/keras/hdf5/links.h"

#include <algorithm>

#include "tutti/keras/hdf5/btree.h"
#include "tutti/keras/hdf5/heaps.h"

namespace tutti::keras::hdf5 {

namespace {

// Old groups: a B-tree of symbol nodes, names in a local heap.
void read_symbol_table(Storage& storage, const Message& message, std::vector<Link>& out) {
  Fields fields(message.bytes, storage, "a symbol table");
  uint64_t tree = fields.offset();
  LocalHeap heap(storage, fields.offset());
  const size_t entry_bytes = 24 + 2 * storage.offset_width();
  walk_tree_1(storage, tree, Tree1::group, storage.length_width(), [&](std::span<const std::byte>, uint64_t child) {
    auto head = storage.read(child, 8, "a symbol node");
    Fields node(head, storage, "a symbol node");
    node.expect("SNOD");
    node.expect_version(1);
    node.skip(1);
    uint16_t count = node.u16();
    auto body = storage.read(child + 8, count * entry_bytes, "a symbol node");
    Fields entries(body, storage, "a symbol node");
    for (uint16_t i = 0; i < count; ++i) {
      Link link;
      link.name = heap.name(entries.offset());
      storage.charge_metadata(link.name.size());
      link.address = entries.offset();
      if (entries.u32() == 2) link.kind = Link::Kind::soft;
      entries.skip(20);
      out.push_back(std::move(link));
    }
  });
}

Link parse_link(Storage& storage, std::span<const std::byte> bytes) {
  Fields fields(bytes, storage, "a link");
  fields.expect_version(1);
  uint8_t flags = fields.u8();
  uint8_t kind = flags & 8 ? fields.u8() : 0;
  Link link;
  if (flags & 4) link.creation_order = fields.u64();
  if (flags & 16) fields.skip(1);  // character set
  link.name = fields.text(fields.number(size_t{1} << (flags & 3)));
  if (kind == 0)
    link.address = fields.offset();
  else
    link.kind = kind == 1 ? Link::Kind::soft : kind == 64 ? Link::Kind::external : Link::Kind::other;
  return link;
}

// New groups: links are messages of the header or, when many, objects of a fractal heap.
bool read_link_info(Storage& storage, const Message& message, std::vector<Link>& out) {
  Fields fields(message.bytes, storage, "link information");
  fields.expect_version(0);
  bool ordered = fields.u8() & 1;
  if (ordered) fields.skip(8);  // next creation order
  uint64_t heap_address = fields.offset(), names = fields.offset();
  if (heap_address != undefined) {
    FractalHeap heap(storage, heap_address);
    walk_tree_2(storage, names, Tree2::link_name, [&](std::span<const std::byte> record) {
      Fields row(record, storage, "a link's record");
      row.skip(4);  // hash of the name
      out.push_back(parse_link(storage, heap.object(row.take(heap.id_bytes()))));
    });
  }
  return ordered;
}

void check_names(const std::vector<Link>& by_name) {
  for (size_t i = 0; i < by_name.size(); ++i) {
    const std::string& name = by_name[i].name;
    if (name.empty() || name == "." || name.find('/') != name.npos || name.find('\0') != name.npos)
      corrupt("'{}' cannot be the name of a link", escape(name));
    if (i > 0 && by_name[i - 1].name == name) corrupt("two links are named '{}'", escape(name));
  }
}

}  // namespace

std::vector<Link> read_links(Storage& storage, const ObjectHeader& group) {
  std::vector<Link> out;
  bool ordered = false;
  if (auto* table = group.find(MessageType::symbol_table)) read_symbol_table(storage, *table, out);
  if (auto* info = group.find(MessageType::link_info)) ordered = read_link_info(storage, *info, out);
  for (const auto& message : group.messages)
    if (message.type == MessageType::link) {
      if (message.shared) unsupported("a shared link message");
      out.push_back(parse_link(storage, message.bytes));
    }
  std::sort(out.begin(), out.end(), [](const Link& a, const Link& b) { return a.name < b.name; });
  check_names(out);
  if (ordered) std::stable_sort(out.begin(), out.end(), [](const Link& a, const Link& b) { return a.creation_order < b.creation_order; });
  return out;
}

}  // namespace tutti::keras::hdf5
