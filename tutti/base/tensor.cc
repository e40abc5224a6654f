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

Tensor Tensor::part(int64_t i) const {
  if (shape().rank() == 0 || i < 0 || i >= shape()[0]) fail<InvalidArgument>("tensor", "{} has no part {}", to_string(type_), i);
  Tensor out;
  out.type_ = {dtype(), Ints(shape().begin() + 1, shape().end())};
  out.data_ = std::shared_ptr<std::byte>(data_, data_.get() + i * out.type_.bytes());
  return out;
}

Tensor Tensor::stacked(std::span<const Tensor> parts) {
  if (parts.empty()) fail<InvalidArgument>("tensor", "nothing cannot be stacked");
  const Type& one = parts[0].type();
  Ints extents{static_cast<int64_t>(parts.size())};
  extents.insert(extents.end(), one.shape.begin(), one.shape.end());
  bool in_order = true;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::shared_ptr<std::byte>&first = parts[0].data_, &data = parts[i].data_;
    if (!(parts[i].type() == one))
      fail<InvalidArgument>("tensor", "{} and {} cannot be stacked", to_string(one), to_string(parts[i].type()));
    const bool one_owner = !first.owner_before(data) && !data.owner_before(first);
    in_order = in_order && one_owner && data.get() == first.get() + static_cast<int64_t>(i) * one.bytes();
  }
  if (in_order) {
    Tensor out;
    out.type_ = {one.dtype, extents};
    out.data_ = parts[0].data_;
    return out;
  }
  Tensor out(one.dtype, extents);
  for (size_t i = 0; i < parts.size(); ++i)
    std::copy(parts[i].bytes().begin(), parts[i].bytes().end(), out.bytes().begin() + static_cast<int64_t>(i) * one.bytes());
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
