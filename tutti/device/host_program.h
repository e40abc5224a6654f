// A program of the devices that compute in host memory: a sequence of steps, its weights, and one frame.
#pragma once

#include "tutti/device/host.h"
#include "tutti/device/sequence.h"

namespace tutti {

class HostProgram : public Program {
 public:
  // Throws OutOfMemory before allocating, InvalidArgument for a weight without a value. `graph` is what the steps were made of; `device` is
  // named in messages. States are shared by name where `states` is given.
  HostProgram(const Graph& graph, std::vector<Step> steps, std::string_view device, StateBuffers* states = nullptr);

  void run(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs) override;
  void run_timed(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs, std::span<double> seconds) override;
  bool tells_times() const override { return true; }
  void run_telling(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs, const Ready& ready,
                   std::span<double> seconds) override;
  void join(Collective* collective) override { collective_ = collective; }
  std::unique_ptr<Program> context(StateBuffers* states) const override;

 private:
  struct Code;
  struct BoundTensor {
    ValueId value;
    Tensor tensor;
  };
  HostProgram(const Program& types, std::shared_ptr<const Code> code, StateBuffers* states);
  void make_frame(StateBuffers* shared);
  void bind_arguments(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs);
  void finish(std::span<Buffer* const> outputs);  // what no step did: copies, states

  std::shared_ptr<const Code> code_;
  std::vector<std::shared_ptr<Buffer>> states_;  // this program's own, or shared
  // A state whose next value a step computes: that is written here, and trades places with the state.
  struct Spare {
    ValueId next;
    size_t state;
    HostBuffer* buffer;
    Tensor tensor;
  };
  std::vector<Spare> spares_;
  struct Place {
    ValueId next;
    size_t state;
  };
  std::vector<Place> in_place_;  // next values that are written over their states
  Tensor frame_, staging_;
  std::vector<bool> traded_;  // by update: whether its state lies in a buffer that can trade places
  Collective* collective_ = nullptr;
  int64_t runs_ = 0;
};

}  // namespace tutti
