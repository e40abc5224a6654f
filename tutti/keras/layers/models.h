// What Sequential and Functional share.
#pragma once

#include <map>

#include "tutti/keras/lower.h"
#include "tutti/keras/model_inputs.h"

namespace tutti::keras {

// Gives each layer of a list its key in Keras 3 files: the list's attribute and the class name in snake case, numbered when repeated.
class LayerKeys {
 public:
  explicit LayerKeys(std::string attribute = "layers") : attribute_(std::move(attribute)) {}
  std::string next(const Json& layer);

 private:
  std::string attribute_;
  std::map<std::string, int> used_;
};

// What Keras does to a model's inputs: the declared dtype, and an axis of 1 added or removed at the end.
Signal adjust_input(const Config& config, Signal given, const ModelInput& expected);

// Inside a catch block: puts a problem on the list when one is kept, else lets the error go on.
void report_problem(Lowering& lowering, const Error& error);

// Stands for a value that could not be made, so that the layers behind it are checked too.
Value placeholder(Lowering& lowering, const Json& shape, DType dtype);

Outputs functional(Call& c);  // functional.cc

}  // namespace tutti::keras
