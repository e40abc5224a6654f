// Every equation against the definition: the sum over all labels of the product of the operands.
#include "tutti/graph/einsum.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "tests/graph/evaluate.h"
#include "tutti/base/error.h"

namespace tutti {
namespace {

struct EinsumCase {
  std::string equation;
  std::vector<Shape> operands;
  // The same without ellipses and with an output, for the loops below.
  std::string plain;
};

void PrintTo(const EinsumCase& c, std::ostream* out) { *out << c.equation; }

std::vector<std::string> terms_of(const std::string& text) {
  std::vector<std::string> out{""};
  for (char c : text) c == ',' ? out.emplace_back() : out.back() += c;
  return out;
}

// Where the labels' values point in a row-major shape; extents of 1 broadcast.
size_t offset(const Shape& shape, const std::string& labels, std::map<char, int64_t>& at) {
  Ints strides = shape.strides();
  int64_t out = 0;
  for (size_t i = 0; i < labels.size(); ++i)
    if (shape[static_cast<int64_t>(i)] != 1) out += strides[i] * at[labels[i]];
  return static_cast<size_t>(out);
}

std::pair<Shape, std::vector<double>> by_definition(const EinsumCase& c, const std::vector<std::vector<float>>& data) {
  size_t arrow = c.plain.find("->");
  auto inputs = terms_of(c.plain.substr(0, arrow));
  std::string output = c.plain.substr(arrow + 2);
  std::map<char, int64_t> extents, at;
  for (size_t i = 0; i < inputs.size(); ++i)
    for (size_t axis = 0; axis < inputs[i].size(); ++axis)
      extents[inputs[i][axis]] = std::max(extents[inputs[i][axis]], c.operands[i][static_cast<int64_t>(axis)]);
  Ints shape;
  for (char label : output) shape.push_back(extents[label]);
  std::vector<double> result(static_cast<size_t>(Shape(shape).elements()));
  std::function<void(std::map<char, int64_t>::iterator)> loop = [&](auto label) {
    if (label == extents.end()) {
      double product = 1;
      for (size_t i = 0; i < inputs.size(); ++i) product *= data[i][offset(c.operands[i], inputs[i], at)];
      result[offset(shape, output, at)] += product;
      return;
    }
    for (int64_t i = 0; i < label->second; ++i) {
      at[label->first] = i;
      loop(std::next(label));
    }
  };
  loop(extents.begin());
  return {shape, result};
}

class EinsumTest : public testing::TestWithParam<EinsumCase> {};

TEST_P(EinsumTest, agrees_with_its_definition) {
  const EinsumCase& c = GetParam();
  Graph graph;
  std::vector<Value> operands;
  std::vector<std::vector<float>> data;
  for (const Shape& shape : c.operands) {
    auto& values = data.emplace_back();
    for (int64_t i = 0; i < shape.elements(); ++i) values.push_back(static_cast<float>((i * 7 + 3) % 11) - 4);
    operands.push_back(constant<float>(graph, shape, values));
  }
  auto [shape, expected] = by_definition(c, data);
  Value result = einsum(c.equation, operands);
  ASSERT_EQ(result.shape(), shape);
  EXPECT_EQ(numbers(result), expected);
}

INSTANTIATE_TEST_SUITE_P(
    equations, EinsumTest,
    testing::Values(EinsumCase{"ij,jk->ik", {{2, 3}, {3, 4}}, "ij,jk->ik"}, EinsumCase{"ij,jk", {{2, 3}, {3, 4}}, "ij,jk->ik"},
                    EinsumCase{"ij,jk->ki", {{2, 3}, {3, 4}}, "ij,jk->ki"},
                    EinsumCase{"bij,bjk->bik", {{2, 3, 4}, {2, 4, 5}}, "bij,bjk->bik"}, EinsumCase{"ij->ji", {{2, 3}}, "ij->ji"},
                    EinsumCase{"ba", {{2, 3}}, "ba->ab"}, EinsumCase{"ij->", {{2, 3}}, "ij->"}, EinsumCase{"ij->j", {{2, 3}}, "ij->j"},
                    EinsumCase{"ii->i", {{3, 3}}, "ii->i"}, EinsumCase{"ii", {{3, 3}}, "ii->"}, EinsumCase{"iji->j", {{3, 2, 3}}, "iji->j"},
                    EinsumCase{"iii->i", {{3, 3, 3}}, "iii->i"}, EinsumCase{"i,j->ij", {{2}, {3}}, "i,j->ij"},
                    EinsumCase{"i,i->i", {{3}, {3}}, "i,i->i"}, EinsumCase{"i,i", {{3}, {3}}, "i,i->"},
                    EinsumCase{"ij,ij->", {{2, 3}, {2, 3}}, "ij,ij->"}, EinsumCase{"ij,j->i", {{2, 3}, {3}}, "ij,j->i"},
                    EinsumCase{",ij->ij", {{}, {2, 3}}, ",ij->ij"}, EinsumCase{" i j , j k -> i k ", {{2, 3}, {3, 4}}, "ij,jk->ik"},
                    EinsumCase{"aecd,abcd->acbe", {{2, 3, 4, 2}, {2, 5, 4, 2}}, "aecd,abcd->acbe"},
                    EinsumCase{"acbe,aecd->abcd", {{2, 4, 5, 3}, {2, 3, 4, 2}}, "acbe,aecd->abcd"},
                    EinsumCase{"...ij,...jk->...ik", {{2, 3, 2, 3}, {3, 3, 4}}, "abij,bjk->abik"},
                    EinsumCase{"...ij,jk->...ik", {{2, 2, 3}, {3, 4}}, "aij,jk->aik"}, EinsumCase{"i...->...", {{3, 2, 2}}, "iab->ab"},
                    EinsumCase{"...i->i...", {{2, 4, 3}}, "abi->iab"}, EinsumCase{"i...,i...", {{3, 2}, {3, 4, 2}}, "ib,iab->ab"},
                    EinsumCase{"ij,jk->ik", {{2, 1}, {3, 4}}, "ij,jk->ik"}, EinsumCase{"bi,bi->b", {{1, 3}, {4, 3}}, "bi,bi->b"},
                    EinsumCase{"...i,...i->...", {{2, 1, 3}, {1, 5, 3}}, "abi,abi->ab"},
                    EinsumCase{"ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 2}}, "ij,jk,kl->il"},
                    EinsumCase{"ij,ik,il->jkl", {{2, 3}, {2, 2}, {2, 4}}, "ij,ik,il->jkl"},
                    EinsumCase{"a,b,c,abc->", {{2}, {3}, {4}, {2, 3, 4}}, "a,b,c,abc->"},
                    EinsumCase{"ij,kl->jl", {{2, 3}, {4, 5}}, "ij,kl->jl"}, EinsumCase{"Ab,bA->A", {{2, 3}, {3, 2}}, "Ab,bA->A"},
                    EinsumCase{"ij,jk->ik", {{2, 0}, {0, 3}}, "ij,jk->ik"}));

TEST(EinsumErrors, malformed_equations_and_misfits_are_refused) {
  Graph graph;
  Value a = full(graph, {DType::f32, {2, 3}}, 1), b = full(graph, {DType::f32, {4, 5}}, 1);
  for (const char* equation : {"", "ij", "ij,jk,kl->il", "ij,jk->ik", "i,j->ij", "ijk,jk->i", "ij,kl->im", "ij,kl->ii", "i1,kl->i",
                               "ij,kl->i->j", "...i...,kl->i", "ij,kl->.i", "ij.,kl->i", "ijk...,kl->i"})
    EXPECT_THROW(einsum(equation, {a, b}), InvalidArgument) << equation;
}

}  // namespace
}  // namespace tutti
