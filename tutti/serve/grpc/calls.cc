#include "tutti/serve/grpc/calls.h"

#include <limits>

#include "tutti/serve/grpc/messages.h"

namespace tutti::serve {

namespace {

// A call in the scheduler: what writing its answer needs.
struct GrpcPending {
  Call call;
  std::string id;
  std::shared_ptr<ModelVersion> model;
  std::vector<size_t> wanted;
  size_t message_bytes = 0;
};

// Into the response, within the claim; what goes wrong is the call's failure.
Failure fill_within(const GrpcPending& pending, const Answer& answer, MemoryClaim& claim, inference::ModelInferResponse& response) {
  if (answer.failure) return answer.failure;
  try {
    size_t bytes = pending.message_bytes;
    for (const Tensor& output : answer.outputs) bytes += output.bytes().size();
    claim.grow(bytes);
    if (bytes > std::numeric_limits<int>::max() / 2)
      refuse(FailureKind::bad_request, "the answer is too large for a message: {} bytes", bytes);
    fill_answer(pending.call, *pending.model, pending.wanted, answer.outputs, response);
    return {};
  } catch (...) {
    return failure_of_exception();
  }
}

Request scheduled_from(GrpcShared& shared, const grpc::CallbackServerContext& context, const grpc::ByteBuffer& bytes, GrpcPending& pending,
                       MemoryClaim& claim) {
  claim = MemoryClaim(shared.options.budget);
  inference::ModelInferRequest message;
  parse_message(bytes, shared.options.request_bytes, claim, message);
  pending.id = message.id();
  pending.message_bytes = message.ByteSizeLong();
  claim.grow(pending.message_bytes);
  pending.model = shared.models.find(message.model_name(), version_from(message.model_version()));
  pending.call = call_of(message, shared.options.limits);
  pending.wanted = wanted_outputs(pending.call, *pending.model);
  Request request = request_of(pending.call, pending.model);
  // The call's own deadline, which is of the wall clock; the earlier of the two counts.
  if (const auto deadline = context.deadline(); deadline < std::chrono::system_clock::now() + std::chrono::hours(24)) {
    const auto at = Clock::now() + std::chrono::duration_cast<Clock::duration>(deadline - std::chrono::system_clock::now());
    if (!request.deadline || at < *request.deadline) request.deadline = at;
  }
  return request;
}

}  // namespace

grpc::Status status_of(const Failure& failure) {
  const auto code = [&] {
    switch (failure.kind) {
      case FailureKind::none: return grpc::StatusCode::OK;
      case FailureKind::bad_request: return grpc::StatusCode::INVALID_ARGUMENT;
      case FailureKind::not_found: return grpc::StatusCode::NOT_FOUND;
      case FailureKind::not_ready:
      case FailureKind::draining: return grpc::StatusCode::UNAVAILABLE;
      case FailureKind::queue_full: return grpc::StatusCode::RESOURCE_EXHAUSTED;
      case FailureKind::deadline: return grpc::StatusCode::DEADLINE_EXCEEDED;
      case FailureKind::cancelled: return grpc::StatusCode::CANCELLED;
      case FailureKind::failed: break;
    }
    return grpc::StatusCode::INTERNAL;
  }();
  return {code, failure.message};
}

Failure failure_of_exception() {
  try {
    throw;
  } catch (const RequestError& e) {
    return e.failure();
  } catch (const OutOfMemory&) {
    return {FailureKind::queue_full, "[serve] there is not enough memory for this request"};
  } catch (const std::bad_alloc&) {
    return {FailureKind::queue_full, "[serve] there is not enough memory for this request"};
  } catch (...) {
    return {FailureKind::failed, "[serve] an internal error"};
  }
}

grpc::Status status_of_exception() { return status_of(failure_of_exception()); }

void SlowAnswers::begin(const void* call, const grpc::CallbackServerContext& context) {
  std::scoped_lock lock(mutex_);
  answers_.insert_or_assign(call, Late{Clock::now() + patience_, &context});
}

void SlowAnswers::end(const void* call) {
  std::scoped_lock lock(mutex_);
  answers_.erase(call);
}

void SlowAnswers::cancel_late() {
  std::scoped_lock lock(mutex_);
  const auto now = Clock::now();
  std::vector<const void*> late;
  for (const auto& [call, answer] : answers_)
    if (answer.at < now) late.push_back(call);
  for (const void* call : late) {
    const auto found = answers_.find(call);
    if (found == answers_.end()) continue;
    const auto* context = found->second.context;
    answers_.erase(found);
    context->TryCancel();
  }
}

grpc::ServerUnaryReactor* UnaryInfer::start(GrpcShared& shared, grpc::CallbackServerContext& context, const grpc::ByteBuffer& message,
                                            grpc::ByteBuffer& response) {
  auto self = std::make_shared<UnaryInfer>(shared, context);
  self->self_ = self;  // until OnDone(), which comes after this has returned and after Finish()
  UnaryInfer* const reactor = self.get();
  try {
    auto pending = std::make_shared<GrpcPending>();
    Request request = scheduled_from(shared, context, message, *pending, reactor->claim_);
    request.client = std::hash<std::string>()(context.peer()) | uint64_t{1} << 63;  // a connection is a client; new_client() counts from 1
    request.done = [reactor, pending, &response](Answer&& answer) {
      inference::ModelInferResponse filled;
      const Failure failure = fill_within(*pending, answer, reactor->claim_, filled);
      if (!failure) response = serialized(filled);
      reactor->finish(status_of(failure));
    };
    self->ticket_ = shared.scheduler.submit(std::move(request));
  } catch (...) {
    reactor->finish(status_of_exception());
  }
  return reactor;
}

void UnaryInfer::finish(const grpc::Status& status) {
  shared_.answers.begin(this, context_);
  Finish(status);
}

StreamInfer* StreamInfer::start(GrpcShared& shared, grpc::CallbackServerContext& context, const grpc::Status& refused) {
  auto self = std::make_shared<StreamInfer>(shared, context);
  self->self_ = self;
  if (refused.ok())
    self->StartRead(&self->request_);
  else
    self->Finish(refused);
  return self.get();
}

void StreamInfer::OnReadDone(bool ok) {
  if (ok) submit();
  std::unique_lock lock(mutex_);
  reading_ = false;
  read_all_ = read_all_ || !ok;
  go_on(std::move(lock));
}

void StreamInfer::submit() {
  auto written = std::make_shared<Written>();
  {
    std::scoped_lock lock(mutex_);
    ++under_way_;
    answers_.push_back(written);
  }
  auto pending = std::make_shared<GrpcPending>();
  const auto send = [this, written, pending](const Failure& failure, inference::ModelStreamInferResponse&& response) {
    if (failure) {
      response.set_error_message(failure.message);
      response.mutable_infer_response()->set_id(pending->id);  // whose error it is
    }
    written->response = serialized(response);
    answered(*written);
  };
  try {
    Request request = scheduled_from(shared_, context_, request_, *pending, written->claim);
    request.client = client_;
    request.done = [send, written, pending](Answer&& answer) {
      inference::ModelStreamInferResponse response;
      const Failure failure = fill_within(*pending, answer, written->claim, *response.mutable_infer_response());
      send(failure, std::move(response));
    };
    shared_.scheduler.submit(std::move(request));
  } catch (...) {
    send(failure_of_exception(), {});
  }
}

void StreamInfer::answered(Written& written) {
  std::unique_lock lock(mutex_);
  --under_way_;
  written.ready = true;
  go_on(std::move(lock));
}

void StreamInfer::OnWriteDone(bool ok) {
  shared_.answers.end(this);
  std::unique_lock lock(mutex_);
  writing_ = false;
  answers_.pop_front();
  broken_ = broken_ || !ok;
  go_on(std::move(lock));
}

// Starts what can be started next. With the lock, which is not held while gRPC is called; each is started by one thread only, since the
// flags say so before.
void StreamInfer::go_on(std::unique_lock<std::mutex> lock) {
  if (broken_ && !writing_) answers_.clear();
  const grpc::ByteBuffer* write = nullptr;
  if (!writing_ && !answers_.empty() && answers_.front()->ready) {
    writing_ = true;
    write = &answers_.front()->response;
  }
  const bool read = !reading_ && !read_all_ && !broken_ && std::ssize(answers_) < shared_.options.stream_requests;
  if (read) reading_ = true;
  const bool finish = !finished_ && (read_all_ || broken_) && !reading_ && !writing_ && under_way_ == 0 && answers_.empty();
  if (finish) finished_ = true;
  lock.unlock();
  if (write) {
    shared_.answers.begin(this, context_);
    StartWrite(write);
  }
  if (read) StartRead(&request_);
  if (finish) Finish(grpc::Status::OK);
}

}  // namespace tutti::serve
