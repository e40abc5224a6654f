#include "tutti/device/xla/stablehlo.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tutti/base/error.h"
#include "tutti/device/xla/stablehlo_text.h"
#include "tutti/transform/recompute.h"

namespace tutti::xla {

namespace {

class Printer {
 public:
  explicit Printer(const StableHloOptions& options) : options_(options) {}

  StableHlo run(const Graph& graph) {
    StableHlo out;
    std::vector<std::string> names(graph.value_count());
    std::string arguments;
    size_t count = 0;
    const auto argument = [&](const Node& node, const std::string& attributes) {
      names[at(node.results[0])] = fmt::format("%arg{}", count);
      arguments += fmt::format("{}%arg{}: {}{}", count == 0 ? "" : ", ", count, type_text(graph.type(node.results[0])), attributes);
      ++count;
    };
    for (const Node* node : graph.parameters(Graph::Role::input)) argument(*node, "");
    for (const Node& node : graph.nodes()) {
      if (node.op != Op::parameter || role(node) == Graph::Role::input) continue;
      StableHlo::Resident resident{node.literal, role(node) == Graph::Role::state};
      if (resident.is_state) resident.name = node.attributes.text("name");
      for (size_t i = 0; i < graph.updates().size(); ++i)
        if (graph.updates()[i].state == node.results[0]) resident.state_result = static_cast<int64_t>(graph.outputs().size() + i);
      argument(node, resident.state_result < 0 ? "" : fmt::format(" {{tf.aliasing_output = {} : i32}}", resident.state_result));
      out.resident.push_back(std::move(resident));
    }
    each_long_constant(graph, [&](const Node& node) {
      if (!long_constants_.emplace(&node, fmt::format("%arg{}", count)).second) return;
      arguments += fmt::format("{}%arg{}: {}", count == 0 ? "" : ", ", count, type_text(node.literal.type()));
      ++count;
      out.resident.push_back({node.literal});
    });
    print_nodes(graph, names);
    std::string results, types;
    const auto result = [&](ValueId id) {
      results += (results.empty() ? "" : ", ") + names[at(id)];
      types += (types.empty() ? "" : ", ") + type_text(graph.type(id));
    };
    for (const auto& output : graph.outputs()) result(output.value);
    for (const auto& update : graph.updates()) result(update.next);
    out.text = fmt::format("module @tutti {{\n  func.func public @main({}) -> ({}) {{\n{}    return{}{}{}{}\n  }}\n}}\n", arguments, types,
                           body_, results.empty() ? "" : " ", results, results.empty() ? "" : " : ", types);
    return out;
  }

 private:
  // Those of the bodies of scans as well: a body sees the arguments of @main.
  template <class F>
  void each_long_constant(const Graph& graph, const F& f) const {
    for (const Node& node : graph.nodes()) {
      if (node.op == Op::constant && node.literal.elements() > options_.longest_literal) f(node);
      if (node.body) each_long_constant(*node.body, f);
    }
  }

  std::string fresh() { return fmt::format("%v{}", next_++); }
  void line(const std::string& text) { body_ += "    " + text + "\n"; }

  // "op"(operands) <{attributes}> (regions) : (types) -> types; gives the results' names.
  std::vector<std::string> op(std::string_view name, const std::vector<std::string>& operands, const std::vector<Type>& from,
                              const std::vector<Type>& to, const std::string& attributes = "", const std::string& regions = "") {
    const std::string result = fresh();
    std::vector<std::string> names, operand_types, result_types;
    for (const Type& type : from) operand_types.push_back(type_text(type));
    for (size_t i = 0; i < to.size(); ++i) {
      result_types.push_back(type_text(to[i]));
      names.push_back(to.size() == 1 ? result : fmt::format("{}#{}", result, i));
    }
    line(fmt::format("{}{} = \"{}\"({}){}{}{}{}{} : ({}) -> ({})", result, to.size() == 1 ? "" : fmt::format(":{}", to.size()), name,
                     fmt::join(operands, ", "), attributes.empty() ? "" : " <{", attributes, attributes.empty() ? "" : "}>",
                     regions.empty() ? "" : " ", regions, fmt::join(operand_types, ", "), fmt::join(result_types, ", ")));
    return names;
  }

