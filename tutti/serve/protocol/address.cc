#include "tutti/serve/protocol/address.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <memory>
#include <system_error>

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
  if (options.tls_certificate.empty()) return;
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (context == nullptr) fail<DeviceError>("serve", "TLS is not to be had here");
  SSL_CTX_set_default_passwd_cb(context.get(), [](char*, int, int, void*) { return -1; });  // else it asks the terminal
  const auto check = [](int good, std::string_view what) {
    const unsigned long error = ERR_peek_error();
    const char* reason = ERR_reason_error_string(error);
    ERR_clear_error();
    if (good == 1) return;
    const auto system = [&] { return std::error_code(ERR_GET_REASON(error), std::generic_category()).message(); };
    fail<InvalidArgument>("serve", "{} can be read: {}", what,
                          ERR_SYSTEM_ERROR(error) ? system()
                          : reason == nullptr     ? "there is none"
                                                  : reason);
  };
  check(SSL_CTX_use_certificate_chain_file(context.get(), options.tls_certificate.c_str()), "--tls-cert: no certificate in PEM");
  check(SSL_CTX_use_PrivateKey_file(context.get(), options.tls_key.c_str(), SSL_FILETYPE_PEM),
        "--tls-key: no key in PEM without a password that belongs to the certificate");
}

}  // namespace tutti::serve
