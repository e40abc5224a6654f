#include "tutti/run/load_model.h"

namespace tutti {

std::shared_ptr<const keras::AnyModel> load_model(const std::string& path, const LoadProgress& progress) {
  if (is_manifest(path)) return load_manifest(path, progress);
  return std::make_shared<const keras::Model>(keras::load(path));
}

}  // namespace tutti
