#include <fmt/format.h>

#include <algorithm>

#include "tutti/data/rows.h"
#include "tutti/run/explain.h"
#include "tutti/serve/models.h"
#include "tutti/serve/programs.h"

namespace tutti::serve {

namespace {

std::vector<Type> output_types_at(const keras::AnyModel& model, int64_t batch, int64_t extent) {
  const Graph graph = model.lower({batch, shapes_with(model, batch, extent), nullptr});
  std::vector<Type> types;
  for (const auto& output : graph.outputs()) types.push_back(graph.type(output.value));
  return types;
}

// What changes with the batch or an open extent of the inputs is open.
std::vector<TensorInfo> output_infos(const keras::AnyModel& model) {
  const int64_t extent = model.probe_extent();
  const auto types = output_types_at(model, 2, extent);
  std::vector<TensorInfo> infos;
  for (size_t i = 0; i < types.size(); ++i) infos.push_back({model.output_names()[i], types[i].dtype, types[i].shape.extents()});
  const auto open_where_unlike = [&](int64_t batch, int64_t other_extent) {
    const auto others = output_types_at(model, batch, other_extent);
    for (size_t i = 0; i < types.size(); ++i)
      for (size_t axis = 0; axis < infos[i].shape.size(); ++axis)
        if (others[i].shape.extents()[axis] != types[i].shape.extents()[axis]) infos[i].shape[axis] = -1;
  };
  open_where_unlike(3, extent);
  if (has_open_extents(model.inputs())) {
    try {
      open_where_unlike(2, 2 * extent);
    } catch (const InvalidArgument&) {  // an extent that the model does not take after all: its outputs are shown at the one that it does
    }
  }
  return infos;
}

std::string shown(DType dtype, const Ints& shape) { return fmt::format("{}{}", name(dtype), to_string(shape)); }

}  // namespace

ModelVersion::ModelVersion(std::string name, int64_t version, std::shared_ptr<const keras::AnyModel> model, const CompileOptions& options,
                           bool warm, std::shared_ptr<StatisticsCounter> statistics)
    : name_(std::move(name)), version_(version), statistics_(std::move(statistics)) {
  for (const auto& input : model->inputs()) inputs_.push_back({input.name, input.dtype, input.shape});
  outputs_ = output_infos(*model);
  programs_ = std::make_unique<Programs>(model, options);
  // Open extents are bound by the first request: what is compiled now for some extent shows that the model can run.
  Rows rows;
  for (const Shape& shape : shapes_with(*model, 1, model->probe_extent())) rows.push_back(row_of(shape));
  for (int64_t size : programs_->sizes()) {
    if (size > 1 && !(warm && programs_->is_batched())) break;
    if (const Failure failure = programs_->compile(rows, size)) throw RequestError(FailureKind::failed, failure.message);
  }
}

ModelVersion::~ModelVersion() = default;

bool ModelVersion::is_batched() const { return programs_->is_batched(); }

int64_t ModelVersion::largest_batch() const { return programs_->largest(); }

int64_t ModelVersion::check(const std::vector<Tensor>& given) const {
  constexpr auto bad = FailureKind::bad_request;
  if (given.size() != inputs_.size())
    refuse(bad, "model '{}' takes {} input{}; got {}", name_, inputs_.size(), inputs_.size() == 1 ? "" : "s", given.size());
  int64_t samples = 1;
  for (size_t i = 0; i < given.size(); ++i) {
    const TensorInfo& info = inputs_[i];
    const Ints& extents = given[i].shape().extents();
    bool fits = given[i].dtype() == info.dtype && extents.size() == info.shape.size() && !extents.empty();
    for (size_t axis = 1; fits && axis < extents.size(); ++axis) fits = info.shape[axis] < 0 || info.shape[axis] == extents[axis];
    if (!fits)
      refuse(bad, "model '{}': input '{}' is {}; got {}", name_, escape(info.name), shown(info.dtype, info.shape),
             shown(given[i].dtype(), extents));
    if (i == 0) samples = extents[0];
    if (extents[0] != samples)
      refuse(bad, "model '{}': inputs have as many samples; '{}' has {}, '{}' {}", name_, escape(inputs_[0].name), samples,
             escape(info.name), extents[0]);
    if (samples < 1) refuse(bad, "model '{}': input '{}' has no samples, it is {}", name_, escape(info.name), shown(info.dtype, extents));
    if (given[i].elements() == 0) refuse(bad, "model '{}': input '{}' is empty, {}", name_, escape(info.name), shown(info.dtype, extents));
  }
  return samples;
}

}  // namespace tutti::serve
