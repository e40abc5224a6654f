// Inference calls of gRPC under way: reactors of its callback API, alive until their call is done. For server.cc alone.
#pragma once

#include <inference.grpc.pb.h>

#include <deque>
#include <memory>
#include <mutex>

#include "tutti/serve/grpc/server.h"
#include "tutti/serve/protocol/memory_budget.h"

namespace tutti::serve {

struct GrpcShared {
  Models& models;
  Scheduler& scheduler;
  GrpcOptions options;
  std::shared_ptr<MemoryBudget> budget;
};

grpc::Status status_of(const Failure& failure);
grpc::Status status_of_exception();
Failure failure_of_exception();

// A unary call. It waits in the scheduler's queue, not on a thread.
class UnaryInfer final : public grpc::ServerUnaryReactor {
 public:
  static grpc::ServerUnaryReactor* start(GrpcShared& shared, grpc::CallbackServerContext& context,
                                         const inference::ModelInferRequest& request, inference::ModelInferResponse& response);
  explicit UnaryInfer(GrpcShared& shared) : shared_(shared) {}
  void OnCancel() override { shared_.scheduler.cancel(ticket_); }
  void OnDone() override { self_.reset(); }

 private:
  GrpcShared& shared_;
  Ticket ticket_;
  std::shared_ptr<UnaryInfer> self_;
};

// A stream: requests are answered in their order, several are under way at once. One that fails gets its message, and the stream goes on.
class StreamInfer final : public grpc::ServerBidiReactor<inference::ModelInferRequest, inference::ModelStreamInferResponse> {
 public:
  // `refused`: not OK ends it at once.
  static StreamInfer* start(GrpcShared& shared, grpc::CallbackServerContext& context, const grpc::Status& refused);
  StreamInfer(GrpcShared& shared, grpc::CallbackServerContext& context)
      : shared_(shared), context_(context), client_(shared.scheduler.new_client()) {}
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override { shared_.scheduler.cancel_client(client_); }
  void OnDone() override { self_.reset(); }

 private:
  void submit();
  void answered(std::unique_ptr<inference::ModelStreamInferResponse> response);
  void go_on(std::unique_lock<std::mutex> lock);

  GrpcShared& shared_;
  grpc::CallbackServerContext& context_;
  const uint64_t client_;
  std::shared_ptr<StreamInfer> self_;
  inference::ModelInferRequest request_;
  std::mutex mutex_;
  std::deque<std::unique_ptr<inference::ModelStreamInferResponse>> answers_;  // the first is being written, when writing_
  int under_way_ = 0;
  bool reading_ = true, writing_ = false, read_all_ = false, broken_ = false, finished_ = false;
};

}  // namespace tutti::serve
