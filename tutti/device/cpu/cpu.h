// The default device: fused kernels chosen from an ordered list, the last one the reference.
#pragma once

#include "tutti/device/device.h"

namespace tutti {

std::unique_ptr<Device> make_cpu_device();

namespace cpu {

// The outputs of a graph without inputs: what devices fold constants with.
std::vector<Tensor> evaluate(const Graph& graph);

}  // namespace cpu

}  // namespace tutti
