// Devices of PJRT plugins: CUDA, ROCm, TPU, and XLA's own CPU.
#pragma once

#include "tutti/device/device.h"

namespace tutti {

// By a name that xla::device_name() takes. Throws DeviceError with the reason when it cannot be had.
std::unique_ptr<Device> make_xla_device(const std::string& name);

// Platforms in the order in which --device auto tries them, with why they cannot be had where that is known at once; those that can be
// had are listed with all of their devices.
std::vector<DeviceListing> list_xla_devices();

}  // namespace tutti
