// The micro-ops on floats, compiled for each instruction set; micro_ops.cc puts them behind find_micro_op.
#pragma once

#include "tutti/device/cpu/simd/micro_ops.h"

namespace tutti::cpu {

MicroOp find_unary_f32(Op op);
MicroOp find_binary_f32(Op op, unsigned scalars);
MicroOp find_compare_f32(std::string_view direction, unsigned scalars);
MicroOp find_select_f32(unsigned scalars);
MicroOp find_bools_to_f32();

}  // namespace tutti::cpu
