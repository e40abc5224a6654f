#include "tutti/base/tensor.h"

#include "tutti/base/error.h"
#include "tutti/base/memory.h"

namespace tutti {

std::string to_string(const Type& type) { return std::string(name(type.dtype)) + to_string(type.shape); }

Tensor::Tensor(Type type) : type_(std::move(type)) {
  auto size = static_cast<size_t>(type_.bytes());
  data_ = allocate(size);
  if (!data_) fail<OutOfMemory>("memory", "a tensor {} needs {} bytes", to_string(type_), size);
}

Tensor Tensor::reshaped(Shape shape) const {
  if (shape.elements() != elements()) fail<InvalidArgument>("tensor", "{} cannot be reshaped to {}", to_string(type_), to_string(shape));
  Tensor out = *this;
  out.type_.shape = std::move(shape);
  return out;
}

Tensor Tensor::converted(DType dtype) const {
  Tensor out(dtype, shape());
  dispatch(this->dtype(), [&](auto from) {
    dispatch(dtype, [&](auto to) {
      auto source = as<decltype(from)>();
      auto target = out.template as<decltype(to)>();
      for (size_t i = 0; i < source.size(); ++i) target[i] = convert_element<decltype(to)>(source[i]);
    });
  });
  return out;
}

void Tensor::check_count(size_t values) const {
  if (values != static_cast<size_t>(elements())) fail<InvalidArgument>("tensor", "{} is made of {} values", to_string(type_), values);
}

void Tensor::check(DType asked) const {
  if (asked != type_.dtype) fail<InvalidArgument>("tensor", "holds {}, read as {}", to_string(type_), name(asked));
}

}  // namespace tutti
