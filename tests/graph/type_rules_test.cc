#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/graph/graph.h"

namespace tutti {
namespace {

// The message with which a node on operands of the given types is refused.
std::string refusal(const std::vector<std::string>& types, const std::string& op, const std::string& rest, const std::string& results) {
  std::string text = "graph {\n", operands;
  for (size_t i = 0; i < types.size(); ++i) {
    text += fmt::format("%a{} = parameter {{role = \"input\", name = \"a\"}} : {}\n", i, types[i]);
    operands += fmt::format("{}%a{}", i == 0 ? "" : ", ", i);
  }
  try {
    parse_graph(fmt::format("{}{} = {}({}) {}\n}}\n", text, results, op, operands, rest));
  } catch (const InvalidArgument& e) {
    return e.what();
  }
  return "accepted";
}

struct Row {
  std::vector<std::string> types;
  std::string op, rest, message, results = "%r";
};

const std::string gather_rest = "operand_batching_dims = [], start_indices_batching_dims = []";

const Row rows[] = {
    {{"f32[3]"}, "add", "", "add takes 2 operands; got 1"},
    {{"f32[3]", "f32[4]"}, "add", "", "operands have one type; operand f32[3]; operand f32[4]"},
    {{"f32[3]", "f64[3]"}, "add", "", "operands have one type"},
    {{"bool[3]", "bool[3]"}, "subtract", "", "takes numbers; operand bool[3]"},
    {{"i32[3]"}, "tanh", "", "takes floats; operand i32[3]"},
    {{"f32[3]"}, "not", "", "takes integers or bool"},
    {{"bool[3]"}, "popcnt", "", "takes integers"},
    {{"bool[3]", "bool[3]"}, "shift_left", "", "takes integers"},
    {{"f32[3]", "f32[3]"}, "compare", "", "compare needs attribute direction:text"},
    {{"f32[3]", "f32[3]"}, "compare", "{direction = 3}", "compare needs attribute direction:text"},
    {{"f32[3]", "f32[3]"}, "compare", "{direction = \"XX\"}", "unknown direction 'XX'"},
    {{"f32[3]"}, "tanh", "{fast = 1}", "tanh takes attributes '' only"},
    {{"f32[3]"}, "convert", "{dtype = \"f99\"}", "unknown dtype 'f99'"},
    {{"f32[3]"}, "bitcast_convert", "{dtype = \"i64\"}", "cannot reinterpret as i64"},
    {{"u8[3]"}, "bitcast_convert", "{dtype = \"bool\"}", "cannot reinterpret as bool"},
    {{"i32[3]", "f32[3]", "f32[3]"}, "select", "", "takes a predicate and two values of its shape"},
    {{"bool[]", "f32[3]", "f32[3]"}, "select", "", "takes a predicate and two values of its shape"},
    {{"f32[3]"}, "broadcast_in_dim", "{shape = [3, 4], dimensions = [1]}", "cannot broadcast to [3, 4]"},
    {{"f32[3]"}, "broadcast_in_dim", "{shape = [3, 4], dimensions = [2]}", "dimensions [2] is outside of rank 2"},
    {{"f32[3, 3]"}, "broadcast_in_dim", "{shape = [3, 3], dimensions = [0, 0]}", "dimensions [0, 0] repeats an axis"},
    {{"f32[3, 3]"}, "broadcast_in_dim", "{shape = [3, 3], dimensions = [0]}", "dimensions has 1 entries, expected 2"},
    {{"f32[3]"}, "broadcast_in_dim", "{shape = [-3], dimensions = [0]}", "extents are not negative; got [-3]"},
    {{"f32[3]"}, "broadcast_in_dim", "{shape = [3, 281474976710656], dimensions = [0]}", "at most 2^48 elements"},
    {{"f32[1]"}, "broadcast_in_dim", "{shape = [0, 281474976710656, 2], dimensions = [0]}", "at most 2^48 elements"},
    {{"f32[6]"}, "reshape", "{shape = [4]}", "cannot reshape to [4]; operand f32[6]"},
    {{"f32[2, 3]"}, "transpose", "{permutation = [1, 1]}", "permutation [1, 1] repeats an axis"},
    {{"f32[5]"}, "slice", "{start = [3], limit = [2], strides = [1]}", "start [3], limit [2], strides [1] do not fit"},
    {{"f32[5]"}, "slice", "{start = [0], limit = [6], strides = [1]}", "do not fit"},
    {{"f32[5]"}, "slice", "{start = [0], limit = [5], strides = [0]}", "do not fit"},
    {{"f32[5]", "f32[1]"}, "pad", "{low = [0], high = [0], interior = [0]}", "takes a scalar padding value"},
    {{"f32[5]", "f32[]"}, "pad", "{low = [0], high = [0], interior = [-1]}", "dilation 0 is out of range"},
    {{"f32[5]", "f32[]"},
     "pad",
     "{low = [9223372036854775807], high = [0], interior = [0]}",
     "padding 9223372036854775807 is out of range"},
    {{"f32[2, 3]", "f32[2, 4]"}, "concatenate", "{dimension = 0}", "operands differ outside of dimension 0"},
    {{"f32[2, 3]", "f32[2]"}, "concatenate", "{dimension = 0}", "operands have one dtype and rank"},
    {{"f32[2, 3]"}, "concatenate", "{dimension = 2}", "dimension 2 is outside of the operands"},
    {{"f32[0, 281474976710656]", "f32[0, 281474976710656]"},
     "concatenate",
     "{dimension = 1}",
     "the joined extent 562949953421312 is out of"},
    {{"f32[2]"}, "reverse", "{dimensions = [0, 0]}", "dimensions [0, 0] repeats an axis"},
    {{"f32[2, 3]", "i32[]"}, "dynamic_slice", "{sizes = [1, 1]}", "takes one start per axis"},
    {{"f32[2]", "f32[]"}, "dynamic_slice", "{sizes = [1]}", "starts are integer scalars"},
    {{"f32[2]", "i32[]"}, "dynamic_slice", "{sizes = [3]}", "sizes [3] do not fit"},
    {{"f32[2]", "f32[3]", "i32[]"}, "dynamic_update_slice", "", "update does not fit"},
    {{"f32[2]", "f64[1]", "i32[]"}, "dynamic_update_slice", "", "update does not fit"},
    {{"f32[7, 3]", "f32[5]"},
     "gather",
     "{offset_dims = [1], collapsed_slice_dims = [0], " + gather_rest +
         ", start_index_map = [0], index_vector_dim = 1, slice_sizes = [1, 3]}",
     "indices are integers"},
    {{"f32[7, 3]", "i32[5]"},
     "gather",
     "{offset_dims = [1], collapsed_slice_dims = [0], " + gather_rest +
         ", start_index_map = [0, 1], index_vector_dim = 1, slice_sizes = [1, 3]}",
     "start_index_map has 2 entries, the index vector 1"},
    {{"f32[7, 3]", "i32[5]"},
     "gather",
     "{offset_dims = [1], collapsed_slice_dims = [0], " + gather_rest +
         ", start_index_map = [0], index_vector_dim = 3, slice_sizes = [1, 3]}",
     "index_vector_dim 3 is outside of the indices"},
    {{"f32[7, 3]", "i32[5]"},
     "gather",
     "{offset_dims = [1], collapsed_slice_dims = [0], " + gather_rest +
         ", start_index_map = [0], index_vector_dim = 1, slice_sizes = [1, 4]}",
     "slice_sizes [1, 4] do not fit"},
    {{"f32[7, 3]", "i32[5]"},
     "gather",
     "{offset_dims = [1], collapsed_slice_dims = [0], " + gather_rest +
         ", start_index_map = [0], index_vector_dim = 1, slice_sizes = [0, 3]}",
     "collapsed and batching dims have slices of 1"},
    {{"f32[7, 3]", "i32[5]"},
     "gather",
     "{offset_dims = [], collapsed_slice_dims = [0], " + gather_rest +
         ", start_index_map = [0], index_vector_dim = 1, slice_sizes = [1, 3]}",
     "offset_dims has 0 entries, the slice 1 axes"},
    {{"f32[7, 3]", "i32[5]"},
     "gather",
     "{offset_dims = [1, 0], collapsed_slice_dims = [], " + gather_rest +
         ", start_index_map = [0], index_vector_dim = 1, slice_sizes = [1, 3]}",
     "offset_dims [1, 0] are not in order"},
    {{"f32[5, 3]", "i32[5, 1]"},
     "gather",
     "{offset_dims = [1], collapsed_slice_dims = [], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = "
     "[0], "
     "index_vector_dim = 1, slice_sizes = [1, 3]}",
     "axis 0 is named twice by start_index_map and operand_batching_dims"},
    {{"f32[5, 3]", "i32[4, 1]"},
     "gather",
     "{offset_dims = [1], collapsed_slice_dims = [], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = "
     "[1], "
     "index_vector_dim = 1, slice_sizes = [1, 3]}",
     "batching dims do not fit"},
    {{"f32[7]", "i32[5]", "f32[5]"},
     "scatter",
     "{update_window_dims = [], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], "
     "scatter_dims_to_operand_dims = [0], index_vector_dim = 1, kind = \"xor\"}",
     "unknown kind 'xor'"},
    {{"f32[7]", "i32[5]", "f64[5]"},
     "scatter",
     "{update_window_dims = [], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], "
     "scatter_dims_to_operand_dims = [0], index_vector_dim = 1, kind = \"add\"}",
     "dtypes do not fit"},
    {{"f32[7]", "i32[5]", "f32[4]"},
     "scatter",
     "{update_window_dims = [], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], "
     "scatter_dims_to_operand_dims = [0], index_vector_dim = 1, kind = \"add\"}",
     "updates do not match the indices"},
    {{"f32[7]", "i32[5]", "f32[5, 8]"},
     "scatter",
     "{update_window_dims = [1], inserted_window_dims = [], input_batching_dims = [], scatter_indices_batching_dims = [], "
     "scatter_dims_to_operand_dims = [0], index_vector_dim = 1, kind = \"add\"}",
     "an update window is larger than the operand"},
    {{"f32[7]", "i32[5]", "f32[5, 1]"},
     "scatter",
     "{update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], "
     "scatter_dims_to_operand_dims = [0], index_vector_dim = 1, kind = \"add\"}",
     "the dims do not add up"},
    {{"f32[3]"}, "sort", "{dimension = 1, descending = 0}", "dimension 1 is outside of the operands"},
    {{"f32[3]", "i32[4]"}, "sort", "{dimension = 0, descending = 0}", "operands have one shape", "%r, %s"},
    {{"f32[3]"}, "reduce", "{kind = \"mean\", dimensions = [0]}", "unknown kind 'mean'"},
    {{"f32[3]"}, "reduce", "{kind = \"add\", dimensions = [1]}", "dimensions [1] is outside of rank 1"},
    {{"f32[3]"}, "reduce", "{kind = \"or\", dimensions = [0]}", "and, or take bool"},
    {{"f32[3]"},
     "reduce_window",
     "{kind = \"add\", window = [0], strides = [1], base_dilation = [1], window_dilation = [1], low = [0], high = [0]}",
     "window [0] is not positive"},
    {{"f32[3]"},
     "reduce_window",
     "{kind = \"add\", window = [1], strides = [0], base_dilation = [1], window_dilation = [1], low = [0], high = [0]}",
     "stride 0 is not positive"},
    {{"f32[3, 4]", "f64[4, 5]"},
     "dot_general",
     "{lhs_batch = [], rhs_batch = [], lhs_contracting = [1], rhs_contracting = [0]}",
     "operands have one dtype"},
    {{"f32[3, 4]", "f32[5, 4]"},
     "dot_general",
     "{lhs_batch = [], rhs_batch = [], lhs_contracting = [1], rhs_contracting = [0]}",
     "axes [1] and [0] differ in extent"},
    {{"f32[3, 4]", "f32[4, 5]"},
     "dot_general",
     "{lhs_batch = [], rhs_batch = [], lhs_contracting = [1], rhs_contracting = []}",
     "axes differ in number"},
    {{"f32[4, 4]", "f32[4, 4]"},
     "dot_general",
     "{lhs_batch = [1], rhs_batch = [0], lhs_contracting = [1], rhs_contracting = [1]}",
     "lhs axes [1, 1] repeats an axis"},
    {{"f32[1, 5, 3]", "f32[3, 2, 4]"},
     "convolution",
     "{strides = [1], low = [0], high = [0], lhs_dilation = [1], rhs_dilation = [1], groups = 1}",
     "3 channels, 1 groups, 4 features do not fit"},
    {{"f32[1, 3]", "f32[3, 4]"},
     "convolution",
     "{strides = [], low = [], high = [], lhs_dilation = [], rhs_dilation = [], groups = 1}",
     "takes [n, spatial..., c] and [spatial..., c / groups, o] of one dtype"},
    {{"f32[1, 5, 3]", "f32[0, 3, 4]"},
     "convolution",
     "{strides = [1], low = [0], high = [0], lhs_dilation = [1], rhs_dilation = [1], groups = 1}",
     "the kernel is empty"},
    {{"f32[1, 5, 3]", "f32[1, 3, 4]"},
     "convolution",
     "{strides = [1], low = [0], high = [0], lhs_dilation = [0], rhs_dilation = [1], groups = 1}",
     "dilation 0 is out of range"},
    {{"f32[2]"}, "all_reduce", "{replicas = 0}", "replicas 0 are out of range"},
    {{"f32[2]", "i32[2]"}, "all_reduce", "{replicas = 2}", "operands are numbers of one dtype", "%r, %s"},
    {{"bool[2]"}, "all_reduce", "{replicas = 2}", "operands are numbers of one dtype"},
    {{"u64[4]"}, "random_bits", "{shape = [2]}", "takes keys u64[..., 2] or u64[..., 3]"},
    {{"f32[2]"}, "scan", "{carries = 1, slices = 0, length = 3, reverse = 0}", "needs a body"},
    {{"f32[2]"},
     "scan",
     "{carries = 9223372036854775807, slices = 1, length = 3, reverse = 0} {\n%c = parameter {role = \"input\", name = \"c\"} : "
     "f32[2]\nreturn %c "
     "\"c\"\n}",
     "9223372036854775807 carries and 1 slices do not fit a body of 1 parameters"},
    {{"f32[2]"},
     "scan",
     "{carries = 1, slices = 0, length = 3, reverse = 0} {\n%c = parameter {role = \"input\", name = \"c\"} : f32[3]\nreturn %c \"c\"\n}",
     "body parameter 0 is f32[3], expected f32[2]"},
    {{"f32[2]"},
     "scan",
     "{carries = 0, slices = 1, length = 3, reverse = 0} {\n%c = parameter {role = \"input\", name = \"c\"} : f32[]\nreturn %c \"c\"\n}",
     "slices have 3 steps along axis 0"},
    {{"f32[2]"},
     "scan",
     "{carries = 1, slices = 0, length = 3, reverse = 0} {\n%c = parameter {role = \"input\", name = \"c\"} : f32[2]\n%d = convert(%c) "
     "{dtype = "
     "\"f16\"}\nreturn %d \"c\"\n}",
     "carry 0 becomes f16[2]"},
    {{"f32[2]"},
     "scan",
     "{carries = 1, slices = 0, length = 3, reverse = 0} {\n%c = parameter {role = \"input\", name = \"c\"} : f32[2]\n%w = parameter {role "
     "= "
     "\"weight\", name = \"w\"} : f32[2]\nreturn %c \"c\"\n}",
     "a body has inputs and constants only"},
};

TEST(type_rules, refuse_what_does_not_fit_and_say_why) {
  for (const auto& row : rows) {
    std::string message = refusal(row.types, row.op, row.rest, row.results);
    EXPECT_NE(message.find(row.message), std::string::npos) << row.op << " " << row.rest << "\n  said: " << message;
  }
}

TEST(type_rules, refuse_leaves_that_do_not_fit) {
  Graph graph;
  EXPECT_THROW(graph.iota({DType::f32, {3}}, 1), InvalidArgument);
  EXPECT_THROW(graph.iota({DType::boolean, {3}}, 0), InvalidArgument);
  EXPECT_THROW(graph.parameter(Graph::Role::weight, "w", {DType::f32, {3}}, Tensor(DType::f32, {4})), InvalidArgument);
  EXPECT_TRUE(graph.nodes().empty());
}

TEST(type_rules, an_operand_of_another_graph_is_our_bug) {
  Graph a, b;
  Value x = a.input("x", {DType::f32, {3}});
  EXPECT_THROW(b.add(Op::tanh, {x}), InternalError);
}

}  // namespace
}  // namespace tutti
