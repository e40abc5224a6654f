// An object (group, data set, named type) is its header: a list of messages, in one or several blocks.
#pragma once

#include "tutti/keras/hdf5/storage.h"

namespace tutti::keras::hdf5 {

enum class MessageType : uint16_t {
  nil = 0,
  dataspace = 1,
  link_info = 2,
  datatype = 3,
  old_fill_value = 4,
  fill_value = 5,
  link = 6,
  external_files = 7,
  layout = 8,
  group_info = 0xa,
  filters = 0xb,
  attribute = 0xc,
  comment = 0xd,
  continuation = 0x10,
  symbol_table = 0x11,
  driver_info = 0x14,
  attribute_info = 0x15,
  cache_image = 0x18,
};

struct Message {
  MessageType type = MessageType::nil;
  bool shared = false;          // the bytes say where the message is
  uint32_t creation_order = 0;  // of attributes, if tracked
  std::span<const std::byte> bytes;
};

struct ObjectHeader {
  uint64_t address = undefined;
  std::vector<Message> messages;
  std::vector<std::vector<std::byte>> blocks;  // what the messages' bytes are parts of

  // The one message of this type, or nullptr. Unsupported when it is shared.
  const Message* find(MessageType type) const;
  bool is_group() const;
  bool is_dataset() const;
};

ObjectHeader read_object_header(Storage& storage, uint64_t address);

// Where a shared message is kept; only those of other objects' headers (named types) are read.
uint64_t shared_address(Storage& storage, std::span<const std::byte> bytes);

}  // namespace tutti::keras::hdf5
