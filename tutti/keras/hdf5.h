// Reads the part of HDF5 that Keras and h5py write, and nothing that could reach outside the file. Our own reader, because the HDF5
// library crashes on hostile files. Names are paths from the root: "model_weights/dense/kernel:0".
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/file.h"
#include "tutti/base/tensor.h"

namespace tutti::keras {

class Hdf5File {
 public:
  // Checks the superblock and the root group; everything else is read, and checked, when asked for.
  // Corrupt: InvalidModel("hdf5", ...). Well-formed but outside of what is read (links out of the file, external storage, virtual
  // data sets, unknown filters, exotic types): Unsupported("hdf5", ...) naming the object.
  explicit Hdf5File(std::shared_ptr<const ByteSource> source);
  ~Hdf5File();

  enum class Kind { absent, group, dataset };
  Kind kind(std::string_view path) const;
  std::vector<std::string> children(std::string_view group) const;  // names, in creation order if tracked, else sorted as h5py lists them

  // A numeric (or boolean) data set. type() reads no data; read() allocates once, after the declared size is checked against the file.
  Type type(std::string_view dataset) const;
  Tensor read(std::string_view dataset) const;
  // A string data set or string attribute, fixed or variable length; a scalar gives one element.
  bool has_attribute(std::string_view object, std::string_view name) const;
  std::vector<std::string> attribute_names(std::string_view object) const;
  std::vector<std::string> strings(std::string_view object, std::string_view attribute) const;
  Tensor numbers(std::string_view object, std::string_view attribute) const;
  std::vector<std::string> read_strings(std::string_view dataset) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tutti::keras
