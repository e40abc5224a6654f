#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tests/graph/random_graph.h"
#include "tutti/base/error.h"

namespace tutti {
namespace {

void expect_same(const Graph& a, const Graph& b) {
  ASSERT_EQ(a.nodes().size(), b.nodes().size());
  for (size_t i = 0; i < a.nodes().size(); ++i) {
    const Node &x = a.nodes()[i], &y = b.nodes()[i];
    EXPECT_EQ(x.op, y.op);
    EXPECT_EQ(x.operands, y.operands);
    EXPECT_EQ(x.results, y.results);
    EXPECT_TRUE(x.attributes == y.attributes);
    for (ValueId id : x.results) EXPECT_EQ(a.type(id), b.type(id));
    if (x.op == Op::constant) {
      ASSERT_EQ(x.literal.type(), y.literal.type());
      auto from = x.literal.bytes();
      EXPECT_TRUE(from.empty() || std::memcmp(from.data(), y.literal.bytes().data(), from.size()) == 0) << print_graph(a);
    }
    ASSERT_EQ(x.body == nullptr, y.body == nullptr);
    if (x.body) expect_same(*x.body, *y.body);
  }
}

std::string complaint(const std::string& text) {
  try {
    parse_graph(text);
  } catch (const InvalidArgument& e) {
    return e.what();
  }
  return "";
}

TEST(graph_text, is_what_the_documents_show) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {1, 32}});
  Value w = graph.parameter(Graph::Role::weight, "dense/kernel", {DType::f32, {32, 64}});
  graph.output("y", dot_general(x, w, {{}, {}, {1}, {0}}) + 1.5);
  EXPECT_EQ(print_graph(graph),
            "graph {\n"
            "  %0 = parameter {role = \"input\", name = \"x\"} : f32[1, 32]\n"
            "  %1 = parameter {role = \"weight\", name = \"dense/kernel\"} : f32[32, 64]\n"
            "  %2 = dot_general(%0, %1) {lhs_batch = [], rhs_batch = [], lhs_contracting = [1], rhs_contracting = [0]} : f32[1, 64]\n"
            "  %3 = constant <1.5> : f32[]\n"
            "  %4 = broadcast_in_dim(%3) {shape = [1, 64], dimensions = []} : f32[1, 64]\n"
            "  %5 = add(%2, %4) : f32[1, 64]\n"
            "  return %5 \"y\"\n"
            "}\n");
}

TEST(graph_text, prints_bodies_and_updates) {
  Graph graph;
  Value s = graph.parameter(Graph::Role::state, "s", {DType::f32, {2}});
  auto out = scan({s}, {}, {}, 3, true, [](Graph&, auto carries, auto, auto) { return ScanStep{{tanh(carries[0])}, {carries[0]}}; });
  graph.update(s, out.carries[0]);
  graph.output("all", out.stacked[0]);
  EXPECT_EQ(print_graph(graph),
            "graph {\n"
            "  %0 = parameter {role = \"state\", name = \"s\"} : f32[2]\n"
            "  %1, %2 = scan(%0) {carries = 1, slices = 0, length = 3, reverse = 1} {\n"
            "    %0 = parameter {role = \"input\", name = \"carry0\"} : f32[2]\n"
            "    %1 = tanh(%0) : f32[2]\n"
            "    return %1 \"carry0\", %0 \"stacked0\"\n"
            "  } : f32[2], f32[3, 2]\n"
            "  update %0 = %1\n"
            "  return %2 \"all\"\n"
            "}\n");
}

TEST(graph_text, comes_back_as_the_same_graph) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    Graph graph = RandomGraph(seed).make(5 + seed % 40);
    std::string text = print_graph(graph);
    Graph back = parse_graph(text);
    verify(back);
    expect_same(graph, back);
    EXPECT_EQ(print_graph(back), text);
  }
}

template <class T>
void add_extremes(Graph& graph) {
  using Limits = std::numeric_limits<T>;
  graph.constant(Tensor::of<T>({5}, std::vector<T>{Limits::min(), Limits::max(), Limits::lowest(), T{1}, T{0}}));
}

