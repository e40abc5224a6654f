#include "tutti/graph/einsum.h"

#include <algorithm>
#include <limits>
#include <map>

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"

namespace tutti {

namespace {

constexpr size_t most_operands = 32;

// One label an axis: a letter, or first_ellipsis + distance from the ellipsis's last axis.
using Labels = std::vector<int>;
constexpr int first_ellipsis = 256;

struct Term {
  Value value;
  Labels labels;
};

bool contains(const Labels& labels, int label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

template <class... Args>
[[noreturn]] void refuse(std::string_view equation, fmt::format_string<Args...> format, Args&&... args) {
  fail<InvalidArgument>("graph", "einsum '{}': {}", escape(equation), fmt::vformat(format, fmt::make_format_args(args...)));
}

// `ellipsis`: how many axes "..." stands for.
Labels read_labels(std::string_view equation, std::string_view text, int64_t ellipsis) {
  Labels out;
  bool seen = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      out.push_back(c);
    } else if (text.substr(i, 3) == "..." && !seen) {
      for (int64_t axis = ellipsis - 1; axis >= 0; --axis) out.push_back(first_ellipsis + static_cast<int>(axis));
      seen = true;
      i += 2;
    } else {
      refuse(equation, "labels are letters and one ellipsis an operand");
    }
  }
  return out;
}

std::vector<std::string_view> split_terms(std::string_view text) {
  std::vector<std::string_view> out;
  for (size_t comma; (comma = text.find(',')) != std::string_view::npos; text.remove_prefix(comma + 1))
    out.push_back(text.substr(0, comma));
  out.push_back(text);
  return out;
}

Labels implied_output(const std::vector<Term>& terms, int64_t ellipsis) {
  std::map<int, int> counts;  // sorted as ASCII, which is NumPy's order
  for (const auto& term : terms)
    for (int label : term.labels) ++counts[label];
  Labels out;
  for (int64_t axis = ellipsis - 1; axis >= 0; --axis) out.push_back(first_ellipsis + static_cast<int>(axis));
  for (auto [label, count] : counts)
    if (label < first_ellipsis && count == 1) out.push_back(label);
  return out;
}

// Keeps the elements whose indices along two axes are equal; the later axis goes.
void take_diagonals(Term& term) {
  for (size_t later = 1; later < term.labels.size(); ++later) {
    auto first = std::find(term.labels.begin(), term.labels.end(), term.labels[later]) - term.labels.begin();
    if (first == static_cast<std::ptrdiff_t>(later)) continue;
    Value x = term.value;
    auto axis = static_cast<int64_t>(later);
    auto positions = [&](int64_t along) { return iota(x.graph(), {DType::i32, {x.extent(along)}}, 0); };
    Value a = broadcast_in_dim(positions(first), x.shape(), {first}), b = broadcast_in_dim(positions(axis), x.shape(), {axis});
    term.value = sum(select(compare(a, b, Direction::EQ), x, scalar(x.graph(), x.dtype(), 0)), {axis});
    term.labels.erase(term.labels.begin() + axis);
    --later;
  }
}

void sum_out(Term& term, const std::vector<Term>& others, const Labels& output) {
  Ints axes;
  Labels kept;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    int label = term.labels[i];
    bool needed = contains(output, label) ||
                  std::any_of(others.begin(), others.end(), [&](const Term& other) { return contains(other.labels, label); });
    if (needed) {
      kept.push_back(label);
    } else {
      axes.push_back(static_cast<int64_t>(i));
    }
  }
  if (axes.empty()) return;
  term.value = sum(term.value, axes);
  term.labels = kept;
}

// Labels that both have and nobody needs afterwards are contracted.
Term contract(const Term& a, const Term& b, const std::vector<Term>& others, const Labels& output) {
  DotDims dims;
  Labels batch, free;
  for (size_t i = 0; i < a.labels.size(); ++i) {
    int label = a.labels[i];
    auto in_b = std::find(b.labels.begin(), b.labels.end(), label);
    if (in_b == b.labels.end()) {
      free.push_back(label);
      continue;
    }
    bool needed = contains(output, label) ||
                  std::any_of(others.begin(), others.end(), [&](const Term& other) { return contains(other.labels, label); });
    (needed ? dims.lhs_batch : dims.lhs_contracting).push_back(static_cast<int64_t>(i));
    (needed ? dims.rhs_batch : dims.rhs_contracting).push_back(in_b - b.labels.begin());
    if (needed) batch.push_back(label);
  }
  for (int label : b.labels)
    if (!contains(a.labels, label)) free.push_back(label);
  batch.insert(batch.end(), free.begin(), free.end());
  return {dot_general(a.value, b.value, dims), batch};
}

