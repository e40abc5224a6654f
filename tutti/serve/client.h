// A client of `tutti serve --socket PATH` on the same machine. Samples go through memory that is shared with the server, which owns the
// device: no copy but into and out of that memory, and no system call where both sides are busy.
//
//   auto owner = tutti::connect("/run/tutti.sock");
//   auto predict = owner.model("dense");
//   predict(input, output);                              // spans of float
//   auto answer = predict.submit({x});                   // others meanwhile
//   std::vector<tutti::Tensor> outputs = answer.get();
//
// Usable from many threads. Of a failed request the error is a RemoteError; the connection stays usable, unless the server is gone.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tutti/base/tensor.h"
#include "tutti/serve/failure.h"

namespace tutti {

struct ConnectOptions {
  uint32_t slots = 16;                       // requests under way at once
  uint64_t slot_bytes = uint64_t{1} << 20;   // for the inputs and outputs of one
  std::chrono::milliseconds patience{5000};  // for the server to answer while connecting
};

struct RemoteTensor {
  std::string name;
  DType dtype = DType::f32;
  Ints shape;  // -1 where only the data know: the batch first of all
};

// What the server says of a request: which kind of failure, and why.
class RemoteError : public Error {
 public:
  RemoteError(serve::FailureKind failure_kind, const std::string& text) : Error("serve", text), kind(failure_kind) {}
  const serve::FailureKind kind;
};

struct RequestOptions {
  int priority = 0;                     // higher first
  std::chrono::nanoseconds timeout{0};  // in the server's queue, and for get(); 0: none
};

namespace serve::local {
class ClientConnection;
}

// A request under way. Destroyed before its answer came, it is cancelled.
class RemoteAnswer {
 public:
  RemoteAnswer(std::shared_ptr<serve::local::ClientConnection> connection, uint32_t slot)
      : connection_(std::move(connection)), slot_(slot) {}
  ~RemoteAnswer();
  RemoteAnswer(RemoteAnswer&&) noexcept = default;
  RemoteAnswer& operator=(RemoteAnswer&&) = delete;
  std::vector<Tensor> get();                                // waits; once
  void get(std::span<const std::span<std::byte>> outputs);  // into these, of exactly their sizes
  bool ready();

 private:
  std::shared_ptr<serve::local::ClientConnection> connection_;
  uint32_t slot_;
};

class RemoteModel {
 public:
  RemoteModel(std::shared_ptr<serve::local::ClientConnection> connection, uint32_t handle, std::string name, int64_t version,
              std::vector<RemoteTensor> inputs, std::vector<RemoteTensor> outputs)
      : connection_(std::move(connection)),
        handle_(handle),
        name_(std::move(name)),
        version_(version),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)) {}
  const std::string& name() const { return name_; }
  int64_t version() const { return version_; }  // when it was asked for; the server may have loaded a newer one since
  const std::vector<RemoteTensor>& inputs() const { return inputs_; }
  const std::vector<RemoteTensor>& outputs() const { return outputs_; }

  // One float32 input and output of any number of samples; extents that the model leaves open need predict().
  void operator()(std::span<const float> input, std::span<float> output);
  // [count, row...] an input, in the model's order.
  std::vector<Tensor> predict(const std::vector<Tensor>& inputs, const RequestOptions& options = {}) {
    return submit(inputs, options).get();
  }
  RemoteAnswer submit(const std::vector<Tensor>& inputs, const RequestOptions& options = {});

 private:
  std::shared_ptr<serve::local::ClientConnection> connection_;
  uint32_t handle_;
  std::string name_;
  int64_t version_;
  std::vector<RemoteTensor> inputs_, outputs_;
};

class RemoteOwner {
 public:
  explicit RemoteOwner(std::shared_ptr<serve::local::ClientConnection> connection) : connection_(std::move(connection)) {}
  RemoteModel model(const std::string& name, int64_t version = -1);  // -1: the newest, at each request
  std::vector<std::string> models();                                 // their names

 private:
  std::shared_ptr<serve::local::ClientConnection> connection_;
};

// Throws DeviceError when nobody listens there.
RemoteOwner connect(const std::string& socket_path, const ConnectOptions& options = {});

}  // namespace tutti
