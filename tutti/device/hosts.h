// Processes that a launcher has started together, on one host or several: what a plugin needs to know of them so that the devices of all
// are one group. Who implements it is run/communicator.h.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace tutti {

struct Hosts {
  int node = 0, nodes = 1;  // this process, and all of them
  // What one puts under a name, all can get: waits so long for it. From any thread, as long as the process lives.
  std::function<void(const std::string& name, const std::string& value)> put;
  std::function<std::optional<std::string>(const std::string& name, double seconds)> get;
};

// Of this process, before the first device is opened; alone where nothing is set.
void set_hosts(Hosts hosts);
const Hosts& hosts();

}  // namespace tutti
