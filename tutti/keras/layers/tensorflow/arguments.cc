#include "tutti/keras/layers/tensorflow/arguments.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"
#include "tutti/keras/layers/operations/operand.h"

namespace tutti::keras::tf {

namespace {

bool has_tensors(const Argument& argument) { return !argument.tensors().empty(); }

Json as_json(const Argument& argument) {
  if (argument.kind == Argument::Kind::constant) return argument.constant;
  Json out = Json::list();
  for (const Argument& item : argument.items) out.push(as_json(item));
  return out;
}

int64_t one_integer(Call& c, const Argument& argument, std::string_view name) {
  Ints found = integers(c, argument);
  if (found.size() != 1) c.config.invalid("'{}' is one integer; got {}", name, to_string(found));
  return found[0];
}

std::string_view label(const char* name) { return name != nullptr ? name : "the first argument"; }

}  // namespace

const Argument* find(Call& c, const char* name) { return name == nullptr ? c.arguments.find(0, "") : c.arguments.find(name); }

const Argument& argument(Call& c, const char* name) {
  const Argument* found = find(c, name);
  if (found == nullptr) c.config.invalid("{} is missing", label(name));
  return *found;
}

Value tensor(Call& c, const Argument& argument, std::optional<DType> dtype) {
  if (argument.kind == Argument::Kind::tensor) return argument.tensor.value;
  if (argument.kind == Argument::Kind::object) c.config.unsupported("a dictionary as a tensor");
  if (has_tensors(argument)) {
    std::vector<Value> parts;
    DType common = argument.tensors()[0].value.dtype();
    for (const Argument& item : argument.items) parts.push_back(tensor(c, item, common));
    return stack(parts, 0);
  }
  Tensor value = read_array(c.config, as_json(argument), "a constant");
  DType natural = value.dtype() == DType::f64 ? DType::f32 : value.dtype() == DType::i64 ? DType::i32 : value.dtype();
  return c.graph.constant(value.converted(dtype.value_or(natural)));
}

Value tensor(Call& c, const char* name, std::optional<DType> dtype) { return tensor(c, argument(c, name), dtype); }

Pair pair(Call& c, const char* second) {
  const Argument &first = argument(c), &other = argument(c, second);
  if (!has_tensors(first)) {
    Value b = tensor(c, other);
    return {tensor(c, first, b.dtype()), b};
  }
  Value a = tensor(c, first);
  return {a, tensor(c, other, a.dtype())};
}

std::vector<Value> tensors(Call& c) {
  const Argument& list = argument(c);
  if (list.kind == Argument::Kind::tensor) return {list.tensor.value};
  if (list.kind != Argument::Kind::list || !has_tensors(list)) c.config.invalid("the first argument is a list of tensors");
  DType common = list.tensors()[0].value.dtype();
  std::vector<Value> out;
  for (const Argument& item : list.items) out.push_back(tensor(c, item, common));
  return out;
}

Ints integers(Call& c, const Argument& argument) {
  if (argument.kind == Argument::Kind::tensor) {
    auto found = constant_integers(argument.tensor.value);
    if (!found) c.config.unsupported("a shape or index that depends on the data");
    return *found;
  }
  if (argument.kind == Argument::Kind::list) {
    Ints out;
    for (const Argument& item : argument.items) out.push_back(one_integer(c, item, "an element"));
    return out;
  }
  const Json& json = argument.constant;
  if (argument.kind != Argument::Kind::constant || !json.is_int())
    c.config.invalid("an integer is wanted; got {}", escape(json.dump(), 60));
  return {json.as_int()};
}

int64_t integer(Call& c, const char* name, std::optional<int64_t> otherwise) {
  const Argument* found = find(c, name);
  if (found == nullptr && otherwise) return *otherwise;
  return one_integer(c, argument(c, name), label(name));
}

double number(Call& c, const char* name, std::optional<double> otherwise) {
  const Argument* found = find(c, name);
  if (found == nullptr && otherwise) return *otherwise;
  const Argument& given = argument(c, name);
  if (given.kind != Argument::Kind::constant || !given.constant.is_number()) c.config.unsupported("'{}' that is not a plain number", name);
  return given.constant.as_number();
}

bool flag(Call& c, const char* name, bool otherwise) {
  const Argument* found = find(c, name);
  if (found == nullptr) return otherwise;
  if (found->kind != Argument::Kind::constant || !found->constant.is_bool()) c.config.invalid("'{}' is true or false", name);
  return found->constant.as_bool();
}

std::string text(Call& c, const char* name, std::string_view otherwise) {
  const Argument* found = find(c, name);
  if (found == nullptr) return std::string(otherwise);
  if (found->kind != Argument::Kind::constant || !found->constant.is_string()) c.config.invalid("'{}' is a string", name);
  return found->constant.as_string();
}

DType dtype(Call& c, const char* name, std::optional<DType> otherwise) {
  if (find(c, name) == nullptr && otherwise) return *otherwise;
  std::string given = text(c, name, "");
  auto found = dtype_from_numpy(given);
  if (!found) c.config.unsupported("dtype '{}' is not known here", given);
  return *found;
}

Ints axes(Call& c, Value x, const char* name) {
  const Argument* found = find(c, name);
  if (found == nullptr) return all_axes(x);
  Ints out = integers(c, *found);
  for (int64_t& each : out) {
    if (each < -x.rank() || each >= x.rank()) c.config.invalid("'{}' is {}, outside of rank {}", name, each, x.rank());
    if (each < 0) each += x.rank();
  }
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end()) c.config.invalid("'{}' names an axis twice: {}", name, to_string(out));
  return out;
}

