// Arrays in NumPy's .npy format: read by ranges of rows, so that a file may be larger than memory, and written row by row.
#pragma once

#include "tutti/data/npy_header.h"
#include "tutti/data/rows.h"

namespace tutti {

class NpyReader {
 public:
  // `file` names the source in messages.
  NpyReader(std::shared_ptr<const ByteSource> source, std::string file);
  explicit NpyReader(const std::string& path) : NpyReader(open_file(path), path) {}

  const Type& type() const { return header_.type; }  // of the whole array
  const std::string& file() const { return file_; }  // for messages
  // Rows begin, ..., begin + count - 1 of the first axis, in native byte order, row-major. Throws when they are not all there.
  Tensor rows(int64_t begin, int64_t count) const;
  void read(int64_t begin, int64_t count, std::span<std::byte> out) const;  // the same into memory of exactly their size
  Tensor all() const;

 private:
  void check_rows_asked(int64_t begin, int64_t count) const;
  void read_fortran(int64_t begin, int64_t count, std::span<std::byte> out) const;
  std::shared_ptr<const ByteSource> source_;
  std::string file_;
  NpyHeader header_;
};

// Writes what numpy.save writes. The number of rows is known at commit() only; before it there is no file under the final name.
class NpyWriter {
 public:
  NpyWriter(std::string path, ArraySpec array);
  void write(const Tensor& rows);  // [count, row...]
  void commit();

 private:
  std::string header() const;
  ArraySpec array_;
  int64_t count_ = 0;
  OutputFile file_;
};

Tensor read_npy(const std::string& path);
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace tutti
