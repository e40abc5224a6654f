#include "tutti/serve/local/connection.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>

#include "tutti/base/error.h"

namespace tutti::serve::local {

Connection::Connection(Scheduler& scheduler, const Models& models, const Layout& layout)
    : scheduler_(scheduler),
      models_(models),
      client_(scheduler.new_client()),
      event_(::eventfd(0, EFD_CLOEXEC)),
      region_(std::make_shared<Region>(layout, memory_)),
      slots_(layout.slots) {
  if (!event_) fail<DeviceError>("serve", "no descriptors are left: {}; hint: ulimit -n", std::strerror(errno));
}

uint32_t Connection::handle_of(const std::string& name, int64_t version) {
  std::scoped_lock lock(mutex_);
  for (size_t i = 0; i < handles_.size(); ++i)
    if (handles_[i].name == name && handles_[i].version == version) return static_cast<uint32_t>(i);
  if (handles_.size() >= most_models) refuse(FailureKind::bad_request, "a client names at most {} models", most_models);
  handles_.push_back({name, version});
  return static_cast<uint32_t>(handles_.size() - 1);
}

bool Connection::breaks(std::string why) {
  why_ = std::move(why);
  return false;
}

bool Connection::poll(bool& any) {
  if (ended_) return true;
  const uint32_t most = 2 * region_->layout().slots;
  const uint32_t written = load(region_->header().request_tail) - requests_;
  if (written > most) return breaks(fmt::format("{} requests at once, of a ring of {}", written, most));
  for (uint32_t i = 0; i < written; ++i) {
    RequestEntry entry;
    std::memcpy(&entry, &region_->request(requests_), sizeof(entry));  // once: the client may change it meanwhile
    std::atomic_signal_fence(std::memory_order_seq_cst);
    ++requests_;
    any = true;
    if (!take(entry)) return false;
  }
  return true;
}

bool Connection::take(const RequestEntry& entry) {
  const Layout& layout = region_->layout();
  if (entry.slot >= layout.slots) return breaks(fmt::format("slot {} of {}", entry.slot, layout.slots));
  Slot& slot = slots_[entry.slot];
  if (entry.operation == static_cast<uint32_t>(Operation::cancel)) {
    Ticket ticket;
    {
      std::scoped_lock lock(mutex_);
      if (slot.busy && slot.tag == entry.tag) ticket = slot.ticket;
    }
    scheduler_.cancel(ticket);
    return true;
  }
  if (entry.operation != static_cast<uint32_t>(Operation::predict)) return breaks(fmt::format("operation {}", entry.operation));
  if (entry.outputs_at % alignment != 0 || entry.outputs_at > layout.slot_bytes)
    return breaks(fmt::format("outputs at {} of a slot of {} bytes", entry.outputs_at, layout.slot_bytes));
  Handle handle;
  {
    std::scoped_lock lock(mutex_);
    if (slot.busy) return breaks(fmt::format("slot {} is in use", entry.slot));
    if (entry.model >= handles_.size()) return breaks(fmt::format("model {} of {}", entry.model, handles_.size()));
    slot.busy = true;
    slot.tag = entry.tag;
    slot.ticket = {};
    handle = handles_[entry.model];
  }
  Request request;
  try {
    request.inputs = inputs_of(entry);
    request.model = models_.find(handle.name, handle.version);
  } catch (const RequestError& e) {
    answer(entry, {e.failure(), {}});
    return true;
  } catch (const Error& e) {
    answer(entry, {{FailureKind::bad_request, e.what()}, {}});
    return true;
  }
  request.client = client_;
  request.priority = entry.priority;
  request.inputs_change = true;
  if (entry.deadline_ns != 0)
    request.deadline =
        Clock::time_point(std::chrono::nanoseconds(static_cast<int64_t>(std::min<uint64_t>(entry.deadline_ns, INT64_MAX / 2))));
  request.place = [self = shared_from_this(), index = entry.slot, at = entry.outputs_at](const std::vector<Type>& types) {
    return self->place(index, at, types);
  };
  request.done = [self = shared_from_this(), entry](Answer&& one) { self->answer(entry, std::move(one)); };
  Ticket ticket = scheduler_.submit(std::move(request));
  std::scoped_lock lock(mutex_);
  if (slot.busy && slot.tag == entry.tag) slot.ticket = std::move(ticket);
  return true;
}

std::vector<Tensor> Connection::inputs_of(const RequestEntry& entry) {
  constexpr auto bad = FailureKind::bad_request;
  const auto slot = region_->slot(entry.slot);
  if (entry.inputs > most_tensors || entry.inputs * sizeof(TensorEntry) > slot.size())
    refuse(bad, "a request has at most {} inputs, in a slot of {} bytes; got {}", most_tensors, slot.size(), entry.inputs);
  std::vector<Tensor> inputs;
  for (uint32_t i = 0; i < entry.inputs; ++i) {
    TensorEntry said;
    std::memcpy(&said, slot.data() + i * sizeof(TensorEntry), sizeof(said));
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (said.dtype >= std::size(all_dtypes)) refuse(bad, "input {} has dtype {} of {}", i, said.dtype, std::size(all_dtypes));
    if (said.rank > most_rank) refuse(bad, "input {} has {} axes; at most {}", i, said.rank, most_rank);
    const Type type{static_cast<DType>(said.dtype), Shape(Ints(said.extents, said.extents + said.rank))};
    if (said.bytes != static_cast<uint64_t>(type.bytes()))
      refuse(bad, "input {} is {}, {} bytes; got {}", i, to_string(type), type.bytes(), said.bytes);
    if (said.at % alignment != 0 || said.at > slot.size() || said.bytes > slot.size() - said.at)
      refuse(bad, "input {} has {} bytes at {} of a slot of {}", i, said.bytes, said.at, slot.size());
    inputs.push_back(tensor_at(entry.slot, said.at, type));
  }
  return inputs;
}

// Holds the region as long as anybody computes with it.
Tensor Connection::tensor_at(uint32_t slot, uint64_t at, const Type& type) {
  return {type, std::shared_ptr<std::byte>(region_, region_->slot(slot).data() + at)};
}

std::vector<Tensor> Connection::place(uint32_t slot, uint64_t at, const std::vector<Type>& types) {
  if (types.size() > most_tensors) refuse(FailureKind::bad_request, "an answer has at most {} outputs; got {}", most_tensors, types.size());
  const uint64_t room = region_->layout().slot_bytes;
  uint64_t end = aligned(at + types.size() * sizeof(TensorEntry));
  std::vector<uint64_t> places;
  for (const Type& type : types) {
    if (type.shape.rank() > most_rank)
      refuse(FailureKind::bad_request, "an output has at most {} axes; got {}", most_rank, to_string(type));
    places.push_back(end);
    const auto bytes = static_cast<uint64_t>(type.bytes());
    end = bytes > room ? room + 1 : aligned(end + bytes);
    if (end > room)
      refuse(FailureKind::bad_request, "the answer does not fit: {} after {} of {} bytes of a slot; hint: larger slots", to_string(type),
             places.back(), room);
  }
  std::vector<Tensor> out;
  for (size_t i = 0; i < types.size(); ++i) out.push_back(tensor_at(slot, places[i], types[i]));
  return out;
}

void Connection::answer(const RequestEntry& entry, Answer&& answer) {
  const auto slot = region_->slot(entry.slot);
  ResponseEntry response{};
  response.tag = entry.tag;
  response.slot = entry.slot;
  response.failure = static_cast<uint32_t>(answer.failure.kind);
  response.queue_ns = static_cast<uint64_t>(answer.queue_ns);
  response.compute_ns = static_cast<uint64_t>(answer.compute_ns);
  if (answer.failure) {
    response.text_bytes =
        static_cast<uint32_t>(std::min({answer.failure.message.size(), size_t{most_text}, slot.size() - entry.outputs_at}));
    std::memcpy(slot.data() + entry.outputs_at, answer.failure.message.data(), response.text_bytes);
  } else {
    response.outputs = static_cast<uint32_t>(answer.outputs.size());
    for (size_t i = 0; i < answer.outputs.size(); ++i) {
      const Tensor& output = answer.outputs[i];
      TensorEntry said{};
      said.dtype = static_cast<uint32_t>(output.dtype());
      said.rank = static_cast<uint32_t>(output.shape().rank());
      said.at = static_cast<uint64_t>(std::as_const(output).bytes().data() - slot.data());
      said.bytes = static_cast<uint64_t>(output.type().bytes());
      std::copy(output.shape().begin(), output.shape().end(), said.extents);
      std::memcpy(slot.data() + entry.outputs_at + i * sizeof(TensorEntry), &said, sizeof(said));
    }
  }
  std::scoped_lock lock(mutex_);
  slots_[entry.slot].busy = false;
  std::memcpy(&region_->response(responses_), &response, sizeof(response));
  store(region_->header().response_tail, ++responses_);  // and whoever sleeps after this looks first: futex_wait() compares
  if (load(region_->header().waiting) != 0) futex_wake(region_->header().response_tail);
}

void Connection::end() {
  ended_ = true;
  scheduler_.cancel_client(client_);
}

}  // namespace tutti::serve::local
