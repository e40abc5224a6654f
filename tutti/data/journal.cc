#include "tutti/data/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <system_error>

#include "tutti/base/error.h"
#include "tutti/base/saturate.h"
#include "tutti/data/format.h"
#include "tutti/data/npy_header.h"

namespace tutti {

namespace {

// Names and reasons in a line: "NAME" or "NAME\tREASON".
std::string journal_text(std::string_view text) {
  std::string out;
  for (char c : text) out += c == '\\' ? "\\\\" : c == '\n' ? "\\n" : c == '\t' ? "\\t" : std::string(1, c);
  return out;
}

std::string from_journal(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    ++i;
    out += text[i] == 'n' ? '\n' : text[i] == 't' ? '\t' : text[i];
  }
  return out;
}

}  // namespace

// Appended to, read anywhere. Of one process at a time.
class Journal::File {
 public:
  File(std::string path, bool keep) : path_(std::move(path)) {
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) refuse("write");
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {  // else the file system has no locks
      ::close(descriptor_);
      fail<InvalidArgument>("resume", "another run is writing '{}'", escape(path_));
    }
    size_ = static_cast<uint64_t>(::lseek(descriptor_, 0, SEEK_END));
    if (!keep) cut(0);
  }
  ~File() { ::close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  uint64_t size() const { return size_; }
  void cut(uint64_t size) {
    if (size == size_) return;  // file systems flush what was cut when it is closed
    if (::ftruncate(descriptor_, static_cast<off_t>(size)) != 0) refuse("write");
    size_ = size;
  }
  void append(std::span<const std::byte> bytes) {
    write_at(size_, bytes);
    size_ += bytes.size();
  }
  void set_aside(uint64_t size) {  // behind its end, where nobody sees it
#ifdef __linux__
    if (size > size_) ::fallocate(descriptor_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(size_), static_cast<off_t>(size - size_));
#endif
  }
  void write_at(uint64_t offset, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0)
        fail<InvalidArgument>("file", "cannot write '{}': {}; hint: what is finished is kept, --resume goes on", escape(path_), reason());
      bytes = bytes.subspan(static_cast<size_t>(count));
      offset += static_cast<uint64_t>(count);
    }
  }
  void rename_to(const std::string& path) {
    if (std::rename(path_.c_str(), path.c_str()) != 0) refuse("rename");
  }
  void read(uint64_t offset, std::span<std::byte> out) const {
    while (!out.empty()) {
      const ssize_t count = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) fail<InvalidArgument>("file", "cannot read '{}': {}", escape(path_), count < 0 ? reason() : "it became shorter");
      out = out.subspan(static_cast<size_t>(count));
      offset += static_cast<uint64_t>(count);
    }
  }
  // The line that begins at `offset`, without its end; nothing when its end is missing.
  std::optional<std::string> line(uint64_t offset) const {
    std::string out;
    for (size_t end = out.npos; end == out.npos;) {
      const size_t held = out.size(), more = std::min<uint64_t>(512, size_ - offset - held);
      if (more == 0) return {};
      out.resize(held + more);
      read(offset + held, std::as_writable_bytes(std::span(out).subspan(held)));
      end = out.find('\n', held);
      if (end != out.npos) out.resize(end);
      if (end != out.npos) break;
    }
    return out;
  }
  const std::string& path() const { return path_; }

 private:
  static std::string reason() { return std::error_code(errno, std::generic_category()).message(); }
  [[noreturn]] void refuse(std::string_view verb) const {
    fail<InvalidArgument>("file", "cannot {} '{}': {}", verb, escape(path_), reason());
  }
  std::string path_;
  int descriptor_;
  uint64_t size_ = 0;
};

namespace {

int64_t bytes_of_row(const ArraySpec& array) { return array.row.elements() * byte_size(array.dtype); }

}  // namespace

Journal::Journal(Run run, bool resume)
    : run_(std::move(run)),
      npy_(format_of_output(run_.output) == DataFormat::npy && run_.arrays.size() == 1 && run_.arrays[0].dtype != DType::bf16) {
  run_.output = place_of_output(run_.output);
  Json header = run_.settings;
  for (const auto& array : run_.arrays) {
    row_bytes_ += bytes_of_row(array);
    header.set("output " + array.name, to_string(Type{array.dtype, array.row}));
  }
  if (!run_.named && row_bytes_ == 0) fail<InternalError>("resume", "rows of nothing cannot be counted");
  const std::string before_rows = npy_ ? npy_header(all_rows()) : "";
  rows_at_ = before_rows.size();
  lines_ = std::make_unique<File>(run_.output + ".resume", resume);
  rows_ = std::make_unique<File>(run_.output + ".resume.rows", resume);
  const std::optional<std::string> first = lines_->line(0);
  if (!first || rows_->size() < rows_at_) {
    lines_->cut(0);
    rows_->cut(0);
    rows_->append(std::as_bytes(std::span(before_rows)));
    const std::string text = header.dump() + "\n";
    lines_->append(std::as_bytes(std::span(text)));
    header_ = checked_at_ = text.size();
    return;
  }
  const Json before = Json::parse(*first);
  for (const auto& [key, value] : header.members())
    if (const Json* old = before.find(key); old == nullptr || !(*old == value))
      fail<InvalidArgument>("resume", "the interrupted run of '{}' had {} {}; now it is {}; hint: without --resume it begins anew",
                            escape(run_.output), key, old == nullptr ? "no" : old->dump(), value.dump());
  header_ = checked_at_ = first->size() + 1;
  const int64_t whole = row_bytes_ == 0 ? INT64_MAX : static_cast<int64_t>(rows_->size() - rows_at_) / row_bytes_;
  if (run_.named) {
    uint64_t at = header_;
    for (std::optional<std::string> line; items_ < whole && (line = lines_->line(at)); ++items_) at += line->size() + 1;
    lines_->cut(at);
  } else {
    items_ = whole;
  }
  rows_->cut(rows_at_ + static_cast<uint64_t>(items_ * row_bytes_));
  resumed_ = items_;
}

