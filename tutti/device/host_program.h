// A program of the devices that compute in host memory: a sequence of steps, its weights, and one frame.
#pragma once

#include "tutti/device/device.h"
#include "tutti/device/sequence.h"

namespace tutti {

class HostProgram : public Program {
 public:
  // Throws OutOfMemory before allocating, InvalidArgument for a weight without a value. `graph` is what the steps were made of; `device` is
  // named in messages.
  HostProgram(const Graph& graph, std::vector<Step> steps, std::string_view device);

  void run(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs) override;
  void run_timed(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs, std::span<double> seconds) override;
  bool tells_times() const override { return true; }
  std::unique_ptr<Program> context() const override;

 private:
  struct Code;
  struct BoundTensor {
    ValueId value;
    Tensor tensor;
  };
  HostProgram(const Program& types, std::shared_ptr<const Code> code);
  void make_frame();
  void bind_arguments(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs);
  void finish(std::span<Buffer* const> outputs);  // what no step did: copies, states

  std::shared_ptr<const Code> code_;
  std::vector<BoundTensor> states_;  // this program's own
  Tensor frame_, staging_;
};

}  // namespace tutti