int64_t axis(Call& c, int64_t rank, const char* name, std::optional<int64_t> otherwise) {
  int64_t out = integer(c, name, otherwise);
  if (out < -rank || out >= rank) c.config.invalid("'{}' is {}, outside of rank {}", name, out, rank);
  return out < 0 ? out + rank : out;
}

Value images(Call& c) {
  Value x = tensor(c);
  if (x.rank() != 4) c.config.invalid("takes a batch of images; got {}", to_string(x.shape()));
  return x;
}

Ints spatial_sizes(Call& c, const char* name, int64_t spatial, bool channels_first) {
  Ints given = integers(c, argument(c, name));
  if (given.size() == 1) return Ints(static_cast<size_t>(spatial), given[0]);
  if (static_cast<int64_t>(given.size()) == spatial) return given;
  if (static_cast<int64_t>(given.size()) != spatial + 2) c.config.invalid("'{}' has {} sizes", name, given.size());
  auto first = given.begin() + (channels_first ? 2 : 1);
  return {first, first + spatial};
}

std::string padding_word(Call& c, std::string_view otherwise) {
  std::string given = text(c, "padding", otherwise);
  std::transform(given.begin(), given.end(), given.begin(), [](char letter) { return static_cast<char>(std::tolower(letter)); });
  return given;
}

namespace {

constexpr int64_t most_elements = 64;  // shapes are short
constexpr int most_steps = 1000;       // a value that is used twice is computed twice

// Vectors and scalars of integers and of booleans (0 and 1), by the few ops that shapes are computed with.
class Evaluation {
 public:
  explicit Evaluation(const Graph& graph) : graph_(graph) {}

  std::optional<Ints> run(ValueId id) {
    const Type& type = graph_.type(id);
    if (++steps_ > most_steps || type.shape.elements() > most_elements) return {};
    if (!is_integer(type.dtype) && type.dtype != DType::boolean) return {};
    const Node& node = graph_.maker(id);
    if (node.op == Op::constant) return literal(node.literal);
    std::vector<Ints> operands;
    for (ValueId operand : node.operands) {
      auto value = run(operand);
      if (!value) return {};
      operands.push_back(*value);
    }
    return apply(node, operands, type);
  }

 private:
  static Ints literal(const Tensor& tensor) {
    Tensor wide = tensor.converted(DType::i64);
    auto values = std::as_const(wide).as<int64_t>();
    return {values.begin(), values.end()};
  }

