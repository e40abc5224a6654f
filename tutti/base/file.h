// Bytes from outside: random reads with checked bounds, and outputs that appear whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

// A readable range of bytes: a file, a part of one (an uncompressed archive member), or memory. Const reads are safe from many threads.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;
  // Reads exactly out.size() bytes at offset; throws InvalidArgument when they are not all there (the file shrank, a bad offset).
  virtual void read(uint64_t offset, std::span<std::byte> out) const = 0;
};

// pread, never mmap: a file that shrinks under us is an error, not a SIGBUS. Regular files only; throws InvalidArgument naming the path.
std::shared_ptr<const ByteSource> open_file(const std::string& path);
std::shared_ptr<const ByteSource> memory_source(std::vector<std::byte> bytes);
std::shared_ptr<const ByteSource> memory_source(std::unique_ptr<std::byte[]> bytes, uint64_t size);
std::shared_ptr<const ByteSource> part_of(std::shared_ptr<const ByteSource> whole, uint64_t offset, uint64_t size);

// Reads everything; throws when larger than `limit`.
std::vector<std::byte> read_all(const ByteSource& source, uint64_t limit);

// An output without a name, or beside its final name where the file system has none without; renamed by commit(), gone if never committed.
// Writes are buffered. Throws InvalidArgument with path and errno text.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  void write_at(uint64_t offset, std::span<const std::byte> bytes);  // to fill in a header once the size is known
  void read_at(uint64_t offset, std::span<std::byte> out);           // what was written
  uint64_t size() const { return size_; }
  // Flush and rename. Durable: it is there even if the machine stops the moment after, which costs the time of the disk.
  void commit(bool durable = true);

 private:
  void flush();
  void put(uint64_t offset, std::span<const std::byte> bytes);
  std::string path_, temporary_;
  int descriptor_ = -1;
  bool is_named_ = false;  // temporary_ is there
  uint64_t size_ = 0;
  std::vector<std::byte> buffer_;  // the last bytes of size_, not yet written
};

// What does not fit in memory, for as long as somebody reads it: a file without a name in `folder`, which no crash leaves behind.
class ScratchFile {
 public:
  explicit ScratchFile(const std::string& folder);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  void write(std::span<const std::byte> bytes);
  std::shared_ptr<const ByteSource> finish();  // all that was written; nothing is written after

 private:
  std::string folder_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

// Where an output of this name is written: a link stays, its target is replaced. Throws InvalidArgument for what is not a regular file.
std::string place_of_output(const std::string& path);

// Ends the process at once, without destructors, from any thread (not from a signal handler): outputs not yet committed are removed, and
// none is committed or begun after.
[[noreturn]] void exit_discarding_outputs(int code);

// All that was written to the file system of a folder is on its disk afterwards, as far as the system can tell.
void make_durable(const std::string& folder);

}  // namespace tutti