Journal::~Journal() = default;

Type Journal::all_rows() const { return {run_.arrays[0].dtype, with_rows(items_, run_.arrays[0].row)}; }

void Journal::check_next(const std::string& name) {
  const std::string line = lines_->line(checked_at_).value_or("");
  checked_at_ += line.size() + 1;
  const std::string before = from_journal(std::string_view(line).substr(0, line.find('\t')));
  if (before != name)
    fail<InvalidArgument>("resume", "item {} is '{}', and was '{}' in the interrupted run; hint: without --resume it begins anew", checked_,
                          escape(name), escape(before));
  ++checked_;
}

void Journal::append(const ItemRows& rows) {
  for (size_t k = 0; k < run_.arrays.size(); ++k) check_rows("resume", rows.outputs.at(k), run_.arrays[k]);
  if (run_.named) {
    std::string lines;
    for (size_t i = 0; i < rows.names.size(); ++i)
      lines += fmt::format("{}{}{}\n", journal_text(rows.names[i]), rows.errors[i].empty() ? "" : "\t", journal_text(rows.errors[i]));
    lines_->append(std::as_bytes(std::span(lines)));
  }
  std::vector<std::span<const std::byte>> arrays;
  for (const Tensor& output : rows.outputs) arrays.push_back(output.bytes());
  append(rows.outputs.at(0).shape()[0], arrays);
}

void Journal::append(int64_t count, std::span<const std::span<const std::byte>> arrays) {
  if (arrays.size() == 1) {
    rows_->append(arrays[0]);
  } else {
    std::vector<std::byte> bytes;
    bytes.reserve(static_cast<size_t>(count * row_bytes_));
    for (int64_t i = 0; i < count; ++i)
      for (size_t k = 0; k < arrays.size(); ++k) {
        const auto size = static_cast<size_t>(bytes_of_row(run_.arrays[k]));
        const auto row = arrays[k].subspan(static_cast<size_t>(i) * size, size);
        bytes.insert(bytes.end(), row.begin(), row.end());
      }
    rows_->append(bytes);
  }
  items_ += count;
}

void Journal::expect(int64_t items) { rows_->set_aside(rows_at_ + static_cast<uint64_t>(saturating_multiply(items, row_bytes_))); }

void Journal::replay(const std::function<void(const ItemRows& rows)>& take) {
  const int64_t some = std::clamp<int64_t>((4 << 20) / std::max<int64_t>(row_bytes_, 1), 1, run_.named ? 1024 : 1 << 20);
  uint64_t at = header_;
  for (int64_t begin = 0; begin < items_; begin += some) {
    const int64_t count = std::min(some, items_ - begin);
    std::vector<std::string> names, errors;
    std::vector<Tensor> outputs;
    for (const auto& array : run_.arrays) outputs.emplace_back(array.dtype, with_rows(count, array.row));
    std::vector<std::byte> bytes(static_cast<size_t>(count * row_bytes_));
    rows_->read(rows_at_ + static_cast<uint64_t>(begin * row_bytes_), bytes);
    const std::byte* from = bytes.data();
    for (int64_t i = 0; i < count; ++i) {
      if (run_.named) {
        const std::string line = lines_->line(at).value_or("");
        at += line.size() + 1;
        const size_t tab = line.find('\t');
        names.push_back(from_journal(std::string_view(line).substr(0, tab)));
        errors.push_back(tab == line.npos ? "" : from_journal(std::string_view(line).substr(tab + 1)));
      }
      for (size_t k = 0; k < run_.arrays.size(); ++k) {
        const auto size = static_cast<size_t>(bytes_of_row(run_.arrays[k]));
        std::copy_n(from, size, outputs[k].bytes().begin() + static_cast<std::ptrdiff_t>(i) * static_cast<std::ptrdiff_t>(size));
        from += size;
      }
    }
    take({names, errors, outputs});
  }
}

int64_t Journal::failed() {
  int64_t failed = 0;
  uint64_t at = header_;
  for (int64_t i = 0; run_.named && i < items_; ++i) {
    const std::string line = lines_->line(at).value_or("");
    at += line.size() + 1;
    failed += std::count(line.begin(), line.end(), '\t');  // one, before the reason
  }
  return failed;
}

void Journal::finish(const std::function<std::unique_ptr<ItemWriter>()>& open) {
  if (npy_) {
    const std::string header = npy_header(all_rows());
    rows_->write_at(0, std::as_bytes(std::span(header)));
    rows_->rename_to(run_.output);
  } else {
    auto writer = open();
    replay([&](const ItemRows& rows) { writer->write(rows); });
    writer->commit();
  }
  remove();
}

void Journal::remove() {
  ::unlink(lines_->path().c_str());
  ::unlink(rows_->path().c_str());
}

}  // namespace tutti
