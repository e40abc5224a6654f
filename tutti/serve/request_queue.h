// The requests that wait, and whose turn it is: the highest priority first, in it the models in turn, of a model its clients in turn, and
// of a client its first request. No threads in here: the scheduler holds its lock.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "tutti/serve/programs.h"
#include "tutti/serve/request.h"

namespace tutti::serve {

class PendingRequest {
 public:
  PendingRequest(Request given, int64_t count, Rows rows_of_inputs)
      : request(std::move(given)), samples(count), rows(std::move(rows_of_inputs)) {}
  Request request;
  const int64_t samples;
  const Rows rows;
  const Clock::time_point submitted = Clock::now();
  bool queued = false;
  bool unwanted = false;  // cancelled while a part of it was computed

  // Of one with more samples than a batch, which is computed in parts, others in between; of the owner's thread.
  int64_t computed = 0;
  bool ended = false;
  std::vector<Tensor> outputs;
  std::optional<Clock::time_point> begun;
  int64_t remaining() const { return samples - computed; }

 private:
  friend class RequestQueue;
  uint64_t key = 0;  // the client's, or its own where nobody's order is kept
  std::list<std::shared_ptr<PendingRequest>>::iterator place;
};

using Pending = std::shared_ptr<PendingRequest>;

class RequestQueue {
 public:
  int64_t size() const { return size_; }
  void push(Pending request);
  void push_first(Pending request);      // before its client's others: the rest of one that was taken
  void remove(PendingRequest& request);  // one that is queued
  std::vector<Pending> of_client(uint64_t client) const;
  std::vector<Pending> all() const;
  // Queued for the same model with the same rows: what could be one batch with it. It may be in the queue itself.
  int64_t samples_like(const PendingRequest& request) const;

  // Whose turn it is, the models in `except` passed over; nullptr when there is none.
  PendingRequest* next(const std::set<const ModelVersion*>& except) const;
  // Takes `first`, which next() gave, and with it requests for the same model with the same rows: each client's in order, clients in turn,
  // higher priorities first, as many as have at most `samples` together with it; it may have more by itself. It is the next model's turn
  // then.
  std::vector<Pending> take(const PendingRequest& first, int64_t samples);

 private:
  struct Turn;
  struct Client {
    std::list<Pending> requests;
    std::list<Turn>::iterator turn;      // of the first one's model
    std::list<Client*>::iterator place;  // in it
  };
  struct Turn {
    const ModelVersion* model;
    std::list<Client*> clients;  // whose first request is for this model
  };
  struct Level {
    std::unordered_map<uint64_t, Client> clients;
    std::list<Turn> turns;
    std::unordered_map<const ModelVersion*, std::list<Turn>::iterator> by_model;
  };
  static void list(Level& level, Client& client);
  static void unlist(Client& client);
  static void drop_if_empty(Level& level, std::list<Turn>::iterator turn);
  Pending extract(Level& level, PendingRequest& request);
  void take_from(Level& level, const PendingRequest& first, int64_t most, int64_t& taken, std::vector<Pending>& out);
  static int level_of(const Request& request);
  void insert(Pending request, bool first);

  std::map<int, Level, std::greater<>> levels_;  // by priority
  struct Like {
    const ModelVersion* model;
    Rows rows;
    bool operator==(const Like&) const = default;
  };
  struct LikeHash {
    size_t operator()(const Like& like) const;
  };
  std::unordered_map<Like, int64_t, LikeHash> samples_;
  int64_t size_ = 0;
  uint64_t anonymous_ = 0;
};

}  // namespace tutti::serve
