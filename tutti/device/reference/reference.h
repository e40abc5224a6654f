// The oracle: every op as plain loops, accumulating in double. Never fast.
#pragma once

#include "tutti/device/device.h"

namespace tutti {

std::unique_ptr<Device> make_reference_device();

}  // namespace tutti
