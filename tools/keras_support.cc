// Prints docs/keras_support.md: build/keras_support > docs/keras_support.md
#include <fmt/core.h>

#include "tutti/keras/support.h"

int main() { fmt::print("{}", tutti::keras::support_document()); }
