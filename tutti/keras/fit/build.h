// Models made without a file: layers in words, with fresh weights.
#pragma once

#include "tutti/keras/model.h"

namespace tutti::keras {

constexpr const char* built_version = "3.15.1";  // of Keras: what files of such models say

// "dense 64 relu; dropout 0.2; dense 10 softmax" on samples of these extents, a Sequential model of Keras's layers with its default
// initializers, drawn by the seed. Throws InvalidArgument naming the word that is wrong.
//   dense UNITS [ACTIVATION] · conv1d | conv2d FILTERS SIZE [ACTIVATION] · max_pool | average_pool SIZE · global_max_pool |
//   global_average_pool flatten · lstm | gru | simple_rnn UNITS [sequences] · embedding WORDS SIZE · dropout RATE · batch_normalization ·
//   layer_normalization activation NAME
Model build(std::string_view layers, const Ints& sample, uint64_t seed);

// A Sequential model in C++, layer by layer. `add` takes any layer of Keras by its class with the arguments of its constructor; the others
// are short for the usual ones.
//   Json net = Sequential({32}).dense(64, "relu").dropout(0.2).dense(10, "softmax").config();
class Sequential {
 public:
  explicit Sequential(Ints sample, DType dtype = DType::f32);  // extents of one sample
  Sequential& add(const std::string& class_name, const JsonMembers& arguments = {});
  Sequential& dense(int64_t units, const std::string& activation = "linear");
  Sequential& conv1d(int64_t filters, int64_t size, const std::string& activation = "linear");
  Sequential& conv2d(int64_t filters, int64_t size, const std::string& activation = "linear");
  Sequential& max_pool(int64_t size);  // along all axes of the input but its channels
  Sequential& average_pool(int64_t size);
  Sequential& flatten() { return add("Flatten"); }
  Sequential& lstm(int64_t units, bool sequences = false);
  Sequential& gru(int64_t units, bool sequences = false);
  Sequential& embedding(int64_t words, int64_t size);
  Sequential& dropout(double rate);
  Sequential& batch_normalization() { return add("BatchNormalization"); }
  Json config() const;  // the serialized model, as build() takes it

 private:
  Ints sample_;
  DType dtype_;
  Json layers_ = Json::list();
};

// A serialized Sequential model with fresh weights. Throws InvalidArgument for what is no such model.
Model build(const Json& config, uint64_t seed);

// Gives variables without a value that of Keras's default initializer for their kind.
void initialize(Model& model, uint64_t seed);

}  // namespace tutti::keras
