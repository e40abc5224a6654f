// Configs of Keras 2 and before, in the words of today.
#pragma once

#include "tutti/base/json.h"

namespace tutti::keras {

// Sequential models that are bare lists of layers get a config, and classes their present names, at any depth.
Json modernize(const Json& config);

}  // namespace tutti::keras
