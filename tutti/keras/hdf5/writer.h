// Writes HDF5 files of groups and contiguous datasets, what a model.weights.h5 is made of: superblock 2, compact groups. Places are
// computed before anything is written, so the file is a stream.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "tutti/base/tensor.h"

namespace tutti::keras::hdf5 {

class Writer {
 public:
  // "layers/dense/vars/0"; groups on the way come into being. Throws InvalidArgument for a path used before, and Unsupported for a dtype
  // that HDF5 has no type for.
  void dataset(const std::string& path, Tensor value);
  void group(const std::string& path);

  using Sink = std::function<void(std::span<const std::byte>)>;
  void write(const Sink& sink);

 private:
  struct Object {
    std::map<std::string, std::unique_ptr<Object>> children;  // of a group
    Tensor value;                                             // of a dataset
    uint64_t header = 0, data = 0;                            // where they stand in the file
    bool is_dataset() const { return !value.empty(); }
  };
  Object& find(const std::string& path);
  template <class F>
  static void visit(Object& object, F&& f);
  static std::string header_of(const Object& object);
  Object root_;
};

}  // namespace tutti::keras::hdf5
