#include "tutti/serve/grpc/connections.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "tutti/base/error.h"
#include "tutti/base/start_thread.h"
#include "tutti/serve/local/region.h"
#include "tutti/serve/protocol/address.h"

namespace tutti::serve {

namespace {

using local::Descriptor;

constexpr std::chrono::milliseconds look_every(100);

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t bytes = sizeof(storage);
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

SocketAddress socket_address(const HostAndPort& place) {
  SocketAddress out;
  if (place.host.find(':') == place.host.npos) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(out.storage);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(place.port);
    ::inet_pton(AF_INET, place.host.c_str(), &v4.sin_addr);
    out.bytes = sizeof(v4);
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(out.storage);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(place.port);
    ::inet_pton(AF_INET6, place.host.c_str(), &v6.sin6_addr);
    out.bytes = sizeof(v6);
  }
  return out;
}

HostAndPort place_of(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address.storage);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    return {text, ntohs(v4.sin_port)};
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address.storage);
  const bool is_v4 = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr);  // by a socket that answers both
  if (is_v4)
    ::inet_ntop(AF_INET, v6.sin6_addr.s6_addr + 12, text, sizeof(text));
  else
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  return {text, ntohs(v6.sin6_port)};
}

// "ipv6:%5B::1%5D:4000" -> "::1 4000".
std::string key_of_peer(std::string_view peer) {
  const size_t scheme = peer.find(':'), port = peer.rfind(':');
  if (scheme == peer.npos || port <= scheme) return "";
  std::string_view host = peer.substr(scheme + 1, port - scheme - 1);
  for (std::string_view bracket : {"%5B", "["})
    if (host.starts_with(bracket)) host.remove_prefix(bracket.size());
  for (std::string_view bracket : {"%5D", "]"})
    if (host.ends_with(bracket)) host.remove_suffix(bracket.size());
  if (const size_t zone = host.find('%'); zone != host.npos) host = host.substr(0, zone);
  return fmt::format("{} {}", host, peer.substr(port + 1));
}

std::string key_of(const HostAndPort& place) { return fmt::format("{} {}", place.host, place.port); }

Descriptor listen_on(const HostAndPort& place) {
  SocketAddress address = socket_address(place);
  Descriptor listener(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  // Those that are accepted inherit it.
  if (!listener || ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
      ::setsockopt(listener.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) != 0 ||
      ::bind(listener.get(), address.get(), address.bytes) != 0 || ::listen(listener.get(), 1024) != 0)
    fail<InvalidArgument>("serve", "cannot listen on {}: {}", address_text(place), std::strerror(errno));
  return listener;
}

}  // namespace

class Connections::Watch {
 public:
  explicit Watch(Options options)
      : options_(std::move(options)),
        listener_(listen_on(place_to_listen(options_.address))),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (!wake_ || !epoll_) fail<DeviceError>("serve", "no descriptors are left: {}; hint: ulimit -n", std::strerror(errno));
    SocketAddress bound;
    ::getsockname(listener_.get(), bound.get(), &bound.bytes);
    place_ = place_of(bound);
    add(listener_.get(), EPOLLIN);
    add(wake_.get(), EPOLLIN);
  }
  ~Watch() { stop(); }

  const HostAndPort& place() const { return place_; }

  void start(std::function<void(int)> take, std::function<void()> tick) {
    take_ = std::move(take);
    tick_ = std::move(tick);
    thread_ = start_thread([this] { run(); });
  }

  void stop() {
    if (!thread_.joinable()) return;
    ending_ = true;
    const uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof(one));
    thread_.join();
    listener_ = Descriptor();
  }

  std::shared_ptr<ConnectionActivity> activity_of(std::string_view peer) const {
    std::scoped_lock lock(mutex_);
    const auto found = by_peer_.find(key_of_peer(peer));
    return found == by_peer_.end() ? nullptr : found->second;
  }

 private:
  struct Open {
    Descriptor socket;  // ours of two: when both ways are shut the connection is over, whoever did it
    std::string key;
    std::shared_ptr<ConnectionActivity> activity;
  };

  void add(int descriptor, uint32_t events) {
    epoll_event event{.events = events, .data = {.fd = descriptor}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0)
      fail<DeviceError>("serve", "a descriptor cannot be waited for: {}", std::strerror(errno));
  }

  void run() {
    auto next_look = Clock::now() + look_every;
    while (!ending_) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_look - Clock::now()).count();
      epoll_event events[64];
      const int count = ::epoll_wait(epoll_.get(), events, 64, static_cast<int>(std::max<int64_t>(left, 0)));
      for (int i = 0; i < count; ++i) {
        if (events[i].data.fd == listener_.get())
          accept_some();
        else if (events[i].data.fd != wake_.get())
          forget(events[i].data.fd);
      }
      if (Clock::now() < next_look) continue;
      next_look = Clock::now() + look_every;
      cut_off_silent();
      tick_();
    }
  }

  void accept_some() {
    for (int i = 0; i < 64; ++i) {
      SocketAddress peer;
      Descriptor socket(::accept4(listener_.get(), peer.get(), &peer.bytes, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) {
        // With no descriptors left the listener stays readable: not to be spun on.
        if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return;
      }
      Descriptor second(options_.counters->open < options_.most ? ::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0) : -1);
      if (!second) {  // closed without a word: a client that is greeted first takes it for a success, and tries again without end
        ++options_.counters->refused;
        continue;
      }
      Open open{std::move(second), key_of(place_of(peer)), std::make_shared<ConnectionActivity>()};
      const int number = open.socket.get();
      ++options_.counters->open;
      {
        std::scoped_lock lock(mutex_);
        by_peer_[open.key] = open.activity;
      }
      connections_.emplace(number, std::move(open));
      add(number, 0);  // an end is told without being asked for
      take_(socket.release());
    }
  }

  void forget(int number) {
    const auto found = connections_.find(number);
    if (found == connections_.end()) return;
    {
      std::scoped_lock lock(mutex_);
      const auto known = by_peer_.find(found->second.key);
      if (known != by_peer_.end() && known->second == found->second.activity) by_peer_.erase(known);
    }
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, number, nullptr);  // closing one of two descriptors would not end it
    connections_.erase(found);
    --options_.counters->open;
  }

  // By being shut: whoever has the other descriptor finds out, and so do we.
  void cut_off_silent() {
    const auto now = Clock::now();
    for (auto& [number, open] : connections_)
      if (open.activity->calls == 0 && now - Clock::time_point(Clock::duration(open.activity->last)) > options_.silence)
        ::shutdown(number, SHUT_RDWR);
  }

  const Options options_;
  Descriptor listener_, wake_, epoll_;
  HostAndPort place_;
  std::function<void(int)> take_;
  std::function<void()> tick_;
  std::atomic<bool> ending_ = false;
  std::unordered_map<int, Open> connections_;  // of the thread
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<ConnectionActivity>> by_peer_;
  std::thread thread_;
};

Connections::Connections(Options options) : watch_(std::make_unique<Watch>(std::move(options))) {}
Connections::~Connections() = default;
std::string Connections::address() const { return address_text(watch_->place()); }
void Connections::start(std::function<void(int)> take, std::function<void()> tick) { watch_->start(std::move(take), std::move(tick)); }
void Connections::stop() { watch_->stop(); }
std::shared_ptr<ConnectionActivity> Connections::activity_of(std::string_view peer) const { return watch_->activity_of(peer); }

}  // namespace tutti::serve