TEST(graph_text, keeps_every_number) {
  Graph graph;
  add_extremes<int8_t>(graph);
  add_extremes<uint8_t>(graph);
  add_extremes<int16_t>(graph);
  add_extremes<uint16_t>(graph);
  add_extremes<int32_t>(graph);
  add_extremes<uint32_t>(graph);
  add_extremes<int64_t>(graph);
  add_extremes<uint64_t>(graph);
  add_extremes<float>(graph);
  add_extremes<double>(graph);
  double endless = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> values{0.1, -0.0, endless, -endless, nan, 5e-324, 1.0 / 3, 1e22, 123456789.0};
  Tensor doubles = Tensor::of<double>({9}, values);
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) graph.constant(doubles.converted(dtype));
  bool flags[] = {true, false};
  graph.constant(Tensor::of<bool>({2}, flags));
  graph.constant(Tensor(DType::f32, {0, 3}));
  expect_same(graph, parse_graph(print_graph(graph)));
}

TEST(graph_text, keeps_every_bit_of_the_16_bit_floats) {
  Graph graph;
  for (int start = 0; start < 65536; start += 64) {
    std::vector<Half> halves(64);
    std::vector<BFloat> bfloats(64);
    for (int i = 0; i < 64; ++i) {
      auto bits = static_cast<uint16_t>(start + i);
      halves[static_cast<size_t>(i)].bits = (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0 ? 0x7e00 : bits;  // one NaN
      bfloats[static_cast<size_t>(i)].bits = (bits & 0x7f80) == 0x7f80 && (bits & 0x7f) != 0 ? 0x7fc0 : bits;
    }
    graph.constant(Tensor::of<Half>({64}, halves));
    graph.constant(Tensor::of<BFloat>({64}, bfloats));
  }
  expect_same(graph, parse_graph(print_graph(graph)));
}

TEST(graph_text, keeps_names_of_any_bytes_on_one_line) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  Graph graph;
  Value x = graph.input(all + "käse \"quoted\" back\\slash", {DType::f32, {}});
  graph.output(all, x);
  std::string text = print_graph(graph);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
  Graph back = parse_graph(text);
  expect_same(graph, back);
  EXPECT_EQ(back.outputs()[0].name, all);
}

TEST(graph_text, leaves_out_long_constants_and_says_so) {
  Graph graph;
  graph.constant(RandomGraph::ramp({65}));
  std::string text = print_graph(graph);
  EXPECT_NE(text.find("%0 = constant <...> : f32[65]"), std::string::npos) << text;
  EXPECT_NE(complaint(text).find("line 2: the elements of this constant were left out"), std::string::npos) << complaint(text);
  expect_same(graph, parse_graph(print_graph(graph, 65)));
}

TEST(graph_text, written_by_hand_may_leave_out_types_and_numbers) {
  Graph graph = parse_graph(R"(graph {  // a comment
    %x = parameter {role = "input", name = "x"} : f32[2, 3]
    %y = transpose(%x) {permutation = [1, 0]}
    return %y "y"
  })");
  EXPECT_EQ(to_string(graph.type(graph.outputs()[0].value)), "f32[3, 2]");
}