  std::string constant(const Tensor& value) { return op("stablehlo.constant", {}, {}, {value.type()}, "value = " + literal(value))[0]; }

  // Every element the same number.
  std::string all(const Type& type, double value) {
    const Tensor one = dispatch(type.dtype, [&](auto zero) { return Tensor::scalar(convert_element<decltype(zero)>(value)); });
    return op("stablehlo.constant", {}, {}, {type},
              fmt::format("value = dense<{}> : {}", number(one.bytes().data(), type.dtype), type_text(type)))[0];
  }

  // A region that makes one scalar of two.
  std::string combining(std::string_view name, DType dtype) {
    const std::string a = fresh(), b = fresh(), c = fresh(), type = type_text({dtype, {}});
    return fmt::format(
        "({{\n    ^bb0({}: {}, {}: {}):\n      {} = \"stablehlo.{}\"({}, {}) : ({}, {}) -> {}\n      \"stablehlo.return\"({}) : ({}) -> "
        "()\n    }})",
        a, type, b, type, c, name, a, b, type, type, type, c, type);
  }

  void print_nodes(const Graph& graph, std::vector<std::string>& names) {
    for (const Node& node : graph.nodes()) {
      if (!names[at(node.results[0])].empty()) continue;  // an argument
      std::vector<std::string> operands;
      std::vector<Type> from, to;
      for (ValueId id : node.operands) {
        operands.push_back(names[at(id)]);
        from.push_back(graph.type(id));
      }
      for (ValueId id : node.results) to.push_back(graph.type(id));
      const auto results = node.op == Op::scan ? scan(node, operands, from, to)
                           : keeps_apart(graph, node)
                               ? op("stablehlo.optimization_barrier", {names[at(graph.maker(node.operands[0]).operands[0])]}, to, to)
                               : print(node, operands, from, to);
      for (size_t i = 0; i < results.size(); ++i) names[at(node.results[i])] = results[i];
    }
  }

  // TF32 is what XLA takes by default where a device has it.
  std::string precision() const {
    const std::string_view words = options_.precision == Precision::float32 ? "HIGHEST" : "DEFAULT";
    return fmt::format("precision_config = [#stablehlo<precision {}>, #stablehlo<precision {}>]", words, words);
  }

  // A product of f32 with both sides rounded to bf16. Convolutions give bf16 as well, because not every library mixes them.
  std::vector<std::string> rounded_product(const Node& node, const std::string& full, std::vector<std::string>& operands,
                                           const std::vector<Type>& from, const std::vector<Type>& to, const std::string& attributes) {
    std::vector<Type> narrow;
    for (size_t i = 0; i < operands.size(); ++i) {
      narrow.push_back({DType::bf16, from[i].shape});
      operands[i] = op("stablehlo.convert", {operands[i]}, {from[i]}, {narrow[i]})[0];
    }
    if (node.op == Op::dot_general) return op(full, operands, narrow, to, attributes);
    const Type result{DType::bf16, to[0].shape};
    return op("stablehlo.convert", op(full, operands, narrow, {result}, attributes), {result}, to);
  }

  static std::string padding(const Ints& low, const Ints& high) {
    std::string pairs;
    for (size_t i = 0; i < low.size(); ++i) pairs += fmt::format("{}[{}, {}]", i ? ", " : "", low[i], high[i]);
    return fmt::format("padding = dense<{}> : tensor<{}x2xi64>", low.empty() ? "" : "[" + pairs + "]", low.size());
  }

