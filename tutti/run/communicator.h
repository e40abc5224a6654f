// How replicas that train one model meet: threads of this process, or ranks that mpirun has started, on one machine or many.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tutti/device/collective.h"
#include "tutti/run/barrier.h"

namespace tutti {

class Timeline;  // trace.h

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
  // Memory that all ranks see, of zeros; nothing where they are on several machines, or it cannot be had. All ask for as much.
  virtual std::shared_ptr<std::byte> share(size_t bytes) = 0;
  // Waits for all ranks at a barrier in such memory; false, for good, once `gives_up` says so. Throws DeviceError when a rank is gone.
  virtual bool meet(Barrier& barrier, const std::function<bool()>& gives_up) = 0;
  // What all ranks give here, one after another; as many from each.
  virtual std::vector<double> gather(std::span<const double> own) = 0;
  bool agree(bool goes_on);  // whether all ranks want to
  // Throws InvalidArgument in all ranks, naming those that differ from rank 0, unless all give the same text.
  virtual void require_same(const std::string& text, const std::string& what) = 0;
  // What one rank puts under a name all can get, as soon as it is there: waits so long for it. From any thread.
  virtual void put(const std::string& name, const std::string& value) = 0;
  virtual std::optional<std::string> get(const std::string& name, double seconds) = 0;
  // Ends all ranks now; for errors that others cannot know of.
  [[noreturn]] virtual void abort(int exit_code) = 0;
};

// The ranks that this process was started with; nullptr where it was started alone. `deadline`: seconds after which a rank that does not
// answer ends the job, with its name. Throws Unsupported when it was started by mpirun and built without MPI. Once a process.
std::shared_ptr<RankGroup> join_ranks(double deadline);
bool is_ranked();  // whether a launcher has started it with others

}  // namespace tutti
