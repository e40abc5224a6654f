// Op cases: single nodes written as text (cases.txt), the graphs around them, and the data that make_cases.py computed for them.
#pragma once

#include <string>
#include <vector>

#include "tutti/device/device.h"

namespace tutti {

// The cases of a table, sets of dtypes written out. A case's name is its text.
std::vector<std::string> read_op_cases(const std::string& path);
std::string default_op_cases();  // the path of the table

std::string op_name(const std::string& name);
// The node with a parameter for each operand and an output for each result.
Graph case_graph(const std::string& name);

struct CaseData {
  std::vector<Tensor> operands, results;
  double relative = 0, absolute = 0;  // tolerances; both 0: the bits agree, whatever the payload of a NaN
};

// What make_cases.py wrote.
class CaseFile {
 public:
  explicit CaseFile(const std::string& folder);
  CaseData load(const std::string& name, const Graph& graph) const;

 private:
  struct Row {
    size_t offset;
    double relative, absolute;
    std::string name;
  };
  std::vector<Row> rows_;
  std::string data_;
};

std::vector<Tensor> run_on(Device& device, const Graph& graph, const std::vector<Tensor>& inputs);
// The first difference, or "".
std::string difference(const Tensor& got, const Tensor& expected, double relative, double absolute);

}  // namespace tutti
