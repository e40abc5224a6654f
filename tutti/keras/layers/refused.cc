// Layers that are refused by name: their meaning is code or strings, not config and weights. The note is the error's hint.
#include "tutti/keras/layers/families.h"

namespace tutti::keras {

Rows refused_layers() {
  constexpr std::string_view code =
      "it runs Python code, which is not in the file; hint: write it with Keras layers or keras.ops operations";
  constexpr std::string_view foreign =
      "it wraps a model of another framework, which is not in the file; hint: rebuild it from Keras layers and copy its weights";
  constexpr std::string_view strings = "it works on strings; hint: split the model after it and feed the integers or vectors that it gives";
  constexpr std::string_view hashes = "it hashes with TensorFlow's own function; hint: split the model after it and feed its indices";
  constexpr std::string_view abstract = "it is a base class and computes nothing by itself; hint: save a model of concrete layers";
  static const LayerRow rows[] = {
      refused("Lambda", code),
      refused("TFSMLayer", foreign),
      refused("JaxLayer", foreign),
      refused("FlaxLayer", foreign),
      refused("TorchModuleWrapper", foreign),
      refused("StringLookup", strings),
      refused("TextVectorization", strings),
      refused("Hashing", hashes),
      refused("HashedCrossing", hashes),
      refused("Layer", abstract),
      refused("Wrapper", abstract),
  };
  return rows;
}

}  // namespace tutti::keras
