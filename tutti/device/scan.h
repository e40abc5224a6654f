// The kernel of scan: a body's steps run `length` times in a frame inside the node's workspace.
#pragma once

#include "tutti/device/step.h"

namespace tutti {

Kernel make_scan(const Node& scan, std::vector<Step> body);

}  // namespace tutti
