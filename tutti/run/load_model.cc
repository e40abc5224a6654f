#include "tutti/run/load_model.h"

#include "tutti/keras/model.h"

namespace tutti {

std::shared_ptr<const keras::AnyModel> load_model(const std::string& path) {
  return std::make_shared<const keras::Model>(keras::load(path));
}

}  // namespace tutti