  // "a = [1, 2], b = [3]" of the named lists that are not empty.
  static std::string lists(const Attributes& attributes, std::initializer_list<std::pair<const char*, const char*>> names) {
    std::string out;
    for (const auto& [ours, theirs] : names)
      if (const Ints& values = attributes.ints(ours); !values.empty())
        out += fmt::format("{}{} = [{}]", out.empty() ? "" : ", ", theirs, fmt::join(values, ", "));
    return out;
  }

  std::vector<std::string> print(const Node& node, std::vector<std::string>& operands, std::vector<Type>& from,
                                 const std::vector<Type>& to) {
    const Attributes& a = node.attributes;
    std::string full = fmt::format("stablehlo.{}", name(node.op)), attributes, regions;
    const auto comma = [](const std::string& x) { return x.empty() ? x : x + ", "; };
    switch (node.op) {
      case Op::constant: {
        const auto found = long_constants_.find(&node);
        return {found != long_constants_.end() ? found->second : constant(node.literal)};
      }
      // StableHLO has these for floats and signed integers only.
      case Op::abs:
        if (!is_signed(from[0].dtype)) return operands;
        break;
      case Op::sign:
        if (is_signed(from[0].dtype)) break;
        return op("stablehlo.minimum", {operands[0], all(from[0], 1)}, {from[0], from[0]}, to);
      case Op::power:
        if (is_integer(from[0].dtype)) return {integer_power(operands[0], operands[1], from[0])};
        break;
      case Op::is_finite:
        if (is_float(from[0].dtype)) break;
        return {all(to[0], 1)};
      case Op::iota: attributes = fmt::format("iota_dimension = {} : i64", a.integer("dimension")); break;
      case Op::asin:
      case Op::acos:
      case Op::atan:
      case Op::sinh:
      case Op::cosh:
      case Op::asinh:
      case Op::acosh:
      case Op::atanh:
      case Op::erf:
      case Op::erf_inv:
      case Op::lgamma: full = fmt::format("chlo.{}", name(node.op)); break;
      case Op::compare: attributes = comparison(a.text("direction"), from[0].dtype); break;
      case Op::broadcast_in_dim: attributes = "broadcast_dimensions = " + array(a.ints("dimensions")); break;
      case Op::transpose: attributes = "permutation = " + array(a.ints("permutation")); break;
      case Op::slice:
        attributes = fmt::format("start_indices = {}, limit_indices = {}, strides = {}", array(a.ints("start")), array(a.ints("limit")),
                                 array(a.ints("strides")));
        break;
      case Op::pad:
        attributes = fmt::format("edge_padding_low = {}, edge_padding_high = {}, interior_padding = {}", array(a.ints("low")),
                                 array(a.ints("high")), array(a.ints("interior")));
        break;
      case Op::concatenate: attributes = fmt::format("dimension = {} : i64", a.integer("dimension")); break;
      case Op::reverse: attributes = "dimensions = " + array(a.ints("dimensions")); break;
      case Op::dynamic_slice: attributes = "slice_sizes = " + array(a.ints("sizes")); break;
      case Op::gather:
        attributes =
            fmt::format("dimension_numbers = #stablehlo.gather<{}index_vector_dim = {}>, slice_sizes = {}, indices_are_sorted = false",
                        comma(lists(a, {{"offset_dims", "offset_dims"},
                                        {"collapsed_slice_dims", "collapsed_slice_dims"},
                                        {"operand_batching_dims", "operand_batching_dims"},
                                        {"start_indices_batching_dims", "start_indices_batching_dims"},
                                        {"start_index_map", "start_index_map"}})),
                        a.integer("index_vector_dim"), array(a.ints("slice_sizes")));
        break;
      case Op::scatter:
        attributes = fmt::format(
            "scatter_dimension_numbers = #stablehlo.scatter<{}index_vector_dim = {}>, indices_are_sorted = false, unique_indices = false",
            comma(lists(a, {{"update_window_dims", "update_window_dims"},
                            {"inserted_window_dims", "inserted_window_dims"},
                            {"input_batching_dims", "input_batching_dims"},
                            {"scatter_indices_batching_dims", "scatter_indices_batching_dims"},
                            {"scatter_dims_to_operand_dims", "scatter_dims_to_operand_dims"}})),
            a.integer("index_vector_dim"));
        regions = a.text("kind") == "replace" ? replacing(from[0].dtype) : combining(combining_op(a.text("kind")), from[0].dtype);
        break;
      case Op::sort:
        attributes = fmt::format("dimension = {} : i64, is_stable = true", a.integer("dimension"));
        regions = ordering(from, a.integer("descending") != 0);
        break;
      case Op::reduce:
      case Op::reduce_window: {
        const Tensor begin = identity(a.text("kind"), from[0].dtype);
        operands.push_back(constant(begin));
        from.push_back(begin.type());
        regions = combining(combining_op(a.text("kind")), from[0].dtype);
        attributes = node.op == Op::reduce
                         ? "dimensions = " + array(a.ints("dimensions"))
                         : fmt::format("window_dimensions = {}, window_strides = {}, base_dilations = {}, window_dilations = {}, {}",
                                       array(a.ints("window")), array(a.ints("strides")), array(a.ints("base_dilation")),
                                       array(a.ints("window_dilation")), padding(a.ints("low"), a.ints("high")));
        break;
      }
      case Op::all_reduce: {
        std::string group;
        for (int64_t i = 0; i < a.integer("replicas"); ++i) group += fmt::format("{}{}", i ? ", " : "", i);
        attributes = fmt::format("replica_groups = dense<[[{}]]> : tensor<1x{}xi64>", group, a.integer("replicas"));
        regions = combining("add", from[0].dtype);
        break;
      }
      case Op::select_and_scatter: {
        const Tensor begin = identity("add", from[0].dtype);
        operands.push_back(constant(begin));
        from.push_back(begin.type());
        attributes = fmt::format("window_dimensions = {}, window_strides = {}, {}", array(a.ints("window")), array(a.ints("strides")),
                                 padding(a.ints("low"), a.ints("high")));
        const std::string add = combining("add", from[0].dtype);
        regions = keeping(from[0].dtype, a.text("kind") == "max" ? "GE" : "LE");
        regions.pop_back();
        regions += ", " + add.substr(1);
        break;
      }
      case Op::dot_general:
        attributes = fmt::format("dot_dimension_numbers = #stablehlo.dot<{}>, {}",
                                 lists(a, {{"lhs_batch", "lhs_batching_dimensions"},
                                           {"rhs_batch", "rhs_batching_dimensions"},
                                           {"lhs_contracting", "lhs_contracting_dimensions"},
                                           {"rhs_contracting", "rhs_contracting_dimensions"}}),
                                 precision());
        break;
      case Op::convolution: {
        std::string spatial;
        for (int64_t i = 0; i + 2 < from[0].shape.rank(); ++i) spatial += fmt::format("{}, ", i);
        attributes = fmt::format(
            "window_strides = {}, {}, lhs_dilation = {}, rhs_dilation = {}, dimension_numbers = #stablehlo.conv<[b, {}f]x[{}i, o]->[b, "
            "{}f]>, "
            "feature_group_count = {} : i64, batch_group_count = 1 : i64, {}",
            array(a.ints("strides")), padding(a.ints("low"), a.ints("high")), array(a.ints("lhs_dilation")), array(a.ints("rhs_dilation")),
            spatial, spatial, spatial, a.integer("groups"), precision());
        break;
      }
      default: break;
    }
    if (options_.precision == Precision::bfloat16 && row(node.op).op_class == OpClass::contraction && from[0].dtype == DType::f32)
      return rounded_product(node, full, operands, from, to, attributes);
    return op(full, operands, from, to, attributes, regions);
  }

