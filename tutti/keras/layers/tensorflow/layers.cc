// Legacy layers that call a TensorFlow function, TFOpLambda and SlicingOpLambda, and those that stand for a loss or metric of it.
#include "tutti/base/error.h"
#include "tutti/keras/layers/families.h"
#include "tutti/keras/layers/tensorflow/arguments.h"
#include "tutti/keras/lower.h"

namespace tutti::keras {

namespace {

std::vector<tf::Function> all_functions() {
  std::vector<tf::Function> out;
  for (auto functions : {tf::math_functions(), tf::array_functions(), tf::index_functions(), tf::matrix_functions(), tf::nn_functions(),
                         tf::image_functions(), tf::block_functions()})
    out.insert(out.end(), functions.begin(), functions.end());
  return out;
}

Outputs call_function(Call& c) {
  static const std::vector<tf::Function> functions = all_functions();
  std::string given = c.config.text("function"), name = given;
  if (name.starts_with("compat.v1.")) name = name.substr(10);
  // What changes no result: a name, promises about the values, what the shapes tell anyway.
  for (const char* hint : {"name", "num", "sorted", "stable", "conjugate", "validate_indices", "optimize", "a_is_sparse", "b_is_sparse",
                           "dtype_hint", "message"})
    tf::find(c, hint);
  std::vector<std::string> known;
  for (const auto& function : functions) {
    if (function.name == name) return function.run(c);
    known.emplace_back(function.name);
  }
  if (name.starts_with("random.") || name == "nn.dropout")
    c.config.unsupported(
        "TensorFlow's tf.{} draws other numbers in each run; hint: save a model that ends before it, as a VAE's at the mean", given);
  c.config.unsupported("TensorFlow's tf.{} is not read{}; hint: rebuild the model with Keras layers in its place", given,
                       did_you_mean(name, known));
}

// Of model.add_loss() and add_metric(): what predicts is not changed.
Outputs added_for_training(Call& c) {
  if (c.lowering.fit != nullptr)
    c.config.unsupported("training with what model.add_loss() or add_metric() added is not done; hint: give the loss to the outputs");
  return c.inputs();
}

constexpr std::string_view no_code = "its meaning is TensorFlow code; rebuild the model with Keras layers in its place";

}  // namespace

Rows tensorflow_layers() {
  static const LayerRow rows[] = {
      {"TFOpLambda", call_function, Masking::drop, "function",
       "legacy files: the common functions of tf, tf.math, tf.nn, tf.linalg and tf.image"},
      {"SlicingOpLambda", call_function, Masking::drop, "function", "legacy files: indexing of tensors"},
      {"AddLoss", added_for_training, Masking::pass, "unconditional", "legacy files; training: refused"},
      {"AddMetric", added_for_training, Masking::pass, "aggregation metric_name", "legacy files; training: refused"},
      refused("TensorFlowOpLayer", no_code),
      refused("ClassMethod", no_code),
      refused("InstanceMethod", no_code),
      refused("InstanceProperty", no_code),
  };
  return rows;
}

}  // namespace tutti::keras
