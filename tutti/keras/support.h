// docs/keras_support.md, written from the layer table so that it cannot drift from the code.
#pragma once

#include <string>

namespace tutti::keras {

// Markdown: per layer the options whose results are Keras's, and what is refused.
std::string support_document();

}  // namespace tutti::keras
