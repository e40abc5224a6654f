#include "tutti/serve/local/client_connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tutti::serve::local {

namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds nap{20};  // after which the server is looked at

}  // namespace

ClientConnection::ClientConnection(const std::string& path, const ConnectOptions& options)
    : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)), patience_(options.patience) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path))
    fail<InvalidArgument>("connect", "a socket's path has 1 to {} bytes; got {}", sizeof(address.sun_path) - 1, path.size());
  std::memcpy(address.sun_path, path.data(), path.size());
  if (!socket_ || ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    fail<DeviceError>("connect", "nobody serves at '{}': {}; hint: tutti serve MODEL --socket {}", escape(path), std::strerror(errno),
                      escape(path));
  const Json hello = JsonMembers{{"hello", static_cast<int64_t>(layout_version)},
                                 {"slots", static_cast<int64_t>(options.slots)},
                                 {"slot_bytes", static_cast<int64_t>(options.slot_bytes)}};
  std::vector<Descriptor> descriptors;
  const Json said = exchange(hello, &descriptors);
  if (const Json* error = said.find("error")) fail<DeviceError>("connect", "{}", error->as_string());
  if (descriptors.size() != 2)
    fail<DeviceError>("connect", "the server at '{}' handed over {} descriptors, not 2", escape(path), descriptors.size());
  region_ = std::make_unique<Region>(descriptors[0]);
  event_ = std::move(descriptors[1]);
  slots_.resize(region_->layout().slots);
}

Json ClientConnection::exchange(const Json& message, std::vector<Descriptor>* descriptors) {
  // A server that refuses says so and hangs up, maybe before this is sent: what it said is there to be read all the same.
  send_message(socket_.get(), message.dump());
  std::string answer;
  while (!take_message(buffer_, answer)) {
    pollfd waiting{socket_.get(), POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(patience_.count())) == 0)
      fail<DeviceError>("connect", "the server did not answer within {} ms", patience_.count());
    if (!receive_some(socket_.get(), buffer_, descriptors, true)) fail<DeviceError>("connect", "the server is gone");
  }
  return Json::parse(answer);
}

Json ClientConnection::ask(const Json& message) {
  std::scoped_lock lock(control_);
  Json said = exchange(message, nullptr);
  if (const Json* error = said.find("error")) {
    const int64_t kind = said.at("kind").as_int();
    const std::string& text = error->as_string();
    const size_t where = text.find("] ");
    throw RemoteError(kind > 0 && kind < failure_kinds ? static_cast<FailureKind>(kind) : FailureKind::failed,
                      where == std::string::npos ? text : text.substr(where + 2));
  }
  return said;
}

void ClientConnection::ring() {
  const uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(event_.get(), &one, sizeof(one));
}

void ClientConnection::write(const RequestEntry& entry, std::unique_lock<std::mutex>&) {
  std::memcpy(&region_->request(requests_), &entry, sizeof(entry));
  store(region_->header().request_tail, ++requests_);
  if (load(region_->header().server_asleep) != 0) ring();
}

uint32_t ClientConnection::submit(uint32_t model, std::span<const Input> inputs, const RequestOptions& options) {
  const uint64_t room = region_->layout().slot_bytes;
  uint64_t end = aligned(inputs.size() * sizeof(TensorEntry));
  for (const Input& input : inputs) end = aligned(end + input.bytes.size());
  if (inputs.size() > most_tensors || end >= room)
    fail<InvalidArgument>("connect",
                          "a request has at most {} inputs and {} bytes of a slot; got {} of {}; hint: ConnectOptions::slot_bytes",
                          most_tensors, room, inputs.size(), end);
  const auto deadline = options.timeout.count() > 0 ? SteadyClock::now() + options.timeout : SteadyClock::time_point::max();
  std::unique_lock lock(mutex_);
  const auto is_free = [](const Slot& slot) { return slot.state == State::free; };
  auto found = slots_.begin();
  wait(lock, deadline, [&] { return (found = std::find_if(slots_.begin(), slots_.end(), is_free)) != slots_.end(); });
  const auto index = static_cast<uint32_t>(found - slots_.begin());
  Slot& slot = *found;
  slot = {State::under_way, ++tags_, end, {}, deadline};
  const auto bytes = region_->slot(index);
  uint64_t at = aligned(inputs.size() * sizeof(TensorEntry));
  for (size_t i = 0; i < inputs.size(); ++i) {
    TensorEntry entry{};
    entry.dtype = static_cast<uint32_t>(inputs[i].type.dtype);
    entry.rank = static_cast<uint32_t>(inputs[i].type.shape.rank());
    entry.at = at;
    entry.bytes = inputs[i].bytes.size();
    if (entry.rank > most_rank) {
      slot.state = State::free;
      fail<InvalidArgument>("connect", "an input has at most {} axes; got {}", most_rank, to_string(inputs[i].type));
    }
    std::copy(inputs[i].type.shape.begin(), inputs[i].type.shape.end(), entry.extents);
    std::memcpy(bytes.data() + i * sizeof(entry), &entry, sizeof(entry));
    if (!inputs[i].bytes.empty()) std::memcpy(bytes.data() + at, inputs[i].bytes.data(), inputs[i].bytes.size());
    at = aligned(at + entry.bytes);
  }
  RequestEntry entry{};
  entry.tag = slot.tag;
  entry.operation = static_cast<uint32_t>(Operation::predict);
  entry.slot = index;
  entry.model = model;
  entry.inputs = static_cast<uint32_t>(inputs.size());
  entry.priority = options.priority;
  entry.outputs_at = end;
  if (options.timeout.count() > 0) entry.deadline_ns = static_cast<uint64_t>(std::chrono::nanoseconds(deadline.time_since_epoch()).count());
  write(entry, lock);
  return index;
}

