// Opens what a verb is given as MODEL: a .keras or .h5 file, or an ensemble's manifest.
#pragma once

#include <memory>
#include <string>

#include "tutti/keras/model.h"
#include "tutti/run/manifest.h"

namespace tutti {

std::shared_ptr<const keras::AnyModel> load_model(const std::string& path, const LoadProgress& progress = {});

}  // namespace tutti