  std::optional<Ints> apply(const Node& node, const std::vector<Ints>& in, const Type& type) const {
    switch (node.op) {
      case Op::convert:
        if (type.dtype == DType::boolean) return {};
        [[fallthrough]];
      case Op::reshape: return in[0];
      case Op::broadcast_in_dim:
        if (in[0].size() == 1) return Ints(static_cast<size_t>(type.shape.elements()), in[0][0]);
        return graph_.type(node.operands[0]).shape == type.shape ? std::optional(in[0]) : std::nullopt;
      case Op::slice: return sliced(node, in[0]);
      case Op::concatenate: return concatenated(in, type);
      case Op::reduce: return reduced(node, in[0], type);
      case Op::add:
      case Op::subtract:
      case Op::multiply:
      case Op::divide:
      case Op::remainder:
      case Op::and_:
      case Op::maximum:
      case Op::minimum: return combined(node.op, in[0], in[1]);
      case Op::compare: return compared(node.attributes.text("direction"), in[0], in[1]);
      case Op::select: return selected(in[0], in[1], in[2]);
      default: return {};
    }
  }

  static std::optional<Ints> sliced(const Node& node, const Ints& in) {
    const Ints &start = node.attributes.ints("start"), &limit = node.attributes.ints("limit"), &strides = node.attributes.ints("strides");
    if (start.size() != 1) return {};
    Ints out;
    for (int64_t i = start[0]; i < limit[0]; i += strides[0]) out.push_back(in[static_cast<size_t>(i)]);
    return out;
  }

  static std::optional<Ints> concatenated(const std::vector<Ints>& in, const Type& type) {
    if (type.shape.rank() != 1) return {};
    Ints out;
    for (const Ints& part : in) out.insert(out.end(), part.begin(), part.end());
    return out;
  }

  static std::optional<Ints> reduced(const Node& node, const Ints& in, const Type& type) {
    const std::string& kind = node.attributes.text("kind");
    if (type.shape.elements() != 1 || (kind != "add" && kind != "multiply")) return {};
    int64_t out = kind == "add" ? 0 : 1;
    for (int64_t each : in)
      if (kind == "add" ? __builtin_add_overflow(out, each, &out) : __builtin_mul_overflow(out, each, &out)) return {};
    return Ints{out};
  }

  static std::optional<Ints> combined(Op op, const Ints& a, const Ints& b) {
    Ints out(a.size());
    for (size_t i = 0; i < a.size(); ++i) {
      bool overflow = false;
      if (op == Op::add) overflow = __builtin_add_overflow(a[i], b[i], &out[i]);
      if (op == Op::subtract) overflow = __builtin_sub_overflow(a[i], b[i], &out[i]);
      if (op == Op::multiply) overflow = __builtin_mul_overflow(a[i], b[i], &out[i]);
      if (op == Op::maximum) out[i] = std::max(a[i], b[i]);
      if (op == Op::minimum) out[i] = std::min(a[i], b[i]);
      if (op == Op::and_) out[i] = a[i] & b[i];
      if (op == Op::divide || op == Op::remainder) {
        if (b[i] <= 0) return {};
        out[i] = op == Op::divide ? a[i] / b[i] : a[i] % b[i];
      }
      if (overflow) return {};
    }
    return out;
  }

  static Ints compared(const std::string& direction, const Ints& a, const Ints& b) {
    Ints out(a.size());
    for (size_t i = 0; i < a.size(); ++i) {
      const bool less = a[i] < b[i], equal = a[i] == b[i];
      out[i] = direction == "EQ"   ? equal
               : direction == "NE" ? !equal
               : direction == "LT" ? less
               : direction == "LE" ? less || equal
               : direction == "GT" ? !less && !equal
                                   : !less;
    }
    return out;
  }

  static std::optional<Ints> selected(const Ints& which, const Ints& yes, const Ints& no) {
    if (which.size() != yes.size() || yes.size() != no.size()) return {};
    Ints out(yes.size());
    for (size_t i = 0; i < yes.size(); ++i) out[i] = which[i] != 0 ? yes[i] : no[i];
    return out;
  }

  const Graph& graph_;
  int steps_ = 0;
};

}  // namespace

std::optional<Ints> constant_integers(Value x) {
  if (!is_integer(x.dtype())) return {};
  return Evaluation(x.graph()).run(x.id());
}

}  // namespace tutti::keras::tf