void ClientConnection::take_responses() {
  const uint32_t written = load(region_->header().response_tail);
  if (written - responses_ > slots_.size()) fail<DeviceError>("connect", "the region holds what the server did not write");
  for (; responses_ != written; ++responses_) {
    ResponseEntry response;
    std::memcpy(&response, &region_->response(responses_), sizeof(response));
    if (response.slot >= slots_.size()) continue;
    Slot& slot = slots_[response.slot];
    if (slot.tag != response.tag) continue;
    slot.response = response;
    slot.state = slot.state == State::abandoned ? State::free : State::answered;
  }
}

bool ClientConnection::ready(uint32_t slot) {
  std::scoped_lock lock(mutex_);
  take_responses();
  return slots_[slot].state == State::answered;
}

void ClientConnection::abandon(uint32_t index) noexcept try {
  std::unique_lock lock(mutex_);
  take_responses();
  Slot& slot = slots_[index];
  if (slot.state == State::answered) slot.state = State::free;
  if (slot.state != State::under_way) return;
  slot.state = State::abandoned;
  RequestEntry entry{};
  entry.tag = slot.tag;
  entry.operation = static_cast<uint32_t>(Operation::cancel);
  entry.slot = index;
  write(entry, lock);
} catch (const std::exception&) {  // the region is broken: whoever uses it next is told
}

void ClientConnection::check_server() {
  char byte = 0;
  const ssize_t got = ::recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) gone_ = true;
}

template <class F>
void ClientConnection::wait(std::unique_lock<std::mutex>& lock, SteadyClock::time_point deadline, F&& f) {
  take_responses();
  if (f()) return;
  const auto begun = SteadyClock::now();
  // Where answers come fast it is not worth to fall asleep.
  auto now = begun;
  while (spin_.is_worth_it(now, begun)) {
    const uint32_t seen = responses_;
    Spin spin = spin_;
    lock.unlock();
    for (int i = 0; i < 16 && load(region_->header().response_tail) == seen; ++i) spin.pause(SteadyClock::now());
    lock.lock();
    spin_ = spin;
    take_responses();
    now = SteadyClock::now();
    if (f()) break;
  }
  while (!f()) {
    if (gone_) fail<DeviceError>("connect", "the server is gone");
    if (now >= deadline) throw RemoteError(FailureKind::deadline, "no answer before the deadline");
    const uint32_t seen = responses_;
    store(region_->header().waiting, ++sleepers_);
    lock.unlock();
    futex_wait(region_->header().response_tail, seen, std::min<std::chrono::nanoseconds>(nap, deadline - now).count());
    lock.lock();
    store(region_->header().waiting, --sleepers_);
    const bool news = load(region_->header().response_tail) != responses_;
    take_responses();
    now = SteadyClock::now();
    if (!news) {
      check_server();
      ring();
    }
  }
  spin_.add(now - begun);
}

}  // namespace tutti::serve::local