  // Squares of the base for the bits of the exponent: XLA's own takes large exponents for negative ones.
  std::string integer_power(const std::string& base, const std::string& exponent, const Type& type) {
    const Type predicate{DType::boolean, type.shape};
    const auto both = [&](const char* name, const std::string& a, const std::string& b) {
      return op(fmt::format("stablehlo.{}", name), {a, b}, {type, type}, {type})[0];
    };
    const auto select = [&](const std::string& which, const std::string& a, const std::string& b) {
      return op("stablehlo.select", {which, a, b}, {predicate, type, type}, {type})[0];
    };
    const auto is = [&](const std::string& a, const char* direction, const std::string& b) {
      return op("stablehlo.compare", {a, b}, {type, type}, {predicate}, comparison(direction, type.dtype))[0];
    };
    const std::string zero = all(type, 0), one = all(type, 1);
    std::string result = one, square = base, odd;
    const int64_t bits = 8 * byte_size(type.dtype) - (is_signed(type.dtype) ? 1 : 0);
    for (int64_t bit = 0; bit < bits; ++bit) {
      const std::string has = is(both("and", both("shift_right_logical", exponent, all(type, static_cast<double>(bit))), one), "NE", zero);
      if (bit == 0) odd = has;
      result = select(has, both("multiply", result, square), result);
      square = both("multiply", square, square);
    }
    if (!is_signed(type.dtype)) return result;
    // The truncated inverse.
    const std::string minus_one = all(type, -1);
    const std::string inverse = select(is(base, "EQ", one), one, select(is(base, "EQ", minus_one), select(odd, minus_one, one), zero));
    return select(is(exponent, "LT", zero), inverse, result);
  }

