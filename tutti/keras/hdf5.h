// Reads the part of HDF5 that Keras and h5py write, and nothing that could reach outside the file. Our own reader, because the HDF5
// library crashes on hostile files. Names are paths from the root: "model_weights/dense/kernel:0"; the root itself is "".
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/file.h"
#include "tutti/base/tensor.h"

namespace tutti::keras {

// Errors. Corrupt: InvalidModel("hdf5", ...). Well-formed but outside of what is read (soft and external links, a group reached by two
// paths, external storage, virtual data sets, unknown filters, references, compound and other exotic types): Unsupported("hdf5", ...).
// Both name the object. Work and memory are bounded over the life of one Hdf5File: everything it hands out together stays below
// max(192 MiB, 20 times the file), so data sets that share their bytes cannot multiply them. Calls may come from many threads, and wait
// for each other.
class Hdf5File {
 public:
  // Checks the superblock and the root group; everything else is read, and checked, when asked for.
  explicit Hdf5File(std::shared_ptr<const ByteSource> source);
  ~Hdf5File();
  Hdf5File(Hdf5File&&) noexcept;
  Hdf5File& operator=(Hdf5File&&) noexcept;

  enum class Kind { absent, group, dataset, other };  // other: a named type
  Kind kind(std::string_view path) const;
  std::vector<std::string> children(std::string_view group) const;  // names, in creation order if tracked, else sorted as h5py lists them

  // A numeric (or boolean) data set; Keras's bfloat16 (two opaque bytes and an attribute "dtype") is bf16. An empty (null) data set has
  // shape [0]. type() reads no data; read() allocates once, after the declared size is checked against the file.
  Type type(std::string_view dataset) const;
  Tensor read(std::string_view dataset) const;
  // A data set of strings, fixed or variable length; a scalar gives one element.
  bool holds_strings(std::string_view dataset) const;
  std::vector<std::string> read_strings(std::string_view dataset) const;

  // Attributes of a group or data set, in creation order if tracked, else sorted.
  std::vector<std::string> attribute_names(std::string_view object) const;
  bool has_attribute(std::string_view object, std::string_view name) const;
  std::vector<std::string> strings(std::string_view object, std::string_view attribute) const;
  Tensor numbers(std::string_view object, std::string_view attribute) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tutti::keras
