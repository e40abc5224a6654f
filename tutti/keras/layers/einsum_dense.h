// EinsumDense, whose weights' shapes follow from an equation; attention layers are made of it.
#pragma once

#include "tutti/keras/layer.h"

namespace tutti::keras {

Outputs einsum_dense(Call& c);

struct EinsumShapes {
  Ints kernel;
  Ints bias;  // broadcasts to the output; empty without bias_axes
  // Of the input and of the kernel: the axes that are summed over.
  Ints reduced, kernel_reduced;
  Ints kernel_scale;  // the kernel's extents in the output's axes, 1 elsewhere
  Ints input_axes;    // per axis of the output: the input's, or -1
};
// equation: "ab,bc->ac", "...ab,bc->...ac" or "ab...,bc->ac..."; output: the output's extents without the batch, -1 where the input tells.
EinsumShapes einsum_shapes(const Config& config, const std::string& equation, const std::string& bias_axes, const Shape& input,
                           const Ints& output);

}  // namespace tutti::keras