TEST(graph_text, says_what_is_wrong_and_where) {
  const std::string x = "graph {\n%x = parameter {role = \"input\", name = \"x\"} : f32[2]\n";
  std::pair<std::string, std::string> rows[] = {
      {"", "line 1: expected 'graph', found ''"},
      {"grph {}", "line 1: expected 'graph', found 'grph'"},
      {"graph {", "line 1: expected a name, found ''"},
      {"graph {} x", "line 1: text after the graph"},
      {x + "%y = tahn(%x)\n}", "line 3: unknown op 'tahn' (did you mean 'tan'?)"},
      {x + "%y = tanh(%z)\n}", "line 3: %z is used before it is made"},
      {x + "%y = tanh(%x) : f32[3]\n}", "line 3: %y is written as f32[3], and tanh gives f32[2]"},
      {x + "%x = tanh(%x)\n}", "line 3: %x is made twice"},
      {x + "%y, %z = tanh(%x)\n}", "line 3: tanh has 1 results; 2 are named"},
      {x + "%y = tanh(%x) : f32[2], f32[2]\n}", "line 3: 1 names and 2 types"},
      {x + "tanh(%x)\n}", "line 3: tanh has 1 results; 0 are named"},
      {x + "%y = tanh(%x, %x)\n}", "line 3: [graph] tanh takes 1 operands; got 2"},
      {x + "%y = reshape(%x) {shape = [2], shape = [2]}\n}", "line 3: attribute 'shape' stands twice"},
      {x + "%y = reshape(%x) {shape = [99999999999999999999]}\n}", "line 3: '99999999999999999999' is not a number of its kind"},
      {x + "%y = reshape(%x) {shape = [1, ]}\n}", "line 3: '' is not a number of its kind"},
      {x + "%y = constant <1> : f32[2]\n}", "line 3: 1 elements for a constant f32[2]"},
      {x + "%y = constant <1> : f32[281474976710656]\n}", "line 3: 1 elements for a constant f32[281474976710656]"},
      {x + "%y = constant <300> : i8[1]\n}", "line 3: '300' is not a number of its kind"},
      {x + "%y = constant <1.5> : i32[1]\n}", "line 3: '1.5' is not a number of its kind"},
      {x + "%y = constant <1> : bool[1]\n}", "line 3: '1' is not true or false"},
      {x + "%y = constant <1>\n}", "line 3: constant declares its type"},
      {x + "%y = constant {a = 1} <1> : f32[1]\n}", "line 3: a constant has no attributes"},
      {x + "%y = iota {dimension = 1} : f32[3]\n}", "dimension 1 is outside of f32[3]"},
      {x + "%y = iota {axis = 1} : f32[3]\n}", "line 3: iota has a dimension"},
      {x + "%y = iota(%x) {dimension = 0} : f32[3]\n}", "line 3: iota has one result and no operands"},
      {x + "%y = parameter {role = \"guess\", name = \"y\"} : f32[3]\n}", "line 3: unknown role 'guess'"},
      {x + "%y = parameter {role = \"input\"} : f32[3]\n}", "line 3: a parameter has a role and a name"},
      {x + "%y = parameter {role = \"input\", name = 3} : f32[3]\n}", "line 3: a parameter has a role and a name"},
      {x + "%y = parameter {role = \"input\", name = \"a\n\"} : f32[3]\n}", "line 3: text without an end"},
      {x + "%y = parameter {role = \"input\", name = \"\\q\"} : f32[3]\n}", "line 3: unknown escape in text"},
      {x + "%y = parameter {role = \"input\", name = \"\\x0", "line 3: unknown escape in text"},
      {x + "%y = parameter {role = \"input\", name = \"y\"} : f99[3]\n}", "line 3: unknown dtype 'f99'"},
      {x + "%y = parameter {role = \"input\", name = \"y\"} : f32[-3]\n}", "extents are not negative"},
      {x + "return %x\n}", "line 3: expected '\"', found '}'"},
      {x + "return %x \"a\"\nreturn %x \"a\"\n}", "line 3: return is the last line of a graph"},
      {x + "update %x = %x\n}", "line 3: only a state is updated"},
      {"graph {\n%s = parameter {role = \"state\", name = \"s\"} : f32[2]\n%t = reshape(%s) {shape = [1, 2]}\nupdate %s = %t\n}",
       "line 4: a state f32[2] cannot become f32[1, 2]"},
      {"graph {\n%s = parameter {role = \"state\", name = \"s\"} : f32[2]\nupdate %s = %s\nupdate %s = %s\n}",
       "line 4: a state is updated twice"},
      {std::string("graph {\0", 8), "line 1: expected a name"},
  };
  for (const auto& [text, message] : rows)
    EXPECT_NE(complaint(text).find(message), std::string::npos) << text << "\n  said: " << complaint(text) << "\n  expected: " << message;
}

TEST(graph_text, bounds_the_depth_of_bodies) {
  auto nested = [](int depth) {
    std::string head = "%c = parameter {role = \"input\", name = \"c\"} : f32[]\n", text = "graph {\n" + head, tail;
    for (int i = 0; i < depth; ++i) {
      text += "%d = scan(%c) {carries = 1, slices = 0, length = 1, reverse = 0} {\n" + head;
      tail += "return %" + std::string(i == 0 ? "c" : "d") + " \"c\"\n}\n";
    }
    return text + tail + "return %d \"c\"\n}\n";
  };
  EXPECT_EQ(complaint(nested(32)), "");
  EXPECT_NE(complaint(nested(33)).find("bodies are nested more than 32 deep"), std::string::npos);
  EXPECT_NE(complaint(nested(100000)).find("bodies are nested more than 32 deep"), std::string::npos);
}

}  // namespace
}  // namespace tutti
