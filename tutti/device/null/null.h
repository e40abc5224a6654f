// The device that verifies, plans and counts, and computes nothing: outputs are zeros. Weights need no values.
#pragma once

#include "tutti/device/device.h"

namespace tutti {

std::unique_ptr<Device> make_null_device();

}  // namespace tutti
