#include "tutti/keras/layers/einsum_dense.h"

#include <algorithm>
#include <map>

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"
#include "tutti/graph/einsum.h"
#include "tutti/keras/activations.h"
#include "tutti/keras/layers/lora.h"
#include "tutti/keras/layers/quantized.h"

namespace tutti::keras {

namespace {

constexpr size_t longest_term = 64;

struct Equation {
  std::string input, kernel, output;  // letters only
  bool left_open = false, right_open = false;
};

Equation read_equation(const Config& config, const std::string& text) {
  size_t comma = text.find(','), arrow = text.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || comma > arrow)
    config.invalid("'equation' is [X],[Y]->[Z]; got '{}'", escape(text));
  Equation out{text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1), text.substr(arrow + 2)};
  auto strip = [](std::string& term, bool left) {
    bool open = left ? term.starts_with("...") : term.ends_with("...");
    if (open) term.erase(left ? 0 : term.size() - 3, 3);
    return open;
  };
  out.left_open = strip(out.input, true);
  out.right_open = !out.left_open && strip(out.input, false);
  bool output_left = strip(out.output, true), output_right = !output_left && strip(out.output, false);
  auto letters = [](const std::string& term) {
    return !term.empty() && term.size() <= longest_term &&
           std::all_of(term.begin(), term.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
  };
  if (output_left != out.left_open || output_right != out.right_open || !letters(out.input) || !letters(out.kernel) || !letters(out.output))
    config.invalid("'equation' is [X],[Y]->[Z] with the ellipsis on one side; got '{}'", escape(text));
  return out;
}

}  // namespace

EinsumShapes einsum_shapes(const Config& config, const std::string& text, const std::string& bias_axes, const Shape& input,
                           const Ints& output) {
  Equation equation = read_equation(config, text);
  auto labelled = static_cast<int64_t>(equation.input.size());
  int64_t elided = input.rank() - labelled;
  if (elided < 0 || (elided > 0 && !equation.left_open && !equation.right_open))
    config.invalid("'equation' '{}' does not fit an input of {}", escape(text), to_string(input));
  std::map<char, int64_t> extents;
  for (int64_t i = 0; i < labelled; ++i) extents[equation.input[static_cast<size_t>(i)]] = input[i + (equation.left_open ? elided : 0)];

  // The output's extents with the batch and the elided ones: what stands left of the given ones, in Keras's count.
  Ints full = output;
  full.insert(full.begin(), input.rank() > 0 ? input[0] : 1);
  if (equation.left_open && elided > 1) full.insert(full.begin() + 1, input.begin() + 1, input.begin() + elided);
  int64_t first = equation.left_open ? elided : 0;
  if (first + static_cast<int64_t>(equation.output.size()) > static_cast<int64_t>(full.size()))
    config.invalid("'output_shape' {} is too short for '{}'", to_string(output), escape(text));
  std::map<char, int64_t> result;
  for (size_t i = 0; i < equation.output.size(); ++i) {
    char label = equation.output[i];
    int64_t given = full[static_cast<size_t>(first) + i];
    auto known = extents.find(label);
    if (given < 0 && known == extents.end()) config.invalid("'output_shape' leaves '{}' of '{}' open", label, escape(text));
    if (given >= 0 && known != extents.end() && given != known->second)
      config.invalid("'{}' is {} in the input and {} in 'output_shape'", label, known->second, given);
    result[label] = given < 0 ? known->second : given;
  }

  EinsumShapes shapes;
  for (char label : equation.kernel) {
    auto in_output = result.find(label), in_input = extents.find(label);
    if (in_output == result.end() && in_input == extents.end())
      config.invalid("'{}' of the kernel stands nowhere else in '{}'", label, escape(text));
    if (in_output == result.end()) shapes.kernel_reduced.push_back(static_cast<int64_t>(shapes.kernel.size()));
    shapes.kernel.push_back(in_output != result.end() ? in_output->second : in_input->second);
  }
  int64_t left = equation.left_open ? elided : 0;
  auto add_elided = [&](int64_t first_axis) {
    for (int64_t i = 0; i < elided; ++i) {
      shapes.input_axes.push_back(first_axis + i);
      shapes.kernel_scale.push_back(1);
    }
  };
  if (equation.left_open) add_elided(0);
  for (char label : equation.output) {
    size_t at = equation.input.find(label);
    shapes.input_axes.push_back(at == std::string::npos ? -1 : static_cast<int64_t>(at) + left);
    shapes.kernel_scale.push_back(equation.kernel.find(label) == std::string::npos ? 1 : result[label]);
  }
  if (equation.right_open) add_elided(labelled);
  for (size_t i = 0; i < equation.input.size(); ++i)
    if (result.count(equation.input[i]) == 0) shapes.reduced.push_back(static_cast<int64_t>(i) + left);
  if (bias_axes.empty()) return shapes;
  if (bias_axes.size() > longest_term) config.invalid("'bias_axes' has {} labels", bias_axes.size());
  size_t begin = equation.output.size();
  for (char label : bias_axes) {
    size_t at = equation.output.find(label);
    if (at == std::string::npos) config.invalid("'bias_axes' has '{}', which is not in the output of '{}'", label, escape(text));
    begin = std::min(begin, at);
  }
  for (size_t i = begin; i < equation.output.size(); ++i) {
    char label = equation.output[i];
    shapes.bias.push_back(bias_axes.find(label) != std::string::npos ? result[label] : 1);
  }
  if (!equation.left_open) shapes.bias.insert(shapes.bias.end(), static_cast<size_t>(elided), 1);
  return shapes;
}

Outputs einsum_dense(Call& c) {
  Value x = c.x();
  std::string equation = c.config.text("equation"), bias_axes = c.config.text("bias_axes", "");
  const Json& given = c.config.at("output_shape");
  Ints output;
  if (given.is_list()) {
    for (const Json& item : given.items()) {
      if (!item.is_null() && (!item.is_int() || item.as_int() < 0))
        c.config.invalid("'output_shape' holds extents; got {}", escape(given.dump(), 60));
      output.push_back(item.is_null() ? -1 : item.as_int());
    }
  } else {
    output = {c.config.integer("output_shape")};
  }
  EinsumShapes shapes = einsum_shapes(c.config, equation, bias_axes, x.shape(), output);
  Value y;
  if (auto quantization = read_quantization(c)) {
    y = quantized_einsum_dense(c, *quantization, convert(x, c.policy.compute), equation, shapes);
  } else {
    Value kernel = c.weight("kernel", shapes.kernel, {.trainable = !has_lora(c)});
    Value bias = bias_axes.empty() ? Value{} : c.weight("bias", shapes.bias);
    y = einsum(equation, {convert(x, kernel.dtype()), with_lora(c, kernel)});
    if (bias) y = y + bias;
  }
  return activate(c, c.config.get("activation"), y);
}

}  // namespace tutti::keras
