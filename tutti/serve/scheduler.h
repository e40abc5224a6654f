// The one owner of the device. Requests of many clients for many models are queued, put together into batches, computed by one thread and
// answered. What is promised:
// - a batch is the most that is ready when the device is free (optionally waiting a little for more), of requests whose rows have the same
//   shapes, at equal answers: models that mix the samples of a batch get each request alone;
// - requests of one client and one priority begin, and end, in the order in which they were submitted;
// - higher priorities first; within one, models in turn, and within a model clients in turn;
// - at most `queue` requests wait: one more is refused at once; a deadline that passes in the queue ends the request there and then, and
//   what is cancelled is never computed;
// - done() is called exactly once for each request, whatever happens.
#pragma once

#include <chrono>
#include <memory>

#include "tutti/serve/request.h"

namespace tutti::serve {

struct SchedulerOptions {
  int64_t queue = 1024;                   // requests
  std::chrono::microseconds max_wait{0};  // how long a batch waits for more when the device is free
  std::chrono::microseconds spin{50};     // how long the owner looks for requests before it sleeps, where they come that fast
};

// Where requests come from that the owner's thread fetches itself: local clients.
class RequestSource {
 public:
  virtual ~RequestSource() = default;
  virtual bool poll() = 0;                 // submits what has arrived; whether there was anything
  virtual void asleep(bool sleeping) = 0;  // from now on poll() is called again only after Scheduler::wake()
};

class Scheduler {
 public:
  explicit Scheduler(const SchedulerOptions& options);
  ~Scheduler();  // stop()
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  uint64_t new_client();
  // Checks the inputs and queues them. Never throws: what is wrong goes to done().
  Ticket submit(Request request);
  // What is still queued is answered with `cancelled`; what is being computed ends as usual.
  void cancel(const Ticket& ticket);
  void cancel_client(uint64_t client);

  // From now on every new request is refused as draining; true when all others have ended within the time.
  bool drain(std::chrono::milliseconds timeout);
  void stop();  // answers what is queued with draining, and ends the threads

  struct Load {
    int64_t queued = 0, computing = 0;  // requests
    bool draining = false;
  };
  Load load() const;
  const SchedulerOptions& options() const;

  // Sources live until they are removed; removing waits for a poll() that is under way.
  void add_source(RequestSource* source);
  void remove_source(RequestSource* source);
  void wake();                   // from any thread
  void watch(int descriptor);    // an eventfd that wakes as well whenever it is written
  void unwatch(int descriptor);  // to close it is not enough where others hold it too

 private:
  class Owner;
  std::unique_ptr<Owner> owner_;
};

}  // namespace tutti::serve
