#include "tutti/serve/request_queue.h"

#include <algorithm>

namespace tutti::serve {

int RequestQueue::level_of(const Request& request) { return std::clamp(request.priority, -100, 100); }

// A client stands with the model of its first request, behind those that are there.
void RequestQueue::list(Level& level, Client& client) {
  const ModelVersion* model = client.requests.front()->request.model.get();
  auto [found, fresh] = level.by_model.try_emplace(model);
  if (fresh) found->second = level.turns.insert(level.turns.end(), Turn{model, {}});
  client.turn = found->second;
  client.place = client.turn->clients.insert(client.turn->clients.end(), &client);
}

// The model's turn stays, even if nobody is left in it.
void RequestQueue::unlist(Client& client) { client.turn->clients.erase(client.place); }

void RequestQueue::drop_if_empty(Level& level, std::list<Turn>::iterator turn) {
  if (!turn->clients.empty()) return;
  level.by_model.erase(turn->model);
  level.turns.erase(turn);
}

void RequestQueue::push(Pending request) {
  constexpr uint64_t nobody = uint64_t{1} << 63;
  request->key = request->request.client == 0 ? nobody | ++anonymous_ : request->request.client;
  insert(std::move(request), false);
}

void RequestQueue::push_first(Pending request) { insert(std::move(request), true); }

void RequestQueue::insert(Pending request, bool first) {
  PendingRequest& pending = *request;
  Level& level = levels_[level_of(pending.request)];
  Client& client = level.clients[pending.key];
  const bool alone = client.requests.empty();
  const std::list<Turn>::iterator turn = alone ? level.turns.end() : client.turn;
  if (first && !alone) unlist(client);
  pending.place = client.requests.insert(first ? client.requests.begin() : client.requests.end(), std::move(request));
  pending.queued = true;
  if (first || alone) list(level, client);
  if (first && !alone) drop_if_empty(level, turn);
  samples_[{pending.request.model.get(), pending.rows}] += pending.remaining();
  ++size_;
}

Pending RequestQueue::extract(Level& level, PendingRequest& request) {
  Client& client = level.clients.at(request.key);
  const bool first = request.place == client.requests.begin();
  if (first) unlist(client);
  Pending out = std::move(*request.place);
  client.requests.erase(request.place);
  request.queued = false;
  if (client.requests.empty())
    level.clients.erase(request.key);
  else if (first)
    list(level, client);
  const auto samples = samples_.find({request.request.model.get(), request.rows});
  if ((samples->second -= request.remaining()) == 0) samples_.erase(samples);
  --size_;
  return out;
}

void RequestQueue::remove(PendingRequest& request) {
  const auto found = levels_.find(level_of(request.request));
  const auto turn = found->second.clients.at(request.key).turn;
  const Pending kept = extract(found->second, request);
  drop_if_empty(found->second, turn);
  if (found->second.clients.empty()) levels_.erase(found);
}

std::vector<Pending> RequestQueue::of_client(uint64_t id) const {
  std::vector<Pending> out;
  for (const auto& [priority, level] : levels_)
    if (auto client = level.clients.find(id); client != level.clients.end())
      out.insert(out.end(), client->second.requests.begin(), client->second.requests.end());
  return out;
}

std::vector<Pending> RequestQueue::all() const {
  std::vector<Pending> out;
  for (const auto& [priority, level] : levels_)
    for (const auto& [key, client] : level.clients) out.insert(out.end(), client.requests.begin(), client.requests.end());
  return out;
}

size_t RequestQueue::LikeHash::operator()(const Like& like) const {
  size_t hash = std::hash<const void*>()(like.model);
  for (const Shape& row : like.rows)
    for (const int64_t extent : row) hash = hash * 31 + static_cast<size_t>(extent);
  return hash;
}

int64_t RequestQueue::samples_like(const PendingRequest& request) const {
  const auto found = samples_.find({request.request.model.get(), request.rows});
  return found == samples_.end() ? 0 : found->second;
}

PendingRequest* RequestQueue::next(const std::set<const ModelVersion*>& except) const {
  for (const auto& [priority, level] : levels_)
    for (const Turn& turn : level.turns)
      if (!except.contains(turn.model)) return turn.clients.front()->requests.front().get();
  return nullptr;
}

std::vector<Pending> RequestQueue::take(const PendingRequest& first, int64_t samples) {
  std::vector<Pending> out;
  int64_t taken = 0;
  const Pending kept = *first.place;
  for (auto level = levels_.begin(); level != levels_.end() && (out.empty() || taken < samples);) {
    const auto own = level++;
    if (!own->second.by_model.contains(first.request.model.get())) continue;
    take_from(own->second, first, samples, taken, out);
    if (own->second.clients.empty()) levels_.erase(own);
  }
  return out;
}

// Those that do not fit into this batch stand first for the next.
void RequestQueue::take_from(Level& level, const PendingRequest& first, int64_t most, int64_t& taken, std::vector<Pending>& out) {
  const auto turn = level.by_model.at(first.request.model.get());
  std::list<Client*> passed;
  while (!turn->clients.empty() && (out.empty() || taken < most)) {
    Client& client = *turn->clients.front();
    PendingRequest& request = *client.requests.front();
    if (request.rows == first.rows && (out.empty() || taken + request.remaining() <= most)) {
      taken += request.remaining();
      out.push_back(extract(level, request));
    } else {
      passed.splice(passed.end(), turn->clients, client.place);
    }
  }
  turn->clients.splice(turn->clients.begin(), passed);
  level.turns.splice(level.turns.end(), level.turns, turn);
  drop_if_empty(level, turn);
}

}  // namespace tutti::serve
