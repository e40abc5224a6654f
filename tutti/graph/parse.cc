// Reads what print.cc writes. For texts written by hand: values may have any name (%x), the types of all but leaves may be left out (those
// written are checked), and "//" starts a comment. Safe on any text.
#include <charconv>
#include <map>
#include <set>

#include "tutti/base/error.h"
#include "tutti/graph/graph.h"

namespace tutti {

namespace {

constexpr int max_scan_depth = 32;

bool is_word(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_number(char c) { return is_word(c) || c == '.' || c == '+' || c == '-'; }

class GraphParser {
 public:
  explicit GraphParser(std::string_view text) : text_(text) {}

  Graph parse() {
    expect_word("graph");
    Graph graph = parse_block(0);
    skip_space();
    if (at_ != text_.size()) refuse("text after the graph");
    return graph;
  }

 private:
  struct Scope {
    Graph& graph;
    std::map<std::string, Value, std::less<>> values;
    std::set<ValueId> updated;
  };

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail<InvalidArgument>("graph text", "line {}: {}", token_line_, fmt::vformat(format, fmt::make_format_args(args...)));
  }

  // Lexing.
  void skip_space() {
    for (; at_ < text_.size(); ++at_) {
      if (text_.substr(at_, 2) == "//") {
        while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      } else if (text_[at_] == '\n') {
        ++line_;
      } else if (text_[at_] != ' ' && text_[at_] != '\t' && text_[at_] != '\r') {
        break;
      }
    }
  }
  bool peek(char c) {
    skip_space();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool take(char c) {
    if (!peek(c)) return false;
    ++at_;
    token_line_ = line_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) refuse("expected '{}', found '{}'", c, ahead());
  }
  std::string_view ahead() const { return text_.substr(std::min(at_, text_.size()), 20); }
  std::string_view take_while(bool (*belongs)(char)) {
    skip_space();
    size_t start = at_;
    while (at_ < text_.size() && belongs(text_[at_])) ++at_;
    if (at_ != start) token_line_ = line_;
    return text_.substr(start, at_ - start);
  }
  std::string_view word() {
    auto out = take_while(is_word);
    if (out.empty()) refuse("expected a name, found '{}'", ahead());
    return out;
  }
  void expect_word(std::string_view wanted) {
    skip_space();
    if (auto found = take_while(is_word); found != wanted) refuse("expected '{}', found '{}'", wanted, found.empty() ? ahead() : found);
  }

  template <class T>
  T to_number(std::string_view text) const {
    T out{};
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error != std::errc() || end != text.data() + text.size()) refuse("'{}' is not a number of its kind", text);
    return out;
  }

  std::string text_literal() {
    expect('"');
    std::string out;
    while (true) {
      if (at_ >= text_.size() || text_[at_] == '\n') refuse("text without an end");
      char c = text_[at_++];
      if (c == '"') return out;
      if (c != '\\') {
        out += c;
        continue;
      }
      c = at_ < text_.size() ? text_[at_++] : '\0';
      if (c == '"' || c == '\\') {
        out += c;
      } else if (unsigned code = 0; c == 'x' && at_ + 2 <= text_.size() &&
                                    std::from_chars(text_.data() + at_, text_.data() + at_ + 2, code, 16).ptr == text_.data() + at_ + 2) {
        out += static_cast<char>(code);
        at_ += 2;
      } else {
        refuse("unknown escape in text");
      }
    }
  }

  Ints int_list() {
    Ints out;
    expect('[');
    while (!take(']')) {
      if (!out.empty()) expect(',');
      out.push_back(to_number<int64_t>(take_while(is_number)));
    }
    return out;
  }

  Type type() {
    auto spelled = word();
    auto dtype = dtype_from_name(spelled);
    if (!dtype) refuse("unknown dtype '{}'", spelled);
    try {
      return {*dtype, Shape(int_list())};
    } catch (const InvalidArgument& e) {
      refuse("{}", e.what());
    }
  }

  // Grammar.
  AttributeValue attribute() {
    if (peek('[')) return int_list();
    if (peek('"')) return text_literal();
    auto spelled = take_while(is_number);
    if (spelled.find_first_of(".einf") != std::string_view::npos) return to_number<double>(spelled);
    return to_number<int64_t>(spelled);
  }

  Attributes attributes() {
    Attributes out;
    if (!take('{')) return out;
    while (!take('}')) {
      if (!out.items().empty()) expect(',');
      std::string key(word());
      if (out.has(key)) refuse("attribute '{}' stands twice", key);
      expect('=');
      out.set(key, attribute());
    }
    return out;
  }

  Value use(const Scope& scope) {
    expect('%');
    auto spelled = word();
    auto found = scope.values.find(spelled);
    if (found == scope.values.end()) refuse("%{} is used before it is made", spelled);
    return found->second;
  }

  // The elements of a constant as spelled; their dtype stands behind them.
  std::vector<std::string_view> elements() {
    std::vector<std::string_view> out;
    expect('<');
    while (!take('>')) {
      if (!out.empty()) expect(',');
      out.push_back(take_while(is_number));
      if (out.back() == "...") refuse("the elements of this constant were left out when it was printed");
    }
    return out;
  }

