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

// The same to be listened on: no host and "localhost" are 127.0.0.1, and another host than an address is refused.
HostAndPort place_to_listen(const std::string& address);
std::string address_text(const HostAndPort& place);  // "127.0.0.1:8000", "[::1]:8000"

}  // namespace tutti::serve
