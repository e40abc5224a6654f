#include "tests/ops/op_case.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "tutti/base/error.h"

namespace tutti {

namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail<InvalidArgument>("op cases", "cannot read '{}'", path);
  std::stringstream out;
  out << file.rdbuf();
  return out.str();
}

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find(separator, at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + separator.size();
  }
  return out;
}

std::vector<std::string> types_in(const std::string& text) {
  static const std::regex type(R"(\w+\[[^\]]*\])");
  return {std::sregex_token_iterator(text.begin(), text.end(), type), {}};
}

}  // namespace

std::string default_op_cases() { return TUTTI_SOURCE_DIR "/tests/ops/cases.txt"; }

std::vector<std::string> read_op_cases(const std::string& path) {
  static const std::regex word(R"(\b[A-Z]+\b)");
  std::map<std::string, std::vector<std::string>> sets;
  std::vector<std::string> out;
  for (const auto& line : split(read_text(path), "\n")) {
    if (line.empty() || line[0] == '#') continue;
    if (size_t equals = line.find(" = "); equals != std::string::npos && std::regex_match(line.substr(0, equals), word)) {
      sets[line.substr(0, equals)] = split(line.substr(equals + 3), ", ");
      continue;
    }
    std::vector<std::string> cases{line};
    for (std::sregex_iterator found(line.begin(), line.end(), word), end; found != end; ++found) {
      auto set = sets.find(found->str());
      if (set == sets.end() || cases[0].find(set->first) == std::string::npos) continue;  // a word of the case, or written out before
      std::vector<std::string> more;
      for (const auto& one : cases)
        for (const auto& dtype : set->second) more.push_back(std::regex_replace(one, std::regex("\\b" + set->first + "\\b"), dtype));
      cases = std::move(more);
    }
    out.insert(out.end(), cases.begin(), cases.end());
  }
  return out;
}

std::string op_name(const std::string& name) { return name.substr(0, name.find_first_of("( ")); }

Graph case_graph(const std::string& name) {
  std::string op = op_name(name), rest = name.substr(op.size()), text = "graph {\n", operands, results, returned;
  if (rest.starts_with("(")) {
    size_t end = rest.find(')');
    int count = 0;
    for (const auto& type : types_in(rest.substr(0, end))) {
      text += fmt::format("%a{} = parameter {{role = \"input\", name = \"a{}\"}} : {}\n", count, count, type);
      operands += fmt::format("{}%a{}", count == 0 ? "" : ", ", count);
      ++count;
    }
    operands = "(" + operands + ")";
    rest = end == std::string::npos ? "" : rest.substr(end + 1);
  }
  size_t types = rest.find(':', std::min(rest.find_last_of("}>"), rest.size()));
  size_t count = types == std::string::npos ? 1 : types_in(rest.substr(types)).size();
  for (size_t i = 0; i < count; ++i) {
    results += fmt::format("{}%r{}", i == 0 ? "" : ", ", i);
    returned += fmt::format("{}%r{} \"r{}\"", i == 0 ? "" : ", ", i, i);
  }
  return parse_graph(fmt::format("{}{} = {}{}{}\nreturn {}\n}}\n", text, results, op, operands, rest, returned));
}

CaseFile::CaseFile(const std::string& folder) : data_(read_text(folder + "/data.bin")) {
  for (const auto& line : split(read_text(folder + "/index.txt"), "\n")) {
    if (line.empty()) continue;
    std::istringstream in(line);
    Row row;
    in >> row.offset >> row.relative >> row.absolute;
    std::getline(in.ignore(1), row.name);
    rows_.push_back(std::move(row));
  }
}

CaseData CaseFile::load(const std::string& name, const Graph& graph) const {
  auto found = std::find_if(rows_.begin(), rows_.end(), [&](const Row& row) { return row.name == name; });
  if (found == rows_.end()) fail<InvalidArgument>("op cases", "no data for '{}'; make_cases.py makes them", name);
  CaseData out{{}, {}, found->relative, found->absolute};
  size_t at = found->offset;
  auto read = [&](const Type& type) {
    Tensor tensor(type);
    auto to = tensor.bytes();
    if (at + to.size() > data_.size()) fail<InvalidArgument>("op cases", "the data of '{}' are cut off", name);
    if (!to.empty()) std::memcpy(to.data(), data_.data() + at, to.size());
    at += to.size();
    return tensor;
  };
  for (const Node* node : graph.parameters(Graph::Role::input)) out.operands.push_back(read(graph.type(node->results[0])));
  for (const auto& output : graph.outputs()) out.results.push_back(read(graph.type(output.value)));
  return out;
}

std::vector<Tensor> run_on(Device& device, const Graph& graph, const std::vector<Tensor>& inputs) {
  auto program = device.compile(graph);
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<Buffer*> from, to;
  for (const auto& input : inputs) {
    buffers.push_back(device.allocate(input.type()));
    device.to_device(input.bytes(), *buffers.back());
    from.push_back(buffers.back().get());
  }
  for (const auto& type : program->output_types()) {
    buffers.push_back(device.allocate(type));
    to.push_back(buffers.back().get());
  }
  program->run(from, to);
  std::vector<Tensor> out;
  for (Buffer* buffer : to) device.to_host(*buffer, out.emplace_back(buffer->type()).bytes());
  return out;
}

std::string difference(const Tensor& got, const Tensor& expected, double relative, double absolute) {
  if (!(got.type() == expected.type())) return fmt::format("is {}, expected {}", to_string(got.type()), to_string(expected.type()));
  return dispatch(got.dtype(), [&](auto zero) -> std::string {
    using T = decltype(zero);
    auto a = got.as<T>(), b = expected.as<T>();
    for (size_t i = 0; i < a.size(); ++i) {
      bool fits = false;
      if constexpr (std::is_integral_v<T>) {
        fits = a[i] == b[i];
        if (!fits) return fmt::format("element {} is {}, expected {}", i, a[i], b[i]);
      } else {
        double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
        bool exact = relative == 0 && absolute == 0;
        if (x != x || y != y) {
          fits = x != x && y != y;
        } else if (x == y) {
          fits = !exact || std::signbit(x) == std::signbit(y);
        } else {
          fits = std::fabs(x - y) <= absolute + relative * std::fabs(y) && std::isfinite(y);
        }
        if (!fits) return fmt::format("element {} is {}, expected {}", i, x, y);
      }
    }
    return "";
  });
}

}  // namespace tutti