  Tensor literal(const Type& type, const std::vector<std::string_view>& spelled) {
    if (static_cast<int64_t>(spelled.size()) != type.shape.elements())
      refuse("{} elements for a constant {}", spelled.size(), to_string(type));
    Tensor out(type);
    dispatch(type.dtype, [&](auto zero) {
      using T = decltype(zero);
      auto to = out.as<T>();
      for (size_t i = 0; i < to.size(); ++i) {
        if constexpr (std::is_same_v<T, bool>) {
          if (spelled[i] != "true" && spelled[i] != "false") refuse("'{}' is not true or false", spelled[i]);
          to[i] = spelled[i] == "true";
        } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>) {
          to[i] = T(to_number<float>(spelled[i]));
        } else {
          to[i] = to_number<T>(spelled[i]);
        }
      }
    });
    return out;
  }

  Value parameter(Graph& graph, const Attributes& given, const Type& type) {
    const std::string *role = nullptr, *name = nullptr;
    for (const auto& item : given.items()) {
      if (item.name == "role") role = std::get_if<std::string>(&item.value);
      if (item.name == "name") name = std::get_if<std::string>(&item.value);
    }
    if (role == nullptr || name == nullptr || given.items().size() != 2) refuse("a parameter has a role and a name");
    for (auto known : {Graph::Role::input, Graph::Role::weight, Graph::Role::state})
      if (*role == tutti::name(known)) return graph.parameter(known, *name, type);
    refuse("unknown role '{}'", *role);
  }

  // One node behind its results' names.
  void node(Scope& scope, const std::vector<std::string>& names, int depth) {
    auto spelled = word();
    auto op = op_from_name(spelled);
    if (!op) {
      std::vector<std::string> known;
      for (const auto& row : op_table()) known.emplace_back(row.name);
      refuse("unknown op '{}'{}", spelled, did_you_mean(spelled, known));
    }
    std::vector<Value> operands, results;
    if (take('('))
      while (!take(')')) {
        if (!operands.empty()) expect(',');
        operands.push_back(use(scope));
      }
    Attributes given = attributes();
    std::vector<std::string_view> values;
    if (*op == Op::constant) values = elements();
    std::shared_ptr<const Graph> body;
    if (peek('{')) {
      if (depth >= max_scan_depth) refuse("bodies are nested more than {} deep", max_scan_depth);
      body = std::make_shared<const Graph>(parse_block(depth + 1));
    }
    std::vector<Type> types;
    if (take(':')) {
      do types.push_back(type());
      while (take(','));
    } else if (row(*op).op_class == OpClass::leaf) {
      refuse("{} declares its type", spelled);
    }
    const bool typed = !types.empty();
    if (typed && types.size() != names.size()) refuse("{} names and {} types", names.size(), types.size());

    const bool leaf = row(*op).op_class == OpClass::leaf;
    if (leaf && (types.size() != 1 || !operands.empty() || body)) refuse("{} has one result and no operands", spelled);
    if (*op == Op::parameter) {
      results = {parameter(scope.graph, given, types[0])};
    } else if (*op == Op::constant) {
      if (!given.items().empty()) refuse("a constant has no attributes");
      results = {scope.graph.constant(literal(types[0], values))};
    } else if (*op == Op::iota) {
      const auto* dimension = given.items().size() == 1 ? std::get_if<int64_t>(&given.items()[0].value) : nullptr;
      if (dimension == nullptr || !given.has("dimension")) refuse("iota has a dimension");
      results = {scope.graph.iota(types[0], *dimension)};
    } else {
      results = scope.graph.add(*op, operands, std::move(given), std::move(body));
    }
    if (results.size() != names.size()) refuse("{} has {} results; {} are named", spelled, results.size(), names.size());
    for (size_t i = 0; i < results.size(); ++i) {
      if (typed && !(results[i].type() == types[i]))
        refuse("%{} is written as {}, and {} gives {}", names[i], to_string(types[i]), spelled, to_string(results[i].type()));
      if (!scope.values.emplace(names[i], results[i]).second) refuse("%{} is made twice", names[i]);
    }
  }

  void update(Scope& scope) {
    Value state = use(scope);
    expect('=');
    Value next = use(scope);
    const Node& producer = scope.graph.maker(state.id());
    if (producer.op != Op::parameter || role(producer) != Graph::Role::state) refuse("only a state is updated");
    if (!(state.type() == next.type())) refuse("a state {} cannot become {}", to_string(state.type()), to_string(next.type()));
    if (!scope.updated.insert(state.id()).second) refuse("a state is updated twice");
    scope.graph.update(state, next);
  }

  void outputs(Scope& scope) {
    do {
      Value value = use(scope);
      scope.graph.output(text_literal(), value);
    } while (take(','));
  }

  void statement(Scope& scope, int depth) {
    if (!peek('%')) {
      size_t start = at_;
      auto first = word();
      if (first == "return") return outputs(scope);
      if (first == "update") return update(scope);
      at_ = start;  // an op without results
      return node(scope, {}, depth);
    }
    std::vector<std::string> names;
    do {
      expect('%');
      names.emplace_back(word());
    } while (take(','));
    expect('=');
    node(scope, names, depth);
  }

  Graph parse_block(int depth) {
    Graph graph;
    Scope scope{graph, {}, {}};
    expect('{');
    while (!take('}')) {
      if (!graph.outputs().empty()) refuse("return is the last line of a graph");
      try {
        statement(scope, depth);
      } catch (const InvalidArgument& e) {
        if (std::string_view(e.what()).starts_with("[graph text]")) throw;
        refuse("{}", e.what());
      }
    }
    return graph;
  }

  std::string_view text_;
  size_t at_ = 0, line_ = 1;
  size_t token_line_ = 1;  // of the last token taken, which is what messages are about
};

}  // namespace

Graph parse_graph(std::string_view text) { return GraphParser(text).parse(); }

}  // namespace tutti
