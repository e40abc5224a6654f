#include "tutti/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>
#include <utility>

#include "tutti/base/descriptors.h"
#include "tutti/base/error.h"

namespace tutti {

namespace {

// Text of the current errno; strerror is not safe between threads.
std::string reason() { return std::error_code(errno, std::generic_category()).message(); }

void check_range(uint64_t offset, uint64_t count, uint64_t size, std::string_view what) {
  if (offset > size || count > size - offset)
    fail<InvalidArgument>("file", "'{}' ends too early: {} bytes at offset {} are outside of its {} bytes", escape(what), count, offset,
                          size);
}

void read_exactly(int descriptor, uint64_t offset, std::span<std::byte> out, std::string_view path) {
  while (!out.empty()) {
    ssize_t count = ::pread(descriptor, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail<InvalidArgument>("file", "cannot read '{}': {}", escape(path), reason());
    if (count == 0) fail<InvalidArgument>("file", "'{}' became shorter while it was read", escape(path));
    out = out.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
}

void write_exactly(int descriptor, uint64_t offset, std::span<const std::byte> bytes, std::string_view path) {
  while (!bytes.empty()) {
    ssize_t count = ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail<InvalidArgument>("file", "cannot write '{}': {}", escape(path), reason());
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
}

class FileSource : public ByteSource {
 public:
  FileSource(std::string path, int descriptor, uint64_t size) : path_(std::move(path)), descriptor_(descriptor), size_(size) {}
  ~FileSource() override { ::close(descriptor_); }
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  uint64_t size() const override { return size_; }
  void read(uint64_t offset, std::span<std::byte> out) const override {
    check_range(offset, out.size(), size_, path_);
    read_exactly(descriptor_, offset, out, path_);
  }

 private:
  std::string path_;
  int descriptor_;
  uint64_t size_;
};

class MemorySource : public ByteSource {
 public:
  MemorySource(std::shared_ptr<const void> owner, std::span<const std::byte> bytes) : owner_(std::move(owner)), bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  void read(uint64_t offset, std::span<std::byte> out) const override {
    check_range(offset, out.size(), bytes_.size(), "memory");
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
};

class PartSource : public ByteSource {
 public:
  PartSource(std::shared_ptr<const ByteSource> whole, uint64_t offset, uint64_t size)
      : whole_(std::move(whole)), offset_(offset), size_(size) {}
  uint64_t size() const override { return size_; }
  void read(uint64_t offset, std::span<std::byte> out) const override {
    check_range(offset, out.size(), size_, "part of a file");
    whole_->read(offset_ + offset, out);
  }

 private:
  std::shared_ptr<const ByteSource> whole_;
  uint64_t offset_, size_;
};

}  // namespace

std::shared_ptr<const ByteSource> open_file(const std::string& path) {
  // Non-blocking: opening a named pipe must not wait for its writer.
  constexpr int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  if (path.find('\0') != path.npos)  // the system would open what stands before it
    fail<InvalidArgument>("file", "cannot open '{}': a path has no zero byte; hint: paths stand on lines of their own", escape(path));
  int descriptor = ::open(path.c_str(), flags);
  if (descriptor < 0 && errno == EMFILE && ask_for_descriptors()) descriptor = ::open(path.c_str(), flags);  // a thousand members, or jobs
  if (descriptor < 0) fail<InvalidArgument>("file", "cannot open '{}': {}", escape(path), reason());
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    fail<InvalidArgument>("file", "cannot open '{}': {}", escape(path),
                          S_ISDIR(status.st_mode) ? "it is a directory" : "not a regular file");
  }
  return std::make_shared<FileSource>(path, descriptor, static_cast<uint64_t>(status.st_size));
}

std::shared_ptr<const ByteSource> memory_source(std::vector<std::byte> bytes) {
  auto owner = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  return std::make_shared<MemorySource>(owner, *owner);
}

std::shared_ptr<const ByteSource> memory_source(std::unique_ptr<std::byte[]> bytes, uint64_t size) {
  std::span<const std::byte> view(bytes.get(), size);
  return std::make_shared<MemorySource>(std::shared_ptr<std::byte[]>(std::move(bytes)), view);
}

std::shared_ptr<const ByteSource> part_of(std::shared_ptr<const ByteSource> whole, uint64_t offset, uint64_t size) {
  check_range(offset, size, whole->size(), "part of a file");
  return std::make_shared<PartSource>(std::move(whole), offset, size);
}

std::vector<std::byte> read_all(const ByteSource& source, uint64_t limit) {
  if (source.size() > limit) fail<InvalidArgument>("file", "at most {} bytes are read here; got {}", limit, source.size());
  std::vector<std::byte> out(source.size());
  source.read(0, out);
  return out;
}

namespace {

constexpr size_t buffer_bytes = 64 << 10;

// Outputs begun and not committed. Never destroyed: a thread may ask for the end of the process while main returns.
struct Unfinished {
  std::mutex mutex;
  std::set<std::string> paths;
};
Unfinished& unfinished() {
  static Unfinished& all = *std::make_unique<Unfinished>().release();
  return all;
}

std::string place_of_descriptor(int descriptor) { return fmt::format("/proc/self/fd/{}", descriptor); }

// A file that gets its name when it is whole, so that even a process that is killed leaves nothing. Negative where that does not work.
int open_without_name(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  if (descriptor < 0 || ::access(place_of_descriptor(descriptor).c_str(), F_OK) == 0) return descriptor;
  ::close(descriptor);
  return -1;
}

// For what will be renamed to `path`; somebody else may still be faster to take it.
std::string free_name_beside(const std::string& path) {
  static unsigned count = 0;
  while (true) {
    std::string name = fmt::format("{}.{}-{}.part", path, ::getpid(), count++);
    struct stat ignored {};
    if (::lstat(name.c_str(), &ignored) == 0) continue;  // of a process that was killed and had this number
    if (errno == ENOENT) return name;
    fail<InvalidArgument>("file", "cannot write '{}': {}", escape(path), reason());
  }
}

// Gives a file its name; where that is not allowed, a copy of it, which takes its place. Throws, and leaves it as it was.
int with_name(int descriptor, const std::string& path, uint64_t size) {
  if (::linkat(AT_FDCWD, place_of_descriptor(descriptor).c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0) return descriptor;
  const int copy = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (copy < 0) fail<InvalidArgument>("file", "cannot write '{}': {}", escape(path), reason());
  try {
    std::vector<std::byte> some(std::min<uint64_t>(size, 1 << 20));
    for (uint64_t offset = 0; offset < size; offset += some.size()) {
      some.resize(std::min<uint64_t>(some.size(), size - offset));
      read_exactly(descriptor, offset, some, path);
      write_exactly(copy, offset, some, path);
    }
    if (::fsync(copy) != 0) fail<InvalidArgument>("file", "cannot write '{}': {}", escape(path), reason());
  } catch (...) {
    ::close(copy);
    ::unlink(path.c_str());
    throw;
  }
  ::close(descriptor);
  return copy;
}

}  // namespace

void exit_discarding_outputs(int code) {
  std::scoped_lock lock(unfinished().mutex);
  for (const auto& path : unfinished().paths) ::unlink(path.c_str());
  ::_exit(code);
}

std::string place_of_output(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored, broken;
  fs::path place = path;
  // Link by link, as the last may lead to what is not there yet: fs::canonical() gives up on that one.
  for (int links = 0; !broken && fs::is_symlink(place, ignored); ++links) {
    constexpr int most_links = 40;  // as the system follows
    if (links == most_links) broken = std::make_error_code(std::errc::too_many_symbolic_link_levels);
    place = place.parent_path() / fs::read_symlink(place, ignored);
  }
  if (broken) fail<InvalidArgument>("file", "cannot write '{}': {}", escape(path), broken.message());
  auto status = fs::status(place, ignored);
  if (fs::exists(status) && !fs::is_regular_file(status))
    fail<InvalidArgument>("file", "cannot write '{}': not a regular file", escape(place.string()));
  return place.string();
}

OutputFile::OutputFile(const std::string& path) : path_(place_of_output(path)) {
  std::scoped_lock lock(unfinished().mutex);
  temporary_ = free_name_beside(path_);
  descriptor_ = open_without_name(std::filesystem::path(path_).parent_path());
  if (descriptor_ >= 0) return;
  while ((descriptor_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) < 0) {
    if (errno != EEXIST) fail<InvalidArgument>("file", "cannot write '{}': {}", escape(path_), reason());
    temporary_ = free_name_beside(path_);
  }
  is_named_ = true;
  unfinished().paths.insert(temporary_);
}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  if (!is_named_) return;
  std::scoped_lock lock(unfinished().mutex);
  ::unlink(temporary_.c_str());
  unfinished().paths.erase(temporary_);
}

void OutputFile::write(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() > buffer_bytes) flush();
  if (bytes.size() > buffer_bytes)
    put(size_, bytes);
  else
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  size_ += bytes.size();
}

void OutputFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void OutputFile::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  check_range(offset, bytes.size(), size_, path_);
  flush();
  put(offset, bytes);
}

void OutputFile::read_at(uint64_t offset, std::span<std::byte> out) {
  check_range(offset, out.size(), size_, path_);
  flush();
  read_exactly(descriptor_, offset, out, temporary_);
}

void OutputFile::commit(bool durable) {
  flush();
  if (durable && ::fsync(descriptor_) != 0) fail<InvalidArgument>("file", "cannot write '{}': {}", escape(path_), reason());
  std::scoped_lock lock(unfinished().mutex);
  if (!is_named_) {
    descriptor_ = with_name(descriptor_, temporary_, size_);
    is_named_ = true;
    unfinished().paths.insert(temporary_);
  }
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail<InvalidArgument>("file", "cannot write '{}': {}", escape(path_), reason());
  unfinished().paths.erase(temporary_);
  ::close(descriptor_);
  descriptor_ = -1;
}

void OutputFile::flush() {
  if (!buffer_.empty()) put(size_ - buffer_.size(), buffer_);
  buffer_.clear();
}

void OutputFile::put(uint64_t offset, std::span<const std::byte> bytes) {
  if (descriptor_ < 0) fail<InternalError>("file", "'{}' is written after it was committed", escape(path_));
  write_exactly(descriptor_, offset, bytes, path_);
}

ScratchFile::ScratchFile(const std::string& folder) : folder_(folder) {
  descriptor_ = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor_ >= 0) return;
  // Some file systems have none without a name: it loses its name at once.
  std::string path = folder + "/.tutti_XXXXXX";
  descriptor_ = ::mkostemp(path.data(), O_CLOEXEC);
  if (descriptor_ < 0) fail<InvalidArgument>("file", "cannot make a temporary file in '{}': {}", escape(folder), reason());
  ::unlink(path.c_str());
}

ScratchFile::~ScratchFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void ScratchFile::write(std::span<const std::byte> bytes) {
  write_exactly(descriptor_, size_, bytes, "a temporary file in " + folder_);
  size_ += bytes.size();
}

std::shared_ptr<const ByteSource> ScratchFile::finish() {
  return std::make_shared<FileSource>("a temporary file in " + folder_, std::exchange(descriptor_, -1), size_);
}

void make_durable(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::syncfs(descriptor);
  ::close(descriptor);
}

}  // namespace tutti
