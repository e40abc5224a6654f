#include "tutti/serve/local/server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>

#include "tutti/base/json.h"
#include "tutti/base/start_thread.h"
#include "tutti/serve/local/connection.h"

namespace tutti::serve::local {

namespace {

constexpr Json::Limits control_limits{.bytes = most_message, .depth = 8, .values = 1000};

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path) || path.find('\0') != std::string::npos)
    fail<InvalidArgument>("serve", "a socket's path has 1 to {} bytes; got {}: '{}'", sizeof(address.sun_path) - 1, path.size(),
                          escape(path));
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// Takes away a socket whose server is gone.
void clear_place(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return;
  if (!S_ISSOCK(found.st_mode)) fail<InvalidArgument>("serve", "'{}' is there, and is no socket", escape(path));
  const sockaddr_un address = address_of(path);
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 || errno != ECONNREFUSED)
    fail<InvalidArgument>("serve", "another server listens at '{}'; hint: another --socket", escape(path));
  ::unlink(path.c_str());
}

Descriptor listen_at(const std::string& path) {
  const sockaddr_un address = address_of(path);
  clear_place(path);
  Descriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // The mode at bind() is the file's from the beginning: there is no moment at which others could connect.
  if (!listener || ::fchmod(listener.get(), 0600) != 0 ||
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 || ::chmod(path.c_str(), 0600) != 0 ||
      ::listen(listener.get(), 128) != 0)
    fail<InvalidArgument>("serve", "cannot listen at '{}': {}", escape(path), std::strerror(errno));
  return listener;
}

Json tensors_json(const std::vector<TensorInfo>& infos) {
  Json out = Json::list();
  for (const TensorInfo& info : infos) {
    Json shape = Json::list();
    for (int64_t extent : info.shape) shape.push(extent);
    out.push(JsonMembers{{"name", info.name}, {"dtype", numpy_name(info.dtype)}, {"shape", shape}});
  }
  return out;
}

Json error_json(const Failure& failure) { return JsonMembers{{"error", failure.message}, {"kind", static_cast<int64_t>(failure.kind)}}; }

}  // namespace

Hello hello_of(const std::string& message, uint64_t most_bytes) {
  const Json said = Json::parse(message, control_limits);
  if (!said.is_object() || !said.has("hello") || said.at("hello").as_int() != layout_version)
    fail<InvalidArgument>("serve", "a client says hello first: {{\"hello\": {}, \"slots\": ..., \"slot_bytes\": ...}}", layout_version);
  const int64_t slots = said.at("slots").as_int(), slot_bytes = said.at("slot_bytes").as_int();
  if (slots < 1 || slots > most_slots || slot_bytes < 1 || static_cast<uint64_t>(slot_bytes) > most_bytes)
    fail<InvalidArgument>("serve", "a region has 1 to {} slots of 1 to {} bytes; got {} of {}", most_slots, most_bytes, slots, slot_bytes);
  const Hello hello{std::bit_ceil(static_cast<uint32_t>(slots)), (static_cast<uint64_t>(slot_bytes) + 4095) / 4096 * 4096};
  if (const uint64_t bytes = Layout{hello.slots, hello.slot_bytes}.bytes(); bytes > most_bytes)
    fail<InvalidArgument>("serve", "a region has at most {} bytes; got {} slots of {}; hint: --region-limit", most_bytes, slots,
                          slot_bytes);
  return hello;
}

