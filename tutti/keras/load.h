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
};

}  // namespace tutti::keras
