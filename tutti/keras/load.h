// Fills a model from an open file; load() in model.h chooses the reader by the file's first bytes.
#pragma once

#include "tutti/base/file.h"
#include "tutti/keras/hdf5.h"
#include "tutti/keras/model.h"

namespace tutti::keras {

class ModelReader {
 public:
  static Model read_archive(std::shared_ptr<const ByteSource> file);  // .keras
  static Model read_hdf5(std::shared_ptr<const ByteSource> file);     // .h5, .hdf5

  // Sets what the config says and declares variables.
  static Model from_config(Json config, Json compile_config, std::string keras_version, FileFacts file = {});

 private:
  static void bind_by_path(Model& model, const Hdf5File& weights);
  static void bind_by_order(Model& model, const Hdf5File& weights);
};

// The names in an attribute that Keras splits in chunks (name0, name1, ...) when it is long.
std::vector<std::string> chunked_strings(const Hdf5File& file, const std::string& object, const std::string& attribute);

}  // namespace tutti::keras
