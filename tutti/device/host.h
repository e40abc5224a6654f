// What the devices that compute in host memory share: their buffers, and how much memory there is.
#pragma once

#include "tutti/base/error.h"
#include "tutti/device/device.h"

namespace tutti {

class HostBuffer : public Buffer {
 public:
  explicit HostBuffer(const Type& type) : Buffer(type), tensor_(type) {}
  std::span<std::byte> host() override { return tensor_.bytes(); }
  const Tensor& tensor() const { return tensor_; }
  void swap(Tensor& other) { std::swap(tensor_, other); }  // of the same type

 private:
  Tensor tensor_;
};

// Memory of another owner, pointed at before each run.
class BorrowedBuffer : public Buffer {
 public:
  explicit BorrowedBuffer(const Type& type) : Buffer(type) {}
  void point_at(std::byte* bytes) { bytes_ = bytes; }
  std::span<std::byte> host() override { return {bytes_, static_cast<size_t>(type().bytes())}; }

 private:
  std::byte* bytes_ = nullptr;
};

// Some elements of another buffer, as a buffer of their own.
class HostView : public Buffer {
 public:
  HostView(const Type& type, std::shared_ptr<Buffer> whole, int64_t first_byte)
      : Buffer(type), whole_(std::move(whole)), first_(static_cast<size_t>(first_byte)) {}
  std::span<std::byte> host() override { return whole_->host().subspan(first_, static_cast<size_t>(type().bytes())); }

 private:
  std::shared_ptr<Buffer> whole_;
  size_t first_;
};

int thread_limit();      // TUTTI_THREADS, or the cores this process may use
int machine_cores();     // whoever may use them
int64_t total_memory();  // of the machine, or its cgroup's limit
// Bytes that can be had now without swapping: the least of the machine, the cgroup and the address space limit.
int64_t available_memory();
// An OutOfMemory that knows by how much.
class TooLarge : public OutOfMemory {
 public:
  // "`what` needs 12 bytes; 10 bytes are available"
  TooLarge(std::string_view where, std::string_view what, int64_t needed_bytes, int64_t available_bytes);
  int64_t needed, available;
};
// Throws TooLarge naming `what`, its bytes and those available.
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
