// What there is to say of a model without running it: its layers in the file's order with their shapes, parameters and costs.
#pragma once

#include <string>
#include <vector>

#include "tutti/keras/model.h"

namespace tutti::keras {

// A value whose extents may depend on the data: -1 for those.
struct OpenType {
  DType dtype = DType::f32;
  Ints shape;
};

struct LayerSummary {
  std::string name, class_name;
  int depth = 0;                          // 0: a layer of the model itself; more: of a nested model or wrapper
  std::vector<OpenType> outputs;          // of its first call; none when the layer or one before it is not supported
  int64_t parameters = 0, trainable = 0;  // elements, those of nested layers included
  int64_t flops = 0;                      // one sample, all calls
  int calls = 0;
};

struct Summary {
  std::vector<LayerSummary> layers;
  std::vector<OpenType> outputs;  // of the model; none when it is not supported
  int64_t parameters = 0, trainable = 0, parameter_bytes = 0;
  int64_t flops = 0, bytes = 0;  // one sample; bytes read and written if nothing were cached
  bool open_extents = false;     // costs are for Model::probe_extent() where only the data know
};

Summary summarize(const Model& model);
// What a model of any kind gives, in the order of its names; none when it is not supported.
std::vector<OpenType> output_types(const AnyModel& model);

}  // namespace tutti::keras
