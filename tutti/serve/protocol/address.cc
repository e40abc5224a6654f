#include "tutti/serve/protocol/address.h"

#include "tutti/base/error.h"

namespace tutti::serve {

HostAndPort host_and_port(const std::string& address) {
  const auto wrong = [&] {
    fail<InvalidArgument>("serve", "an address is [HOST]:PORT, as in :8000 or 0.0.0.0:8000; got '{}'", escape(address, 60));
  };
  const size_t colon = address.rfind(':');
  if (colon == address.npos) wrong();
  HostAndPort out;
  out.host = address.substr(0, colon);
  if (out.host.starts_with('[') && out.host.ends_with(']')) out.host = out.host.substr(1, out.host.size() - 2);
  const std::string port = address.substr(colon + 1);
  if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != port.npos || std::stoi(port) > 65535) wrong();
  out.port = static_cast<uint16_t>(std::stoi(port));
  return out;
}

}  // namespace tutti::serve
