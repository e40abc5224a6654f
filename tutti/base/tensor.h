// Host data with a dtype and a shape. Copies share the bytes: weights are held once however many programs use them,
// so bytes are written only by whoever made the tensor, before handing it on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

#include "tutti/base/dtype.h"
#include "tutti/base/shape.h"

namespace tutti {

struct Type {
  DType dtype = DType::f32;
  Shape shape;
  int64_t bytes() const { return shape.elements() * byte_size(dtype); }
  bool operator==(const Type&) const = default;
};

std::string to_string(const Type& type);  // "f32[1, 32]"

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Type type);  // uninitialised, aligned to 64 bytes
  Tensor(DType dtype, Shape shape) : Tensor(Type{dtype, std::move(shape)}) {}
  // Bytes of another owner, as many as the type has, which lives as long as they are held. Aligned to 64 bytes where more is done with
  // them than copying.
  Tensor(Type type, std::shared_ptr<std::byte> bytes) : type_(std::move(type)), data_(std::move(bytes)) {}

  template <class T>
  static Tensor of(Shape shape, std::span<const T> values);
  template <class T>
  static Tensor scalar(T value) {
    return of<T>({}, std::span<const T>(&value, 1));
  }

  const Type& type() const { return type_; }
  DType dtype() const { return type_.dtype; }
  const Shape& shape() const { return type_.shape; }
  int64_t elements() const { return type_.shape.elements(); }
  bool empty() const { return data_ == nullptr; }  // default-constructed: holds no data

  std::span<std::byte> bytes() { return {data_.get(), static_cast<size_t>(type_.bytes())}; }
  std::span<const std::byte> bytes() const { return {data_.get(), static_cast<size_t>(type_.bytes())}; }
  template <class T>
  std::span<T> as() {
    check(dtype_of<T>());
    return {reinterpret_cast<T*>(data_.get()), static_cast<size_t>(elements())};
  }
  template <class T>
  std::span<const T> as() const {
    check(dtype_of<T>());
    return {reinterpret_cast<const T*>(data_.get()), static_cast<size_t>(elements())};
  }

  // The same bytes under another shape of as many elements.
  Tensor reshaped(Shape shape) const;
  // Number `i` along axis 0: the same bytes.
  Tensor part(int64_t i) const;
  // Tensors of one type under a new axis 0: the same bytes where they are the parts of one tensor in order, else copies.
  static Tensor stacked(std::span<const Tensor> parts);
  // A copy in another dtype.
  Tensor converted(DType dtype) const;

 private:
  void check(DType asked) const;
  void check_count(size_t values) const;
  Type type_;
  std::shared_ptr<std::byte> data_;
};

template <class T>
Tensor Tensor::of(Shape shape, std::span<const T> values) {
  Tensor out(dtype_of<T>(), std::move(shape));
  out.check_count(values.size());
  std::copy(values.begin(), values.end(), out.as<T>().begin());
  return out;
}

}  // namespace tutti
