// What the devices that compute in host memory share: their buffers, and how much memory there is.
#pragma once

#include "tutti/device/device.h"

namespace tutti {

class HostBuffer : public Buffer {
 public:
  explicit HostBuffer(const Type& type) : Buffer(type), tensor_(type) {}
  std::span<std::byte> host() override { return tensor_.bytes(); }
  const Tensor& tensor() const { return tensor_; }

 private:
  Tensor tensor_;
};

int thread_limit();      // TUTTI_THREADS, or the cores this process may use
int64_t total_memory();  // of the machine, or its cgroup's limit
// Bytes that can be had now without swapping: the least of the machine, the cgroup and the address space limit.
int64_t available_memory();
// Throws OutOfMemory naming `what`, its bytes and those available.
void require_memory(int64_t bytes, std::string_view what);

// allocate, to_device, to_host and synchronize for devices whose buffers are HostBuffers.
class HostDevice : public Device {
 public:
  int64_t memory_bytes() const override { return total_memory(); }
  std::unique_ptr<Buffer> allocate(const Type& type) override;
  void to_device(std::span<const std::byte> from, Buffer& to) override;
  void to_host(Buffer& from, std::span<std::byte> to) override;
  void synchronize() override {}
};

}  // namespace tutti
