// Models without files, for tests: one input, one output "y"; lower() is the test's own.
#pragma once

#include "tutti/keras/any_model.h"

namespace tutti {

class MadeModel : public keras::AnyModel {
 public:
  explicit MadeModel(keras::ModelInput input) : inputs_{std::move(input)} {}
  std::string name() const override { return "made"; }
  const std::vector<keras::ModelInput>& inputs() const override { return inputs_; }
  const std::vector<std::string>& output_names() const override { return outputs_; }
  const std::vector<std::string>& problems() const override { return problems_; }
  int64_t probe_extent() const override { return 1; }

 private:
  std::vector<keras::ModelInput> inputs_;
  std::vector<std::string> outputs_{"y"}, problems_;
};

}  // namespace tutti
