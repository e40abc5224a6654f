#include "tutti/graph/attributes.h"

#include "tutti/base/error.h"

namespace tutti {

namespace {
template <class T>
const T& get(const AttributeValue* value, std::string_view name) {
  if (value == nullptr) fail<InternalError>("graph", "attribute '{}' is absent", name);
  const T* held = std::get_if<T>(value);
  if (held == nullptr) fail<InternalError>("graph", "attribute '{}' is of another kind", name);
  return *held;
}
}  // namespace

void Attributes::set(std::string name, AttributeValue value) {
  for (auto& item : items_)
    if (item.name == name) {
      item.value = std::move(value);
      return;
    }
  items_.push_back({std::move(name), std::move(value)});
}

const AttributeValue* Attributes::find(std::string_view name) const {
  for (const auto& item : items_)
    if (item.name == name) return &item.value;
  return nullptr;
}

int64_t Attributes::integer(std::string_view name) const { return get<int64_t>(find(name), name); }
double Attributes::number(std::string_view name) const { return get<double>(find(name), name); }
const std::string& Attributes::text(std::string_view name) const { return get<std::string>(find(name), name); }
const Ints& Attributes::ints(std::string_view name) const { return get<Ints>(find(name), name); }

}  // namespace tutti
