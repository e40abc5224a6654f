// What is read of XLA's programs, from messages written here.
#include "tutti/device/xla/hlo.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/device/xla/proto.h"

namespace tutti::xla {
namespace {

std::string shape(const Ints& extents) {
  ProtoWriter out;
  out.number(2, 11);  // f32
  for (int64_t extent : extents) out.number(3, static_cast<uint64_t>(extent));
  return out.bytes();
}

ProtoWriter instruction(uint64_t id, const char* opcode, const Ints& extents, const std::vector<uint64_t>& operands = {}) {
  ProtoWriter out;
  out.text(1, "name").text(2, opcode).text(3, shape(extents)).number(35, id);
  for (uint64_t operand : operands) out.number(36, operand);
  return out;
}

std::string computation(uint64_t id, const std::vector<ProtoWriter>& instructions) {
  ProtoWriter out;
  for (const auto& one : instructions) out.text(2, one.bytes());
  out.number(5, id);
  return out.bytes();
}

// x [4, 8] is an input, w [8, 2] a weight: a dot, a fusion of two ops, a library's product in a loop of three.
std::string module() {
  ProtoWriter dot = instruction(3, "dot", {4, 2}, {1, 2});
  dot.text(30, ProtoWriter().number(1, 1).bytes());
  ProtoWriter fusion = instruction(4, "fusion", {4, 2}, {3});
  fusion.text(11, "kLoop").number(38, 20);
  ProtoWriter loop = instruction(5, "while", {4, 2}, {4});
  loop.number(38, 30).text(43, R"({"known_trip_count":{"n":"3"}})");
  ProtoWriter gemm = instruction(31, "custom-call", {4, 4}, {32, 32});
  gemm.text(28, "__cublas$gemm").text(43, R"({"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}}})");
  ProtoWriter out;
  out.text(3, computation(20, {instruction(21, "parameter", {4, 2}), instruction(22, "add", {4, 2}, {21, 21}),
                               instruction(23, "tanh", {4, 2}, {22})}));
  out.text(3, computation(30, {instruction(32, "parameter", {4, 2}), gemm}));
  out.text(3, computation(10, {instruction(1, "parameter", {4, 8}), instruction(2, "parameter", {8, 2}).number(9, 1), dot, fusion, loop,
                               instruction(6, "tuple", {4, 2}, {5})}));
  out.number(6, 10);
  return out.bytes();
}

TEST(hlo, kernels_are_counted_and_priced) {
  const HloKernels found = kernels_of(module(), 1);
  EXPECT_EQ(found.launches, 1 + 1 + 3);
  EXPECT_EQ(found.fusions, 1);
  EXPECT_EQ(found.library_calls, 1);
  ASSERT_EQ(found.steps.size(), 4u);
  EXPECT_EQ(found.steps[0].kernel, "dot");
  EXPECT_EQ(found.steps[0].flops, 2 * 4 * 2 * 8);
  EXPECT_EQ(found.steps[0].weight_bytes, 8 * 2 * 4);
  EXPECT_EQ(found.steps[0].value_bytes, 4 * 8 * 4 + 4 * 2 * 4);
  EXPECT_EQ(found.steps[1].kernel, "fusion Loop");
  EXPECT_EQ(found.steps[1].ops, (std::vector<std::string>{"add", "tanh"}));
  EXPECT_EQ(found.steps[1].flops, 16);
  EXPECT_EQ(found.steps[2].kernel, "while");
  EXPECT_EQ(found.steps[2].flops, 3 * 2 * 16 * 2);
  EXPECT_EQ(found.steps[3].kernel, "cuBLAS gemm");
  EXPECT_EQ(found.steps[3].depth, 1);
  EXPECT_EQ(found.steps[3].runs, 3);
  EXPECT_EQ(found.steps[3].result, (Type{DType::f32, {4, 4}}));
}

TEST(hlo, slices_that_a_fusion_takes_or_writes_are_what_it_moves) {
  ProtoWriter fusion = instruction(3, "fusion", {10, 4}, {1, 2});
  fusion.text(11, "kLoop").number(38, 20);
  ProtoWriter fused(ProtoWriter().text(
      3, computation(20, {instruction(21, "parameter", {10, 4}), instruction(22, "parameter", {100, 4}).number(9, 1),
                          instruction(23, "dynamic-slice", {1, 4}, {22}), instruction(24, "dynamic-update-slice", {10, 4}, {21, 23})}) +
             ProtoWriter().number(6, 24).bytes()));
  fused.text(3, computation(10, {instruction(1, "parameter", {10, 4}), instruction(2, "parameter", {100, 4}).number(9, 1), fusion}));
  fused.number(6, 10);
  const HloKernels found = kernels_of(fused.bytes(), 2);
  ASSERT_EQ(found.steps.size(), 1u);
  EXPECT_EQ(found.steps[0].value_bytes, 16 + 16);  // a slice read, a slice written
}

TEST(hlo, a_message_cut_anywhere_is_an_error_or_a_smaller_program) {
  const std::string whole = module();
  int errors = 0;
  for (size_t length = 0; length < whole.size(); ++length) {
    try {
      kernels_of(std::string_view(whole).substr(0, length), 1);
    } catch (const DeviceError&) {
      ++errors;
    }
  }
  EXPECT_EQ(errors, static_cast<int>(whole.size()));  // the number of the entry comes last
}

TEST(hlo, numbers_of_messages_have_at_most_64_bits) {
  std::string bytes(11, '\xff');
  EXPECT_THROW(ProtoReader(bytes).next(), DeviceError);
  EXPECT_THROW(ProtoReader(std::string_view("\x0b", 1)).next(), DeviceError);  // a group
  EXPECT_FALSE(ProtoReader("").next());
}

}  // namespace
}  // namespace tutti::xla