  std::string replacing(DType dtype) {
    const std::string a = fresh(), b = fresh(), type = type_text({dtype, {}});
    return fmt::format("({{\n    ^bb0({}: {}, {}: {}):\n      \"stablehlo.return\"({}) : ({}) -> ()\n    }})", a, type, b, type, b, type);
  }

  // Whether the first of two stays: in that order to the second, or NaN.
  std::string keeping(DType dtype, const char* direction) {
    const std::string a = fresh(), b = fresh(), type = type_text({dtype, {}}), in_order = fresh(), is_nan = fresh(), stays = fresh();
    return fmt::format(
        "({{\n    ^bb0({0}: {2}, {1}: {2}):\n      {3} = \"stablehlo.compare\"({0}, {1}) <{{{6}}}> : ({2}, {2}) -> tensor<i1>\n      {4} = "
        "\"stablehlo.compare\"({0}, {0}) <{{{7}}}> : ({2}, {2}) -> tensor<i1>\n      {5} = \"stablehlo.or\"({3}, {4}) : (tensor<i1>, "
        "tensor<i1>) -> tensor<i1>\n      \"stablehlo.return\"({5}) : (tensor<i1>) -> ()\n    }})",
        a, b, type, in_order, is_nan, stays, comparison(direction, dtype), comparison("NE", dtype));
  }

  // By the first operand; NaN is the largest.
  std::string ordering(const std::vector<Type>& types, bool descending) {
    std::string arguments, a, b;
    for (size_t i = 0; i < types.size(); ++i) {
      const std::string left = fresh(), right = fresh(), type = type_text({types[i].dtype, {}});
      arguments += fmt::format("{}{}: {}, {}: {}", i ? ", " : "", left, type, right, type);
      if (i == 0) a = left, b = right;
    }
    const DType dtype = types[0].dtype;
    const std::string type = type_text({dtype, {}});
    std::string text = fmt::format("({{\n    ^bb0({}):\n", arguments);
    const auto compare = [&](const std::string& x, const std::string& y, const char* direction) {
      std::string result = fresh();
      text += fmt::format("      {} = \"stablehlo.compare\"({}, {}) <{{{}}}> : ({}, {}) -> tensor<i1>\n", result, x, y,
                          comparison(direction, dtype), type, type);
      return result;
    };
    const auto both = [&](const char* name, const std::string& x, const std::string& y) {
      std::string result = fresh();
      text += fmt::format("      {} = \"stablehlo.{}\"({}, {}) : (tensor<i1>, tensor<i1>) -> tensor<i1>\n", result, name, x, y);
      return result;
    };
    std::string before = compare(a, b, descending ? "GT" : "LT");
    if (is_float(dtype)) {
      const std::string &last = descending ? a : b, &other = descending ? b : a;
      before = both("or", before, both("and", compare(last, last, "NE"), compare(other, other, "EQ")));
    }
    return text + fmt::format("      \"stablehlo.return\"({}) : (tensor<i1>) -> ()\n    }})", before);
  }

