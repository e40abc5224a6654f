// Layers that are refused by name: their meaning is code or strings, not config and weights. The note is the error's hint.
#include "tutti/keras/layers/families.h"

namespace tutti::keras {

namespace {

constexpr LayerRow refused_layer(std::string_view name, std::string_view note) { return {name, nullptr, Masking::drop, "", note}; }

}  // namespace

Rows refused_layers() {
  constexpr std::string_view python_code =
      "it runs Python code, which is not in the file; hint: write it with Keras layers or keras.ops operations";
  constexpr std::string_view foreign =
      "it wraps a model of another framework, which is not in the file; hint: rebuild it from Keras layers and copy its weights";
  constexpr std::string_view strings = "it works on strings; hint: split the model after it and feed the integers or vectors that it gives";
  constexpr std::string_view hashes = "it hashes with TensorFlow's own function; hint: split the model after it and feed its indices";
  constexpr std::string_view abstract = "it is a base class and computes nothing by itself; hint: save a model of concrete layers";
  static const LayerRow rows[] = {
      refused_layer("Lambda", python_code),         refused_layer("TFSMLayer", foreign),
      refused_layer("JaxLayer", foreign),           refused_layer("FlaxLayer", foreign),
      refused_layer("TorchModuleWrapper", foreign), refused_layer("StringLookup", strings),
      refused_layer("TextVectorization", strings),  refused_layer("Hashing", hashes),
      refused_layer("HashedCrossing", hashes),      refused_layer("Layer", abstract),
      refused_layer("Wrapper", abstract),
  };
  return rows;
}

}  // namespace tutti::keras
