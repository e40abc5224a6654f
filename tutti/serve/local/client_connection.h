// A client's side of its region: slots that are free, requests written, responses read.
#pragma once

#include <chrono>
#include <mutex>
#include <vector>

#include "tutti/base/json.h"
#include "tutti/serve/client.h"
#include "tutti/serve/local/region.h"
#include "tutti/serve/spin.h"

namespace tutti::serve::local {

class ClientConnection {
 public:
  ClientConnection(const std::string& path, const ConnectOptions& options);

  Json ask(const Json& message);  // a control message and its answer; throws RemoteError

  struct Input {
    Type type;
    std::span<const std::byte> bytes;
  };
  // Writes a request; waits for a slot that is free. Gives the slot.
  uint32_t submit(uint32_t model, std::span<const Input> inputs, const RequestOptions& options);
  bool ready(uint32_t slot);
  // Waits for the answer and calls f(TensorEntry, bytes) for each output; throws RemoteError. The slot is free then.
  template <class F>
  void finish(uint32_t slot, F&& f);
  void abandon(uint32_t slot) noexcept;  // nobody waits for it any more

 private:
  enum class State : uint8_t { free, under_way, answered, abandoned };
  struct Slot {
    State state = State::free;
    uint64_t tag = 0, outputs_at = 0;
    ResponseEntry response = {};
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  };
  Json exchange(const Json& message, std::vector<Descriptor>* descriptors);
  void write(const RequestEntry& entry, std::unique_lock<std::mutex>& lock);
  void take_responses();  // with the lock
  // Until `f` says so, with the lock; throws RemoteError after the deadline, DeviceError when the server is gone.
  template <class F>
  void wait(std::unique_lock<std::mutex>& lock, std::chrono::steady_clock::time_point deadline, F&& f);
  void check_server();
  void ring();

  Descriptor socket_, event_;
  std::mutex control_;
  std::string buffer_;
  std::chrono::milliseconds patience_;
  std::unique_ptr<Region> region_;

  std::mutex mutex_;
  std::vector<Slot> slots_;
  uint32_t requests_ = 0, responses_ = 0;
  uint64_t tags_ = 0;
  Spin spin_{std::chrono::microseconds(50)};
  uint32_t sleepers_ = 0;
  bool gone_ = false;
};

template <class F>
void ClientConnection::finish(uint32_t index, F&& f) {
  std::unique_lock lock(mutex_);
  Slot& slot = slots_[index];
  try {
    wait(lock, slot.deadline, [&] { return slot.state == State::answered; });
  } catch (...) {
    if (slot.state == State::under_way) slot.state = State::abandoned;
    throw;
  }
  const ResponseEntry response = slot.response;
  const auto bytes = region_->slot(index);
  const uint64_t at = slot.outputs_at;
  lock.unlock();  // the slot is ours until it is free
  struct Free {
    ClientConnection& connection;
    Slot& slot;
    ~Free() {
      std::scoped_lock again(connection.mutex_);
      slot.state = State::free;
    }
  } free{*this, slot};
  if (response.failure != 0) {
    const size_t length = std::min<size_t>(response.text_bytes, bytes.size() - at);
    const std::string text(reinterpret_cast<const char*>(bytes.data() + at), length);
    const size_t where = text.find("] ");
    throw RemoteError(response.failure < failure_kinds ? static_cast<FailureKind>(response.failure) : FailureKind::failed,
                      where == std::string::npos ? text : text.substr(where + 2));
  }
  for (uint32_t i = 0; i < response.outputs; ++i) {
    TensorEntry entry;
    if (at + (i + 1) * sizeof(entry) > bytes.size()) break;
    std::copy_n(bytes.data() + at + i * sizeof(entry), sizeof(entry), reinterpret_cast<std::byte*>(&entry));
    if (entry.dtype >= std::size(all_dtypes) || entry.rank > most_rank || entry.at > bytes.size() || entry.bytes > bytes.size() - entry.at)
      fail<InternalError>("connect", "the server's answer is broken");
    f(entry, bytes.subspan(entry.at, entry.bytes));
  }
}

}  // namespace tutti::serve::local
