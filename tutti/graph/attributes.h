// What an op is told besides its operands: named integers, lists, numbers and words. One generic form, so that printing, parsing, comparing
// and hashing a node need no code per op; which names an op takes stands in its row of the op table.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tutti/base/shape.h"

namespace tutti {

using AttributeValue = std::variant<int64_t, double, std::string, Ints>;

struct Attribute {
  std::string name;
  AttributeValue value;
  bool operator==(const Attribute&) const = default;
};

class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<Attribute> items) : items_(items) {}

  void set(std::string name, AttributeValue value);
  bool has(std::string_view name) const { return find(name) != nullptr; }
  // Each throws InternalError when the name is absent or of another kind: the verifier has seen every node before a device does.
  int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  const Ints& ints(std::string_view name) const;

  const std::vector<Attribute>& items() const { return items_; }
  bool operator==(const Attributes&) const = default;

 private:
  const AttributeValue* find(std::string_view name) const;
  std::vector<Attribute> items_;
};

}  // namespace tutti
