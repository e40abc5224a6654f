// Several named arrays in one file: a zip archive of .npy members, as numpy.savez and numpy.savez_compressed write it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/zip.h"
#include "tutti/base/zip_writer.h"
#include "tutti/data/npy.h"

namespace tutti {

class NpzReader {
 public:
  NpzReader(std::shared_ptr<const ByteSource> source, std::string file);
  explicit NpzReader(const std::string& path) : NpzReader(open_file(path), path) {}
  const std::vector<std::string>& names() const { return names_; }  // in the order of the archive, without ".npy"
  NpyReader open(std::string_view name) const;

 private:
  std::string file_;
  ZipReader zip_;
  std::vector<std::string> names_;
};

// Stored, not compressed. The first array goes straight to its place; the others wait in files beside it, because a zip member is written
// in one piece and rows of all arrays arrive together.
class NpzWriter {
 public:
  NpzWriter(const std::string& path, std::vector<ArraySpec> arrays);
  void write(size_t array, const Tensor& rows);  // [count, row...]
  void commit();

 private:
  struct Array {
    ArraySpec spec;
    int64_t count = 0;
    std::unique_ptr<OutputFile> waiting;  // null for the first
  };
  OutputFile file_;
  ZipWriter zip_{file_};
  std::vector<Array> arrays_;
};

}  // namespace tutti
