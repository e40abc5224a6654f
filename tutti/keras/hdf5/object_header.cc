#include "tutti/keras/hdf5/object_header.h"

#include <algorithm>

namespace tutti::keras::hdf5 {

namespace {

constexpr size_t max_messages = 65536, max_blocks = 4096;

struct BlockRange {
  uint64_t address, size;
};

class HeaderParser {
 public:
  HeaderParser(Storage& storage, ObjectHeader& header) : storage_(storage), header_(header) {}

  void parse() {
    auto start = storage_.read(header_.address, std::min<uint64_t>(16, storage_.size() - std::min(header_.address, storage_.size())),
                               "an object header");
    Fields fields(start, storage_, "an object header");
    if (fields.left() >= 4 && fields.text(4) == "OHDR")
      first_block_2();
    else
      first_block_1(start);
    // The list grows while it is walked.
    for (size_t i = 0; i < continuations_.size(); ++i) {
      if (i >= max_blocks) corrupt("an object header in more than {} blocks", max_blocks);
      auto [address, size] = continuations_[i];
      bool again =
          address == header_.address || std::any_of(continuations_.begin(), continuations_.begin() + static_cast<std::ptrdiff_t>(i),
                                                    [&, a = address](const BlockRange& other) { return other.address == a; });
      if (again) corrupt("an object header continues at {} twice", address);
      if (version_ == 1) {
        messages(keep(storage_.read(address, size, "an object header block")));
      } else {
        auto block = keep(storage_.read_checked(address, size, "an object header block"));
        if (block.size() < 8) corrupt("an object header block of only {} bytes", block.size());
        Fields(block, storage_, "an object header block").expect("OCHK");
        messages(block.subspan(4, block.size() - 8));
      }
    }
  }

 private:
  void first_block_1(std::span<const std::byte> start) {
    Fields fields(start, storage_, "an object header");
    if (uint8_t version = fields.u8(); version != 1) corrupt("no object header at {}", header_.address);
    fields.skip(7);  // message and reference counts
    uint32_t size = fields.u32();
    fields.skip(4);
    version_ = 1;
    messages(keep(storage_.read(header_.address + 16, size, "an object header")));
  }

  void first_block_2() {
    version_ = 2;
    auto prefix = storage_.read(header_.address, std::min<uint64_t>(34, storage_.size() - header_.address), "an object header");
    Fields fields(prefix, storage_, "an object header");
    fields.expect("OHDR");
    fields.expect_version(2);
    uint8_t flags = fields.u8();
    ordered_ = flags & 4;
    if (flags & 32) fields.skip(16);  // times
    if (flags & 16) fields.skip(4);   // when attributes become dense
    uint64_t size = fields.number(size_t{1} << (flags & 3));
    uint64_t start = fields.position();
    if (size > storage_.size()) corrupt("an object header of {} bytes", size);
    auto block = keep(storage_.read_checked(header_.address, start + size + 4, "an object header"));
    messages(block.subspan(start, size));
  }

  std::span<const std::byte> keep(std::vector<std::byte> block) { return header_.blocks.emplace_back(std::move(block)); }

  void messages(std::span<const std::byte> block) {
    Fields fields(block, storage_, "an object header message");
    const size_t prefix = version_ == 1 ? 8 : ordered_ ? 6 : 4;
    while (fields.left() >= prefix) {  // fewer bytes are a gap
      Message message;
      message.type = static_cast<MessageType>(version_ == 1 ? fields.u16() : fields.u8());
      uint16_t size = fields.u16();
      uint8_t flags = fields.u8();
      if (version_ == 1) fields.skip(3);
      if (version_ == 2 && ordered_) message.creation_order = fields.u16();
      message.shared = flags & 2;
      message.bytes = fields.take(size);
      if (message.type == MessageType::nil) continue;
      if (message.type == MessageType::continuation) {
        Fields where(message.bytes, storage_, "a continuation message");
        uint64_t address = where.offset();
        continuations_.push_back({address, where.length()});
        continue;
      }
      // "Fail if unknown": what we do not know could change what the rest means.
      if (flags & 0x80 && static_cast<uint16_t>(message.type) > 0x18)
        unsupported("header message of type {}", static_cast<uint16_t>(message.type));
      if (header_.messages.size() >= max_messages) corrupt("an object with more than {} header messages", max_messages);
      header_.messages.push_back(message);
    }
  }

  Storage& storage_;
  ObjectHeader& header_;
  int version_ = 0;
  bool ordered_ = false;
  std::vector<BlockRange> continuations_;
};

}  // namespace

ObjectHeader read_object_header(Storage& storage, uint64_t address) {
  ObjectHeader header;
  header.address = address;
  HeaderParser(storage, header).parse();
  return header;
}

const Message* ObjectHeader::find(MessageType type) const {
  for (const auto& message : messages) {
    if (message.type != type) continue;
    if (message.shared && type != MessageType::datatype) unsupported("a shared header message of type {}", static_cast<uint16_t>(type));
    return &message;
  }
  return nullptr;
}

bool ObjectHeader::is_group() const {
  return std::any_of(messages.begin(), messages.end(),
                     [](const Message& m) { return m.type == MessageType::symbol_table || m.type == MessageType::link_info; });
}

bool ObjectHeader::is_dataset() const {
  return std::any_of(messages.begin(), messages.end(), [](const Message& m) { return m.type == MessageType::layout; });
}

uint64_t shared_address(Storage& storage, std::span<const std::byte> bytes) {
  Fields fields(bytes, storage, "a shared message");
  uint8_t version = fields.u8(), kind = fields.u8();
  if (version == 0 || version > 3) unsupported("a shared message of version {}", version);
  if (version == 1) fields.skip(6 + storage.length_width());  // with a heap address that the specification forgets
  if (version == 3 && kind != 2) unsupported("a message in the shared message heap");
  return fields.offset();
}

}  // namespace tutti::keras::hdf5