  // Those that elementwise ops read.
  static std::vector<size_t> slices_of_loops(const Graph& body, size_t carries, size_t slices) {
    std::vector<char> read(body.value_count());
    for (size_t n = body.nodes().size(); n-- > 0;) {
      const Node& node = body.nodes()[n];
      const OpClass op_class = row(node.op).op_class;
      const bool moves = node.op == Op::reshape || node.op == Op::slice || node.op == Op::transpose || node.op == Op::broadcast_in_dim;
      if (op_class == OpClass::unary || op_class == OpClass::binary || op_class == OpClass::ternary || (moves && read[at(node.results[0])]))
        for (ValueId id : node.operands) read[at(id)] = true;
    }
    const auto parameters = body.parameters(Graph::Role::input);
    std::vector<size_t> out;
    for (size_t i = carries; i < carries + slices; ++i)
      if (read[at(parameters[i]->results[0])]) out.push_back(i);
    return out;
  }

  // while: the step, carries, slices, whole values, stacks, slices that were made ahead.
  std::vector<std::string> scan(const Node& node, const std::vector<std::string>& operands, const std::vector<Type>& from,
                                const std::vector<Type>& to) {
    const auto carries = static_cast<size_t>(node.attributes.integer("carries")),
               slices = static_cast<size_t>(node.attributes.integer("slices"));
    const int64_t length = node.attributes.integer("length");
    if (length == 0) {
      std::vector<std::string> out(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(carries));
      for (size_t i = carries; i < to.size(); ++i) out.push_back(constant(Tensor(to[i])));
      return out;
    }
    const bool reverse = node.attributes.integer("reverse") != 0;
    const Graph& body = *node.body;
    const auto parameters = body.parameters(Graph::Role::input);
    const Type counter{DType::i32, {}};
    std::vector<std::string> initial{constant(Tensor::scalar<int32_t>(0))};
    std::vector<Type> types{counter};
    initial.insert(initial.end(), operands.begin(), operands.end());
    types.insert(types.end(), from.begin(), from.end());
    for (size_t i = carries; i < to.size(); ++i) {
      initial.push_back(all(to[i], 0));
      types.push_back(to[i]);
    }
    // The step's place from its number, and one slice there; behind the last, which a step makes ahead and nobody reads, it is the last.
    const auto place_of = [&](const std::string& number) {
      const std::string last = reverse ? constant(Tensor::scalar<int32_t>(static_cast<int32_t>(length - 1))) : "";
      return reverse ? op("stablehlo.subtract", {last, number}, {counter, counter}, {counter})[0] : number;
    };
    const auto slice_at = [&](const std::string& place, const std::string& zero, const std::string& operand, size_t i) {
      Ints sizes = from[i].shape.extents();
      sizes[0] = 1;
      std::vector<std::string> starts{operand, place};
      std::vector<Type> start_types{from[i], counter};
      for (size_t axis = 1; axis < sizes.size(); ++axis) {
        starts.push_back(zero);
        start_types.push_back(counter);
      }
      const std::string part =
          op("stablehlo.dynamic_slice", starts, start_types, {{from[i].dtype, sizes}}, "slice_sizes = " + array(sizes))[0];
      return op("stablehlo.reshape", {part}, {{from[i].dtype, sizes}}, {body.type(parameters[i]->results[0])})[0];
    };
    const std::vector<size_t> ahead = options_.slices_ahead ? slices_of_loops(body, carries, slices) : std::vector<size_t>();
    for (size_t i : ahead) {
      const std::string first = initial[0];
      initial.push_back(slice_at(place_of(first), first, operands[i], i));
      types.push_back(body.type(parameters[i]->results[0]));
    }
    const auto block = [&](std::vector<std::string>& names) {
      std::string text;
      for (const Type& type : types) {
        names.push_back(fresh());
        text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", names.back(), type_text(type));
      }
      return "^bb0(" + text + "):\n";
    };
    std::string outer;
    std::swap(outer, body_);
    std::vector<std::string> seen, now;
    std::string condition = "({\n    " + block(seen);
    const std::string limit = constant(Tensor::scalar<int32_t>(static_cast<int32_t>(length)));
    const std::string more =
        op("stablehlo.compare", {seen[0], limit}, {counter, counter}, {{DType::boolean, {}}}, comparison("LT", DType::i32))[0];
    line(fmt::format("\"stablehlo.return\"({}) : (tensor<i1>) -> ()", more));
    condition += body_ + "    }";
    body_.clear();

    std::string step = ", {\n    " + block(now);
    const std::string place = place_of(now[0]), zero = constant(Tensor::scalar<int32_t>(0));
    std::vector<std::string> names(body.value_count());
    for (size_t i = 0; i < parameters.size(); ++i) {
      std::string& own = names[at(parameters[i]->results[0])];
      const auto made = std::find(ahead.begin(), ahead.end(), i);
      own = made == ahead.end() ? now[1 + i] : now[types.size() - static_cast<size_t>(ahead.end() - made)];
      if (i >= carries && i < carries + slices && made == ahead.end()) own = slice_at(place, zero, now[1 + i], i);
    }
    print_nodes(body, names);
    std::vector<std::string> next{op("stablehlo.add", {now[0], constant(Tensor::scalar<int32_t>(1))}, {counter, counter}, {counter})[0]};
    for (size_t i = 0; i < carries; ++i) next.push_back(names[at(body.outputs()[i].value)]);
    for (size_t i = carries; i < from.size(); ++i) next.push_back(now[1 + i]);
    for (size_t i = carries; i < to.size(); ++i) {
      const ValueId value = body.outputs()[i].value;
      Ints extents = to[i].shape.extents();
      extents[0] = 1;
      const Type row{to[i].dtype, extents};
      const std::string part = op("stablehlo.reshape", {names[at(value)]}, {body.type(value)}, {row})[0];
      std::vector<std::string> arguments{now[1 + from.size() + i - carries], part, place};
      std::vector<Type> argument_types{to[i], row, counter};
      for (size_t axis = 1; axis < extents.size(); ++axis) {
        arguments.push_back(zero);
        argument_types.push_back(counter);
      }
      next.push_back(op("stablehlo.dynamic_update_slice", arguments, argument_types, {to[i]})[0]);
    }
    for (size_t i : ahead) next.push_back(slice_at(place_of(next[0]), zero, now[1 + i], i));
    std::vector<std::string> type_texts;
    for (const Type& type : types) type_texts.push_back(type_text(type));
    line(fmt::format("\"stablehlo.return\"({}) : ({}) -> ()", fmt::join(next, ", "), fmt::join(type_texts, ", ")));
    step += body_ + "    })";
    std::swap(outer, body_);
    const auto results = op("stablehlo.while", initial, types, types, "", condition + step);
    std::vector<std::string> out(results.begin() + 1, results.begin() + 1 + static_cast<std::ptrdiff_t>(carries));
    const auto stacks = results.begin() + 1 + static_cast<std::ptrdiff_t>(from.size());
    out.insert(out.end(), stacks, stacks + static_cast<std::ptrdiff_t>(to.size() - carries));
    return out;
  }

  const StableHloOptions& options_;
  std::map<const Node*, std::string> long_constants_;
  std::string body_;
  int64_t next_ = 0;
};

}  // namespace

StableHlo to_stablehlo(const Graph& graph, const StableHloOptions& options) { return Printer(options).run(graph); }

}  // namespace tutti::xla
