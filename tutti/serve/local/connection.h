// The server's side of one local client: its region, what it has asked for, and where answers go. Everything that is read from the region
// is read once, and checked against what the server itself knows: a client that scribbles over its memory gets wrong answers, or is hung up
// on, and nobody else notices.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tutti/serve/local/region.h"
#include "tutti/serve/scheduler.h"

namespace tutti::serve::local {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Scheduler& scheduler, const Models& models, const Layout& layout);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // To hand over: the region, and the eventfd that the client writes when the server sleeps.
  int region_descriptor() const { return memory_.get(); }
  int event_descriptor() const { return event_.get(); }
  void close_region_descriptor() { memory_ = Descriptor(); }
  uint64_t bytes() const { return region_->layout().bytes(); }

  // A name for the model, to be used in requests; refused when the client has too many.
  uint32_t handle_of(const std::string& name, int64_t version);

  // On the owner's thread: submits what has been written since. False once the client broke the rules: then `why` it is hung up on.
  bool poll(bool& any);
  void asleep(bool sleeping) { store(region_->header().server_asleep, sleeping ? 1 : 0); }
  const std::string& why() const { return why_; }

  // The client is gone: what it has queued is not computed. From any thread.
  void end();

 private:
  struct Slot {
    bool busy = false;
    uint64_t tag = 0;
    Ticket ticket;
  };
  struct Handle {
    std::string name;
    int64_t version;
  };
  bool take(const RequestEntry& entry);
  bool breaks(std::string why);
  std::vector<Tensor> inputs_of(const RequestEntry& entry);
  Tensor tensor_at(uint32_t slot, uint64_t at, const Type& type);
  std::vector<Tensor> place(uint32_t slot, uint64_t at, const std::vector<Type>& types);
  void answer(const RequestEntry& entry, Answer&& answer);

  Scheduler& scheduler_;
  const Models& models_;
  const uint64_t client_;
  Descriptor memory_, event_;
  std::shared_ptr<Region> region_;
  uint32_t requests_ = 0;  // taken
  std::string why_;

  std::mutex mutex_;  // of what follows; answers come from several threads
  std::vector<Slot> slots_;
  std::vector<Handle> handles_;
  uint32_t responses_ = 0;  // written
  std::atomic<bool> ended_ = false;
};

}  // namespace tutti::serve::local
