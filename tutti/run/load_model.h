// Opens what a verb is given as MODEL: a .keras or .h5 file.
#pragma once

#include <memory>
#include <string>

#include "tutti/keras/any_model.h"

namespace tutti {

std::shared_ptr<const keras::AnyModel> load_model(const std::string& path);

}  // namespace tutti
