// A folder of images as samples with classes: the folders in it are the classes, by name.
#pragma once

#include "tutti/data/image_sample.h"
#include "tutti/data/row_source.h"

namespace tutti {

struct ImageFolder {
  std::vector<std::string> files;    // by class, then by path
  std::vector<std::string> classes;  // their folders, empty ones as well, as in image_dataset_from_directory
  std::vector<int32_t> labels;       // of each file
};

// `known`: the classes there are, in their order; empty: the folders found, sorted, without hidden ones. Throws InvalidArgument for images
// in a folder of another name, with the nearest, and where some images lie in folders and others do not.
ImageFolder list_images_by_class(const std::string& folder, const std::vector<std::string>& known);
// All of them, by path.
std::vector<std::string> list_images(const std::string& folder);

// `keeps`: what was decoded once stays in memory.
std::shared_ptr<const RowSource> image_rows(std::vector<std::string> files, ImageSampler sampler, DType dtype, bool keeps);

}  // namespace tutti
