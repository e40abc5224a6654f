// What plugins of several hosts tell each other while they find each other's devices: the callbacks of PJRT's client, which ask Hosts.
#pragma once

#include <pjrt_c_api.h>

#include "tutti/device/hosts.h"

namespace tutti::xla {

// The callbacks of `args`; `hosts` stays where it is as long as the client lives.
void set_key_values(PJRT_Client_Create_Args& args, const Hosts& hosts);

}  // namespace tutti::xla
