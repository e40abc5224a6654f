// Where a server listens, as an option says it.
#pragma once

#include <cstdint>
#include <string>

namespace tutti::serve {

struct HostAndPort {
  std::string host;  // "": none given
  uint16_t port = 0;
};
// "host:port", "[::1]:port" or ":port"; throws InvalidArgument.
HostAndPort host_and_port(const std::string& address);

}  // namespace tutti::serve
