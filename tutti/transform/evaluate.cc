#include "tutti/transform/evaluate.h"

namespace tutti {

namespace {
// Appends the bytes of a plain value; every field is of known length or ends with its length, so keys do not collide.
template <class T>
void put(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put(std::string& key, const Ints& ints) {
  put(key, ints.size());
  for (int64_t i : ints) put(key, i);
}

void put(std::string& key, const Type& type) {
  put(key, type.dtype);
  put(key, type.shape.extents());
}

void put(std::string& key, const AttributeValue& value) {
  put(key, value.index());
  if (const auto* text = std::get_if<std::string>(&value)) {
    put(key, text->size());
    key += *text;
  } else if (const auto* ints = std::get_if<Ints>(&value)) {
    put(key, *ints);
  } else if (const auto* integer = std::get_if<int64_t>(&value)) {
    put(key, *integer);
  } else {
    put(key, std::get<double>(value));
  }
}
}  // namespace

FoldMemo::Expression FoldMemo::intern(std::string key) {
  auto [found, fresh] = expressions_.try_emplace(std::move(key), static_cast<Expression>(values_.size()));
  if (fresh) values_.emplace_back();
  return found->second;
}

FoldMemo::Expression FoldMemo::leaf(const Tensor& tensor) {
  constexpr int64_t small = 64;  // bytes
  const bool by_value = tensor.type().bytes() <= small;
  std::string key(by_value ? "v" : "p");
  put(key, tensor.type());
  if (by_value) {
    key.append(reinterpret_cast<const char*>(tensor.bytes().data()), tensor.bytes().size());
  } else {
    put(key, tensor.bytes().data());
  }
  Expression out = intern(std::move(key));
  if (find(out) == nullptr) store(out, tensor);
  return out;
}

FoldMemo::Expression FoldMemo::apply(Op op, const Attributes& attributes, const Type& result, const std::vector<Expression>& operands) {
  std::string key("n");
  put(key, op);
  put(key, result);
  for (const Attribute& attribute : attributes.items()) {
    key += attribute.name;
    put(key, attribute.value);
  }
  put(key, operands.size());
  for (Expression operand : operands) put(key, operand);
  return intern(std::move(key));
}

const Tensor* FoldMemo::find(Expression expression) const {
  const Tensor& value = values_[static_cast<size_t>(expression)];
  return value.empty() ? nullptr : &value;
}

void FoldMemo::store(Expression expression, Tensor value) { values_[static_cast<size_t>(expression)] = std::move(value); }

}  // namespace tutti
