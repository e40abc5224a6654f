#include "tutti/data/npz.h"

#include <zlib.h>

#include <algorithm>

#include "tutti/base/error.h"

namespace tutti {

namespace {

constexpr std::string_view suffix = ".npy";

std::string header_of(const ArraySpec& spec, int64_t count) { return npy_header({spec.dtype, with_rows(count, spec.row)}); }

// A broken archive is broken data here, and the user gave a file's name.
template <class F>
auto naming(const std::string& file, F&& f) {
  try {
    return f();
  } catch (const InvalidModel& e) {
    fail<InvalidArgument>("npz", "{}: {}", file, e.what());
  } catch (const Unsupported& e) {
    fail<Unsupported>("npz", "{}: {}", file, e.what());
  }
}

// A few bytes of a stored array may have changed without any other sign. One more pass over the file, in pieces.
void check_crc(const ByteSource& source, const ZipReader::Member& member) {
  std::vector<std::byte> piece(std::min<uint64_t>(source.size(), 1 << 20));
  uLong crc = 0;
  for (uint64_t at = 0; at < source.size(); at += piece.size()) {
    piece.resize(std::min<uint64_t>(piece.size(), source.size() - at));
    source.read(at, piece);
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(piece.data()), piece.size());
  }
  if (crc != member.crc) fail<InvalidModel>("zip", "member '{}' has another CRC than the directory says", member.name);
}

}  // namespace

NpzReader::NpzReader(std::shared_ptr<const ByteSource> source, std::string file)
    : file_(std::move(file)), zip_(naming(file_, [&] { return ZipReader(std::move(source)); })) {
  for (const auto& member : zip_.members())
    if (member.name.ends_with(suffix)) names_.push_back(member.name.substr(0, member.name.size() - suffix.size()));
}

NpyReader NpzReader::open(std::string_view name) const {
  const auto* member = zip_.find(std::string(name) + std::string(suffix));
  if (member == nullptr) fail<InvalidArgument>("npz", "{}: no array '{}'{}", file_, name, did_you_mean(name, names_));
  auto source = naming(file_, [&] {
    auto opened = zip_.open(*member);
    if (member->method == 0) check_crc(*opened, *member);
    return opened;
  });
  return {std::move(source), file_ + "/" + std::string(name)};
}

NpzWriter::NpzWriter(const std::string& path, std::vector<ArraySpec> arrays) : file_(path) {
  for (auto& spec : arrays) {
    std::unique_ptr<OutputFile> waiting;
    if (arrays_.empty())
      zip_.begin(spec.name + std::string(suffix), header_of(spec, 0).size());
    else
      waiting = std::make_unique<OutputFile>(path);
    arrays_.push_back({std::move(spec), 0, std::move(waiting)});
  }
}

void NpzWriter::write(size_t array, const Tensor& rows) {
  Array& target = arrays_.at(array);
  check_rows("npz", rows, target.spec);
  if (target.waiting)
    target.waiting->write(rows.bytes());
  else
    zip_.write(rows.bytes());
  target.count += rows.shape()[0];
}

void NpzWriter::commit() {
  std::vector<std::byte> chunk;
  for (auto& array : arrays_) {
    std::string header = header_of(array.spec, array.count);
    if (array.waiting) {
      zip_.begin(array.spec.name + std::string(suffix), header.size());
      for (uint64_t at = 0; at < array.waiting->size(); at += chunk.size()) {
        chunk.resize(std::min<uint64_t>(1 << 20, array.waiting->size() - at));
        array.waiting->read_at(at, chunk);
        zip_.write(chunk);
      }
      array.waiting.reset();
    }
    zip_.end(header);
  }
  zip_.finish();
  file_.commit(false);
}

}  // namespace tutti
