// Weights of many models, held once: equal ones are shared, and those of models alike lie side by side in one tensor, so that stacking
// the models copies nothing.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tutti/keras/model.h"

namespace tutti {

class WeightPool {
 public:
  // Room is set aside for this many models; no memory is touched before they come.
  explicit WeightPool(size_t most) : most_(most) {}
  // Takes over the weights of a model just loaded: its variables get values of the pool.
  void add(const keras::Model& model);

 private:
  // Variable number i of models alike.
  struct Row {
    Tensor all;  // [models, ...] once two of them differ
    size_t used = 0;
  };
  struct Kind {
    std::vector<std::vector<keras::Variable*>> models;  // their variables
    std::vector<Row> rows;
  };
  void place(Kind& kind, size_t row);
  size_t most_, added_ = 0;
  int64_t reserved_ = 0;               // bytes
  int64_t moved_ = 0;                  // bytes that models gave up since their memory was given back
  std::map<std::string, Kind> kinds_;  // by the types of their variables
};

}  // namespace tutti
