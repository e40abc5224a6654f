#include "tutti/keras/hdf5/dataset.h"

#include <algorithm>

namespace tutti::keras::hdf5 {

namespace {

// The extents of a chunk, and after them the size of an element.
void chunk_extents(Fields& fields, Layout& out, size_t count, size_t width) {
  if (count < 2 || count > 33) corrupt("chunks of {} axes", count);
  if (width == 0 || width > 8) corrupt("chunk extents of {} bytes", width);
  for (size_t i = 0; i + 1 < count; ++i) {
    out.chunk_extents.push_back(fields.number(width));
    if (out.chunk_extents.back() == 0) corrupt("a chunk without elements");
  }
  uint64_t size = fields.number(width);
  if (size > UINT32_MAX) corrupt("chunks of elements of {} bytes", size);
  out.element_size = static_cast<uint32_t>(size);
}

void parse_layout_1_2(Fields& fields, Layout& out) {
  size_t count = fields.u8();
  uint8_t kind = fields.u8();
  fields.skip(5);
  if (kind > 2) corrupt("a layout of class {}", kind);
  out.kind = static_cast<Layout::Class>(kind);
  if (out.kind != Layout::Class::compact) out.address = fields.offset();
  if (out.kind == Layout::Class::chunked) return chunk_extents(fields, out, count, 4);
  fields.skip(4 * count);
  if (out.kind == Layout::Class::compact) out.compact = fields.take(fields.u32());
}

void parse_chunks_4(Fields& fields, Layout& out) {
  uint8_t flags = fields.u8();
  out.plain_edges = flags & 1;
  size_t count = fields.u8(), width = fields.u8();
  chunk_extents(fields, out, count, width);
  uint8_t index = fields.u8();
  if (index < 1 || index > 5) unsupported("a chunk index of type {}", index);
  out.index = static_cast<Layout::Index>(index);
  switch (out.index) {
    case Layout::Index::single:
      if (flags & 2) {
        out.single_size = fields.length();
        out.single_mask = fields.u32();
      }
      break;
    // Settings that the index repeats where it is stored.
    case Layout::Index::fixed_array: fields.skip(1); break;
    case Layout::Index::extensible_array: fields.skip(5); break;
    case Layout::Index::tree_2: fields.skip(6); break;
    default: break;
  }
  out.address = fields.offset();
}

Layout parse_layout(Storage& storage, std::span<const std::byte> bytes) {
  Fields fields(bytes, storage, "a layout");
  Layout out;
  uint8_t version = fields.u8();
  if (version == 1 || version == 2) {
    parse_layout_1_2(fields, out);
    return out;
  }
  if (version != 3 && version != 4) unsupported("a layout of version {}", version);
  uint8_t kind = fields.u8();
  if (kind == 3) unsupported("a virtual data set, whose data are in other files");
  if (kind > 3) corrupt("a layout of class {}", kind);
  out.kind = static_cast<Layout::Class>(kind);
  if (out.kind == Layout::Class::compact) {
    out.compact = fields.take(fields.u16());
  } else if (out.kind == Layout::Class::contiguous) {
    out.address = fields.offset();
    out.size = fields.length();
  } else if (version == 3) {
    size_t count = fields.u8();
    out.address = fields.offset();
    chunk_extents(fields, out, count, 4);
  } else {
    parse_chunks_4(fields, out);
  }
  return out;
}

std::span<const std::byte> parse_fill(Storage& storage, const ObjectHeader& header) {
  if (auto* message = header.find(MessageType::fill_value)) {
    Fields fields(message->bytes, storage, "a fill value");
    uint8_t version = fields.u8();
    bool defined = false;
    if (version == 1 || version == 2) {
      fields.skip(2);  // when to allocate and to write
      defined = fields.u8() != 0 || version == 1;
    } else if (version == 3) {
      defined = fields.u8() & 32;
    } else {
      unsupported("a fill value of version {}", version);
    }
    if (defined) return fields.take(fields.u32());
    return {};
  }
  if (auto* message = header.find(MessageType::old_fill_value)) {
    Fields fields(message->bytes, storage, "a fill value");
    return fields.take(fields.u32());
  }
  return {};
}

void fill(std::span<const std::byte> value, std::span<std::byte> out) {
  if (value.empty()) {
    std::fill(out.begin(), out.end(), std::byte{0});
  } else {
    for (size_t at = 0; at < out.size(); at += value.size())
      std::copy(value.begin(), value.end(), out.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

}  // namespace

Dataset parse_dataset(Storage& storage, const ObjectHeader& header) {
  if (header.find(MessageType::external_files)) unsupported("a data set whose data are in other files");
  const Message *type = header.find(MessageType::datatype), *space = header.find(MessageType::dataspace),
                *layout = header.find(MessageType::layout);
  if (type == nullptr || space == nullptr || layout == nullptr) corrupt("a data set without datatype, dataspace or layout");
  Dataset out;
  out.type = parse_datatype(storage, *type);
  out.space = parse_dataspace(storage, space->bytes);
  out.layout = parse_layout(storage, layout->bytes);
  if (auto* filters = header.find(MessageType::filters)) out.filters = parse_filters(storage, filters->bytes);
  for (const Filter& filter : out.filters)
    if (filter.id == Filter::shuffle && filter.element_size != out.type.size)
      corrupt("a shuffle of elements of {} bytes, expected {}", filter.element_size, out.type.size);
  out.fill = parse_fill(storage, header);
  if (!out.fill.empty() && out.fill.size() != out.type.size)
    corrupt("a fill value of {} bytes for elements of {}", out.fill.size(), out.type.size);
  if (out.layout.kind == Layout::Class::chunked && !out.space.null) {
    if (out.layout.chunk_extents.size() != out.space.extents.size())
      corrupt("chunks of {} axes for a data set of {}", out.layout.chunk_extents.size(), out.space.extents.size());
    if (out.layout.element_size != out.type.size)
      corrupt("chunks of elements of {} bytes, expected {}", out.layout.element_size, out.type.size);
  }
  return out;
}

void check_size(Storage& storage, const Dataset& dataset) {
  uint64_t bytes = dataset.bytes();
  const Layout& layout = dataset.layout;
  if (bytes == 0) return;
  if (layout.kind == Layout::Class::compact && layout.compact.size() < bytes)
    corrupt("{} bytes of data, {} expected", layout.compact.size(), bytes);
  if (layout.kind == Layout::Class::contiguous && layout.address != undefined) {
    if (layout.size < bytes) corrupt("{} bytes of data, {} expected", layout.size, bytes);
    storage.check_range(layout.address, bytes, "data");
  }
  if (layout.kind == Layout::Class::chunked) check_chunks(storage, dataset);
  storage.charge_data(bytes);
}

void read_elements(Storage& storage, const Dataset& dataset, std::span<std::byte> out) {
  const Layout& layout = dataset.layout;
  if (out.empty()) return;
  if (layout.kind == Layout::Class::compact) {
    std::copy_n(layout.compact.begin(), out.size(), out.begin());
  } else if (layout.address == undefined) {
    fill(dataset.fill, out);
  } else if (layout.kind == Layout::Class::contiguous) {
    storage.read_data(layout.address, out);
  } else {
    fill(dataset.fill, out);
    read_chunks(storage, dataset, out);
  }
}

}  // namespace tutti::keras::hdf5
