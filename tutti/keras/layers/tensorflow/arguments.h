// TensorFlow functions called on Keras tensors, as legacy functional models hold them (TFOpLambda). The first argument has no name in the
// file, the others are named; plain values stand where tensors could, and tensors (of tf.shape) where plain values could.
#pragma once

#include "tutti/keras/layer.h"

namespace tutti::keras::tf {

struct Function {
  std::string_view name;  // without "tf."
  Outputs (*run)(Call&);
};
std::span<const Function> math_functions();    // math.cc
std::span<const Function> array_functions();   // arrays.cc
std::span<const Function> index_functions();   // indexing.cc
std::span<const Function> matrix_functions();  // linalg.cc
std::span<const Function> nn_functions();      // nn.cc
std::span<const Function> image_functions();   // images.cc
std::span<const Function> block_functions();   // blocks.cc

// The first argument when `name` is nullptr, else a named one; absent or null: throws InvalidModel, or nullptr.
const Argument& argument(Call& c, const char* name = nullptr);
const Argument* find(Call& c, const char* name);

// As a tensor. Plain numbers and lists get the dtype that they meet, else TensorFlow's own (int32, float32).
Value tensor(Call& c, const Argument& argument, std::optional<DType> dtype = {});
Value tensor(Call& c, const char* name = nullptr, std::optional<DType> dtype = {});
// Two arguments of one dtype, the first unnamed.
struct Pair {
  Value a, b;
};
Pair pair(Call& c, const char* second);
// The tensors of a list argument, of one dtype.
std::vector<Value> tensors(Call& c);

// Plain values; those made of tf.shape included.
Ints integers(Call& c, const Argument& argument);  // one integer is a list of one
int64_t integer(Call& c, const char* name, std::optional<int64_t> otherwise = {});
double number(Call& c, const char* name, std::optional<double> otherwise = {});
bool flag(Call& c, const char* name, bool otherwise);
std::string text(Call& c, const char* name, std::string_view otherwise);
DType dtype(Call& c, const char* name, std::optional<DType> otherwise = {});
// "axis": every axis when it is absent. Inside of the rank.
Ints axes(Call& c, Value x, const char* name = "axis");
int64_t axis(Call& c, int64_t rank, const char* name, std::optional<int64_t> otherwise = {});

// Of tf.nn and tf.image: the first argument as a batch of images; one entry a spatial axis, from one number, one a spatial axis or one an
// axis; "same" or "valid".
Value images(Call& c);
Ints spatial_sizes(Call& c, const char* name, int64_t spatial, bool channels_first);
std::string padding_word(Call& c, std::string_view otherwise = "VALID");

// The elements of an integer value that depends on nothing but constants, such as a shape.
std::optional<Ints> constant_integers(Value x);

}  // namespace tutti::keras::tf