class Server::Impl : public RequestSource {
 public:
  Impl(Models& models, Scheduler& scheduler, ServerOptions options)
      : models_(models),
        scheduler_(scheduler),
        options_(std::move(options)),
        listener_(listen_at(options_.path)),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    struct stat made {};
    if (::lstat(options_.path.c_str(), &made) == 0) inode_ = made.st_ino;
    scheduler_.add_source(this);
    try {
      thread_ = start_thread([this] { run(); });
    } catch (...) {
      scheduler_.remove_source(this);
      remove_socket();
      throw;
    }
  }

  ~Impl() override {
    ending_ = true;
    wake();
    thread_.join();
    scheduler_.remove_source(this);
    for (auto& client : clients_)
      if (client.connection) client.connection->end();
    remove_socket();
  }

  void stop_listening() {
    deaf_ = true;
    wake();
  }

  Counters counters() const {
    std::scoped_lock lock(mutex_);
    return counters_;
  }

  bool poll() override {
    std::scoped_lock lock(polled_mutex_);
    bool any = false;
    for (size_t i = 0; i < polled_.size();) {
      if (polled_[i]->poll(any)) {
        ++i;
        continue;
      }
      broken_.push_back(polled_[i]);
      polled_.erase(polled_.begin() + static_cast<std::ptrdiff_t>(i));
      wake();
    }
    return any;
  }

  void asleep(bool sleeping) override {
    std::scoped_lock lock(polled_mutex_);
    sleeping_ = sleeping;
    for (const auto& connection : polled_) connection->asleep(sleeping);
  }

 private:
  struct Client {
    Descriptor socket;
    std::string buffer;
    std::shared_ptr<Connection> connection = {};
    std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
    bool gone = false;
  };

  void wake() {
    const uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof(one));
  }

  void remove_socket() {
    struct stat found {};
    if (::lstat(options_.path.c_str(), &found) == 0 && found.st_ino == inode_) ::unlink(options_.path.c_str());
  }

  void run() {
    while (!ending_) {
      if (deaf_ && listener_) {
        listener_ = Descriptor();
        remove_socket();
      }
      std::vector<pollfd> watched{{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};  // a listener of -1 is passed over
      bool unborn = false;
      for (const Client& client : clients_) {
        watched.push_back({client.socket.get(), POLLIN, 0});
        unborn = unborn || !client.connection;
      }
      ::poll(watched.data(), watched.size(), unborn ? 1000 : -1);
      uint64_t rung = 0;
      [[maybe_unused]] const auto read = ::read(wake_.get(), &rung, sizeof(rung));
      hang_up_on_broken();
      for (size_t i = 2; i < watched.size(); ++i) {
        Client& client = clients_[i - 2];
        if (watched[i].revents != 0) listen_to(client);
        if (!client.connection && std::chrono::steady_clock::now() - client.since > options_.handshake) client.gone = true;
      }
      std::erase_if(clients_, [&](Client& client) {
        if (client.gone) part_from(client);
        return client.gone;
      });
      if (watched[1].revents != 0) accept_all();
    }
  }

  void hang_up_on_broken() {
    std::vector<std::shared_ptr<Connection>> broken;
    {
      std::scoped_lock lock(polled_mutex_);
      broken.swap(broken_);
    }
    for (const auto& connection : broken)
      for (Client& client : clients_)
        if (client.connection == connection) {
          const Failure why{FailureKind::bad_request, "[serve] the client broke the rules of its region: " + connection->why()};
          send_message(client.socket.get(), error_json(why).dump());
          client.gone = true;
          std::scoped_lock lock(mutex_);
          ++counters_.broken;
        }
  }

  void accept_all() {
    for (int i = 0; i < 64; ++i) {
      Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) {
        // With no descriptors left the listener stays readable: not to be spun on.
        if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return;
      }
      std::scoped_lock lock(mutex_);
      if (clients_.size() >= options_.connections) {
        ++counters_.refused;
        send_message(socket.get(),
                     error_json({FailureKind::queue_full,
                                 fmt::format("[serve] {} clients are connected already; hint: --connections", options_.connections)})
                         .dump());
        continue;
      }
      ++counters_.accepted;
      ++counters_.connected;
      clients_.push_back({std::move(socket), {}});
    }
  }

  void part_from(Client& client) {
    {
      std::scoped_lock lock(polled_mutex_);
      std::erase(polled_, client.connection);
    }
    if (client.connection) {
      scheduler_.unwatch(client.connection->event_descriptor());
      client.connection->end();
    }
    std::scoped_lock lock(mutex_);
    --counters_.connected;
    if (client.connection) counters_.region_bytes -= client.connection->bytes();
  }

  void listen_to(Client& client) {
    if (!receive_some(client.socket.get(), client.buffer, nullptr, false)) {
      client.gone = true;
      return;
    }
    try {
      std::string message;
      while (!client.gone && take_message(client.buffer, message)) obey(client, message);
    } catch (const RequestError& e) {
      client.gone = !reply(client, error_json(e.failure())) || !client.connection;
    } catch (const Error& e) {  // what it says cannot be understood, so neither can what follows
      reply(client, error_json({FailureKind::bad_request, e.what()}));
      client.gone = true;
    }
  }

  static bool reply(Client& client, const Json& json) {
    const std::string text = json.dump();
    if (text.size() <= most_message) return send_message(client.socket.get(), text);
    return send_message(client.socket.get(),
                        error_json({FailureKind::failed, "[serve] the answer is too long for a control message"}).dump());
  }

  void obey(Client& client, const std::string& message) {
    if (!client.connection) return welcome(client, hello_of(message, options_.region_bytes));
    const Json asked = Json::parse(message, control_limits);
    if (!asked.is_object()) fail<InvalidArgument>("serve", "a control message is an object; got {}", asked.kind());
    if (const Json* name = asked.find("model")) {
      const Json* version = asked.find("version");
      tell_model(client, name->as_string(), version == nullptr ? -1 : version->as_int());
    } else if (asked.has("models")) {
      tell_models(client);
    } else {
      fail<InvalidArgument>("serve", "a control message asks for \"model\" or \"models\"; got '{}'", escape(message, 100));
    }
  }

  void welcome(Client& client, const Hello& hello) {
    const Layout layout{hello.slots, hello.slot_bytes};
    {
      std::scoped_lock lock(mutex_);
      if (counters_.region_bytes + layout.bytes() > options_.total_bytes)
        refuse(FailureKind::queue_full, "all clients together have at most {} bytes; got {} more than {}; hint: --region-total",
               options_.total_bytes, layout.bytes(), counters_.region_bytes);
    }
    auto connection = std::make_shared<Connection>(scheduler_, models_, layout);
    scheduler_.watch(connection->event_descriptor());
    {
      std::scoped_lock lock(polled_mutex_);
      connection->asleep(sleeping_);
      polled_.push_back(connection);
    }
    client.connection = connection;
    {
      std::scoped_lock lock(mutex_);
      counters_.region_bytes += layout.bytes();
    }
    const Json said = JsonMembers{{"hello", static_cast<int64_t>(layout_version)},
                                  {"slots", static_cast<int64_t>(layout.slots)},
                                  {"slot_bytes", static_cast<int64_t>(layout.slot_bytes)},
                                  {"bytes", static_cast<int64_t>(layout.bytes())},
                                  {"requests_at", static_cast<int64_t>(layout.requests_at())},
                                  {"responses_at", static_cast<int64_t>(layout.responses_at())},
                                  {"slots_at", static_cast<int64_t>(layout.slots_at())}};
    const int descriptors[] = {connection->region_descriptor(), connection->event_descriptor()};
    client.gone = !send_message(client.socket.get(), said.dump(), descriptors);
    connection->close_region_descriptor();
  }

  void tell_model(Client& client, const std::string& name, int64_t version) {
    const auto model = models_.find(name, version);
    const uint32_t handle = client.connection->handle_of(name, version);
    client.gone = !reply(client, JsonMembers{{"handle", static_cast<int64_t>(handle)},
                                             {"name", model->name()},
                                             {"version", model->version()},
                                             {"inputs", tensors_json(model->inputs())},
                                             {"outputs", tensors_json(model->outputs())}});
  }

  void tell_models(Client& client) {
    Json list = Json::list();
    for (const VersionInfo& info : models_.index())
      list.push(JsonMembers{{"name", info.name}, {"version", info.version}, {"state", serve::name(info.state)}, {"reason", info.reason}});
    client.gone = !reply(client, JsonMembers{{"models", list}});
  }

  Models& models_;
  Scheduler& scheduler_;
  const ServerOptions options_;
  Descriptor listener_, wake_;
  uint64_t inode_ = 0;
  std::atomic<bool> ending_ = false, deaf_ = false;
  std::vector<Client> clients_;  // of the thread

  std::mutex polled_mutex_;  // of what the owner of the device sees
  std::vector<std::shared_ptr<Connection>> polled_, broken_;
  bool sleeping_ = true;

  mutable std::mutex mutex_;
  Counters counters_;
  std::thread thread_;
};

Server::Server(Models& models, Scheduler& scheduler, ServerOptions options)
    : impl_(std::make_unique<Impl>(models, scheduler, std::move(options))) {}
Server::~Server() = default;
void Server::stop_listening() { impl_->stop_listening(); }
Server::Counters Server::counters() const { return impl_->counters(); }

}  // namespace tutti::serve::local
