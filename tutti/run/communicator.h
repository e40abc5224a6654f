// How replicas that train one model meet: threads of this process, or ranks that mpirun has started, on one machine or many.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "tutti/device/collective.h"

namespace tutti {

class Timeline;  // trace.h

// Where so many threads wait for each other, again and again. Who waits looks for the others before it sleeps, as long as each has a core
// of its own.
class Barrier {
 public:
  Barrier(int threads, bool spins) : threads_(threads), spins_(spins) {}
  void wait();
  // The same, but false as soon as `stop` is set, for good: the barrier is then worth nothing.
  bool wait_unless(const std::atomic<bool>& stop);

 private:
  bool arrives_last(uint32_t round);
  bool looks_for(uint32_t round) const;
  const int threads_;
  const bool spins_;
  alignas(64) std::atomic<int> arrived_ = 0;
  alignas(64) std::atomic<uint32_t> round_ = 0;
};

// Replicas that are threads.
class ThreadGroup {
 public:
  ThreadGroup(int size, bool spins);
  ~ThreadGroup();
  int size() const { return static_cast<int>(members_.size()); }
  Collective& member(int rank);
  Barrier& barrier() { return barrier_; }
  // One of them cannot go on: sums that wait for it throw, for good. barrier() is not concerned.
  void give_up() { failed_ = true; }

 private:
  class Member;
  Barrier barrier_, sums_;
  std::atomic<bool> failed_ = false;
  std::vector<std::span<const Collective::Part>> parts_;  // by rank, of the sum at hand
  std::vector<std::unique_ptr<Member>> members_;
};

// Replicas that are processes: one of them is this one. One thread makes every call of the library, in the order in which they are asked
// for here, which is the same in all ranks.
class RankGroup : public Collective {
 public:
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const std::string& host(int rank) const = 0;

  // A sum that goes on while this thread does something else, until finish(): `parts` stay where they are so long. f32.
  virtual void start(std::vector<Part> parts) = 0;
  virtual void finish() = 0;
  // Where the time of sums from now on goes, hidden or not; nullptr: nowhere. While none is under way.
  virtual void watch(Timeline* timeline) = 0;
  // Once that is set, who waits for a rank that is gone is told so at once. As long as this process lives, or until another is given.
  virtual void heed(const std::atomic<bool>* stop) = 0;
  // What all ranks give here, one after another; as many from each.
  virtual std::vector<double> gather(std::span<const double> own) = 0;
  // Throws InvalidArgument in all ranks, naming those that differ from rank 0, unless all give the same text.
  virtual void require_same(const std::string& text, const std::string& what) = 0;
  // Ends all ranks now; for errors that others cannot know of.
  [[noreturn]] virtual void abort(int exit_code) = 0;
};

// The ranks that this process was started with; nullptr where it was started alone. `deadline`: seconds after which a rank that does not
// answer ends the job, with its name. Throws Unsupported when it was started by mpirun and built without MPI. Once a process.
std::shared_ptr<RankGroup> join_ranks(double deadline);
bool is_ranked();  // whether a launcher has started it with others

}  // namespace tutti
