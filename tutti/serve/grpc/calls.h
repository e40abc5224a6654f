// Inference calls of gRPC under way: reactors of its callback API, alive until their call is done. For server.cc alone.
#pragma once

#include <inference.grpc.pb.h>

#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "tutti/serve/grpc/connections.h"
#include "tutti/serve/grpc/server.h"

namespace tutti::serve {

// Answers that are being written. A client that does not take one in time has its call cancelled, and the memory comes back.
class SlowAnswers {
 public:
  explicit SlowAnswers(std::chrono::milliseconds patience) : patience_(patience) {}
  // `call` is whose it is; the context lives until end(), which may be called without begin().
  void begin(const void* call, const grpc::CallbackServerContext& context);
  void end(const void* call);
  void cancel_late();

 private:
  struct Late {
    Clock::time_point at;
    const grpc::CallbackServerContext* context;
  };
  const std::chrono::milliseconds patience_;
  std::recursive_mutex mutex_;  // cancelling may end the call there and then
  std::unordered_map<const void*, Late> answers_;
};

struct GrpcShared {
  Models& models;
  Scheduler& scheduler;
  const GrpcOptions& options;
  Connections& connections;
  SlowAnswers& answers;
};

grpc::Status status_of(const Failure& failure);
grpc::Status status_of_exception();
Failure failure_of_exception();

// A unary call. It waits in the scheduler's queue, not on a thread.
class UnaryInfer final : public grpc::ServerUnaryReactor {
 public:
  static grpc::ServerUnaryReactor* start(GrpcShared& shared, grpc::CallbackServerContext& context, const grpc::ByteBuffer& request,
                                         grpc::ByteBuffer& response);
  UnaryInfer(GrpcShared& shared, const grpc::CallbackServerContext& context)
      : shared_(shared), context_(context), active_(shared.connections.activity_of(context.peer())) {}
  void OnCancel() override { shared_.scheduler.cancel(ticket_); }
  void OnDone() override {
    shared_.answers.end(this);
    self_.reset();
  }

 private:
  void finish(const grpc::Status& status);

  GrpcShared& shared_;
  const grpc::CallbackServerContext& context_;
  const ActiveCall active_;
  MemoryClaim claim_;  // for the message and its answer
  Ticket ticket_;
  std::shared_ptr<UnaryInfer> self_;
};

// A stream: requests are answered in their order, several are under way at once. One that fails gets its message, and the stream goes on.
class StreamInfer final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  // `refused`: not OK ends it at once.
  static StreamInfer* start(GrpcShared& shared, grpc::CallbackServerContext& context, const grpc::Status& refused);
  StreamInfer(GrpcShared& shared, grpc::CallbackServerContext& context)
      : shared_(shared),
        context_(context),
        active_(shared.connections.activity_of(context.peer())),
        client_(shared.scheduler.new_client()) {}
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override { shared_.scheduler.cancel_client(client_); }
  void OnDone() override {
    shared_.answers.end(this);
    self_.reset();
  }

 private:
  struct Written {
    grpc::ByteBuffer response;
    MemoryClaim claim;  // for the request and for this
    bool ready = false;
  };
  void submit();
  void answered(Written& written);
  void go_on(std::unique_lock<std::mutex> lock);

  GrpcShared& shared_;
  grpc::CallbackServerContext& context_;
  const ActiveCall active_;
  const uint64_t client_;
  std::shared_ptr<StreamInfer> self_;
  grpc::ByteBuffer request_;
  std::mutex mutex_;
  std::deque<std::shared_ptr<Written>> answers_;  // of all requests, in their order; the first is being written, when writing_
  int under_way_ = 0;                             // those that are not ready, also when nobody waits for them any more
  bool reading_ = true, writing_ = false, read_all_ = false, broken_ = false, finished_ = false;
};

}  // namespace tutti::serve
