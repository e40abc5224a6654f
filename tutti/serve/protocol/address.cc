#include "tutti/serve/protocol/address.h"

#include <arpa/inet.h>

#include "tutti/base/error.h"
#include "tutti/serve/protocol/network_options.h"

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

HostAndPort place_to_listen(const std::string& address) {
  HostAndPort place = host_and_port(address);
  if (place.host.empty() || place.host == "localhost") place.host = "127.0.0.1";
  in6_addr bytes = {};
  const int family = place.host.find(':') == place.host.npos ? AF_INET : AF_INET6;
  if (::inet_pton(family, place.host.c_str(), &bytes) != 1)
    fail<InvalidArgument>("serve", "a host to listen on is an address, as 0.0.0.0 or ::1; got '{}'", escape(place.host, 60));
  return place;
}

std::string address_text(const HostAndPort& place) {
  return place.host.find(':') == place.host.npos ? fmt::format("{}:{}", place.host, place.port)
                                                 : fmt::format("[{}]:{}", place.host, place.port);
}

void check_tls(const NetworkOptions& options) {
  if (options.tls_certificate.empty() != options.tls_key.empty())
    fail<InvalidArgument>("serve", "TLS needs both a certificate and a key: --tls-cert and --tls-key");
}

}  // namespace tutti::serve
