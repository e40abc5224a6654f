// PJRT as C++: a plugin is opened with dlopen, everything it gives is owned, and its errors are ours. The API's own header stays in the .cc
// files.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tutti/base/tensor.h"

struct PJRT_Buffer;
struct PJRT_Device;
struct PJRT_Executable;

namespace tutti::xla {

class Api;

// A device's memory holding one value; may be on its way still.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit operator bool() const { return buffer_ != nullptr; }
  explicit DeviceBuffer(std::shared_ptr<PJRT_Buffer> buffer) : buffer_(std::move(buffer)) {}
  PJRT_Buffer* get() const { return buffer_.get(); }
  std::weak_ptr<PJRT_Buffer> weak() const { return buffer_; }

 private:
  std::shared_ptr<PJRT_Buffer> buffer_;
};

// XLA's flags for one program: "xla_gpu_autotune_level" and its value.
struct XlaFlag {
  std::string name, value;
};

struct ExecutableStats {
  int64_t temporary_bytes = 0, argument_bytes = 0, output_bytes = 0, alias_bytes = 0, code_bytes = 0;
  std::optional<double> flops, bytes;  // of a run, as XLA counts; loops once
};

// A compiled program, on a device or for one that is not here.
class Executable {
 public:
  Executable() = default;
  size_t results() const;
  // One buffer an argument of @main; gives one a result. Returns when the work is queued. Of a program for several devices: those of the
  // first, then those of the second, ..., in the order in which it was compiled for them; those of other hosts run theirs.
  void run(std::span<PJRT_Buffer* const> arguments, std::span<DeviceBuffer> results, std::span<PJRT_Device* const> devices) const;
  ExecutableStats stats() const;
  std::string optimized() const;  // an HloModuleProto: what is left after XLA's passes
  std::string serialized() const;

 private:
  friend class Client;
  friend Executable compile_for(const std::string& plugin_path, const std::string& target, const std::string& stablehlo,
                                std::span<const XlaFlag> flags, size_t replicas);
  struct Impl;
  explicit Executable(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

// The devices of one plugin in this process. Safe from many threads.
class Client {
 public:
  // Every plugin is opened once. Throws DeviceError with the plugin's own words when it cannot be had.
  static std::shared_ptr<const Client> open(const std::string& plugin_path);
  explicit Client(const std::string& plugin_path);
  ~Client();

  const std::string& platform() const;               // "cpu", "cuda", ...
  std::string version() const;                       // of the plugin, as it tells, and of its API
  const std::vector<PJRT_Device*>& devices() const;  // of this process
  std::string kind(PJRT_Device* device) const;       // "NVIDIA H100 80GB HBM3"
  int64_t id(PJRT_Device* device) const;             // among those of all processes
  struct Memory {
    int64_t all, free;
  };
  std::optional<Memory> memory(PJRT_Device* device) const;  // not every platform counts

  bool spans_hosts() const;  // whether devices of other processes are among those of its programs

  // For any one of the devices; or for replicas on those with these ids, at once.
  Executable compile(const std::string& stablehlo, std::span<const XlaFlag> flags = {}, std::span<const int64_t> replicas = {}) const;
  Executable load(const std::string& serialized, bool has_places = false) const;  // whether it was compiled for certain ones
  // The bytes are copied before this returns, perhaps not all the way.
  DeviceBuffer upload(std::span<const std::byte> bytes, const Type& type, PJRT_Device* device) const;
  // Waits until the value is there.
  void download(const DeviceBuffer& from, std::span<std::byte> to) const;
  void wait(const DeviceBuffer& buffer) const;
  bool is_gone(const DeviceBuffer& buffer) const;  // given to a run to compute in its place

 private:
  friend class Executable;
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

// Compiles for a device that need not be here, or so many of them in one machine. `target` is a GpuTargetConfigProto as text.
Executable compile_for(const std::string& plugin_path, const std::string& target, const std::string& stablehlo,
                       std::span<const XlaFlag> flags = {}, size_t replicas = 1);

}  // namespace tutti::xla