namespace tutti {

using serve::local::ClientConnection;

RemoteOwner connect(const std::string& socket_path, const ConnectOptions& options) {
  return RemoteOwner(std::make_shared<ClientConnection>(socket_path, options));
}

RemoteAnswer::~RemoteAnswer() {
  if (connection_) connection_->abandon(slot_);
}

bool RemoteAnswer::ready() { return connection_->ready(slot_); }

std::vector<Tensor> RemoteAnswer::get() {
  const auto connection = std::exchange(connection_, nullptr);
  if (connection == nullptr) fail<InvalidArgument>("connect", "an answer is taken once");
  std::vector<Tensor> outputs;
  connection->finish(slot_, [&](const serve::local::TensorEntry& entry, std::span<const std::byte> bytes) {
    Tensor& output = outputs.emplace_back(static_cast<DType>(entry.dtype), Shape(Ints(entry.extents, entry.extents + entry.rank)));
    if (output.bytes().size() != bytes.size()) fail<InternalError>("connect", "the server's answer is broken");
    std::copy(bytes.begin(), bytes.end(), output.bytes().begin());
  });
  return outputs;
}

void RemoteAnswer::get(std::span<const std::span<std::byte>> outputs) {
  const auto connection = std::exchange(connection_, nullptr);
  if (connection == nullptr) fail<InvalidArgument>("connect", "an answer is taken once");
  size_t i = 0;
  connection->finish(slot_, [&](const serve::local::TensorEntry&, std::span<const std::byte> bytes) {
    if (i >= outputs.size() || outputs[i].size() != bytes.size())
      fail<InvalidArgument>("connect", "output {} has {} bytes; got room for {}", i, bytes.size(),
                            i < outputs.size() ? outputs[i].size() : 0);
    std::copy(bytes.begin(), bytes.end(), outputs[i++].begin());
  });
  if (i != outputs.size()) fail<InvalidArgument>("connect", "the model has {} outputs; got room for {}", i, outputs.size());
}

RemoteAnswer RemoteModel::submit(const std::vector<Tensor>& inputs, const RequestOptions& options) {
  std::vector<ClientConnection::Input> views;
  for (const Tensor& input : inputs) views.push_back({input.type(), input.bytes()});
  return {connection_, connection_->submit(handle_, views, options)};
}

void RemoteModel::operator()(std::span<const float> input, std::span<float> output) {
  int64_t row = 1;
  const bool single = inputs_.size() == 1 && outputs_.size() == 1 && inputs_[0].dtype == DType::f32 && outputs_[0].dtype == DType::f32;
  Ints extents = single ? inputs_[0].shape : Ints{};
  for (size_t i = 1; i < extents.size(); ++i) row = extents[i] < 0 ? 0 : row * extents[i];
  if (!single || row <= 0)
    fail<InvalidArgument>("connect", "model '{}' has {} inputs and {} outputs, or they are not float32 of fixed rows; hint: predict()",
                          name_, inputs_.size(), outputs_.size());
  if (input.empty() || static_cast<int64_t>(input.size()) % row != 0)
    fail<InvalidArgument>("connect", "model '{}' takes rows of {} values; got {}", name_, row, input.size());
  extents[0] = static_cast<int64_t>(input.size()) / row;
  const ClientConnection::Input view{{DType::f32, Shape(extents)}, std::as_bytes(input)};
  const std::span<std::byte> to[] = {std::as_writable_bytes(output)};
  RemoteAnswer(connection_, connection_->submit(handle_, {&view, 1}, {})).get(to);
}

RemoteModel RemoteOwner::model(const std::string& name, int64_t version) {
  const Json said = connection_->ask(JsonMembers{{"model", name}, {"version", version}});
  const auto tensors = [](const Json& list) {
    std::vector<RemoteTensor> out;
    for (const Json& one : list.items()) {
      RemoteTensor tensor{one.at("name").as_string(), dtype_from_numpy(one.at("dtype").as_string()).value_or(DType::f32), {}};
      for (const Json& extent : one.at("shape").items()) tensor.shape.push_back(extent.as_int());
      out.push_back(std::move(tensor));
    }
    return out;
  };
  return {connection_,
          static_cast<uint32_t>(said.at("handle").as_int()),
          said.at("name").as_string(),
          said.at("version").as_int(),
          tensors(said.at("inputs")),
          tensors(said.at("outputs"))};
}

std::vector<std::string> RemoteOwner::models() {
  std::vector<std::string> names;
  const Json said = connection_->ask(JsonMembers{{"models", true}});
  for (const Json& one : said.at("models").items())
    if (const std::string& name = one.at("name").as_string(); std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  return names;
}

}  // namespace tutti