// Elements of the product of two terms before any sum: the pair that makes the least is contracted first.
double product_size(const Term& a, const Term& b) {
  auto size = static_cast<double>(a.value.shape().elements());
  for (size_t i = 0; i < b.labels.size(); ++i)
    if (!contains(a.labels, b.labels[i])) size *= static_cast<double>(b.value.extent(static_cast<int64_t>(i)));
  return size;
}

Term contract_all(std::vector<Term> terms, const Labels& output) {
  while (terms.size() > 1) {
    size_t left = 0, right = 1;
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < terms.size(); ++i)
      for (size_t j = i + 1; j < terms.size(); ++j)
        if (double size = product_size(terms[i], terms[j]); size < least) {
          least = size;
          left = i;
          right = j;
        }
    Term a = terms[left], b = terms[right];
    terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(right));
    terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(left));
    terms.push_back(contract(a, b, terms, output));
  }
  return terms[0];
}

}  // namespace

Value einsum(std::string_view equation, const std::vector<Value>& operands) {
  std::string text;
  for (char c : equation)
    if (c != ' ') text += c;
  size_t arrow = text.find("->");
  if (static_cast<size_t>(std::count(text.begin(), text.end(), ',')) >= most_operands)
    refuse(equation, "names more than {} operands", most_operands);
  auto inputs = split_terms(std::string_view(text).substr(0, arrow));
  if (inputs.size() != operands.size()) refuse(equation, "names {} operands; got {}", inputs.size(), operands.size());

  int64_t ellipsis = 0;
  std::vector<Term> terms;
  for (size_t i = 0; i < inputs.size(); ++i) {
    bool open = inputs[i].find("...") != std::string_view::npos;
    int64_t own = open ? operands[i].rank() - (static_cast<int64_t>(inputs[i].size()) - 3) : 0;
    terms.push_back({operands[i], read_labels(equation, inputs[i], own)});
    if (own < 0 || static_cast<int64_t>(terms[i].labels.size()) != operands[i].rank())
      refuse(equation, "operand {} is {}", i, to_string(operands[i].shape()));
    ellipsis = std::max(ellipsis, own);
  }
  Labels output = arrow == std::string::npos ? implied_output(terms, ellipsis)
                                             : read_labels(equation, std::string_view(text).substr(arrow + 2), ellipsis);

  std::map<int, int64_t> extents;
  for (const auto& term : terms)
    for (size_t i = 0; i < term.labels.size(); ++i) {
      int64_t extent = term.value.extent(static_cast<int64_t>(i));
      auto [known, added] = extents.try_emplace(term.labels[i], extent);
      if (known->second == 1) known->second = extent;
      if (extent != 1 && extent != known->second)
        refuse(equation, "operand {} has {} where another has {}", to_string(term.value.shape()), extent, known->second);
    }
  for (size_t i = 0; i < output.size(); ++i)
    if (extents.count(output[i]) == 0 || std::count(output.begin(), output.end(), output[i]) != 1)
      refuse(equation, "an output label stands once there and in an operand");

  for (auto& term : terms) {
    // An extent of 1 that broadcasts contributes a factor and no axis.
    for (size_t i = term.labels.size(); i-- > 0;) {
      if (term.value.extent(static_cast<int64_t>(i)) == extents[term.labels[i]]) continue;
      term.value = squeeze(term.value, {static_cast<int64_t>(i)});
      term.labels.erase(term.labels.begin() + static_cast<std::ptrdiff_t>(i));
    }
    take_diagonals(term);
  }
  for (size_t i = 0; i < terms.size(); ++i) {
    std::vector<Term> others = terms;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    sum_out(terms[i], others, output);
  }
  Term result = contract_all(std::move(terms), output);
  Ints permutation;
  for (int label : output) permutation.push_back(std::find(result.labels.begin(), result.labels.end(), label) - result.labels.begin());
  return transpose(result.value, permutation);
}

}  // namespace tutti
