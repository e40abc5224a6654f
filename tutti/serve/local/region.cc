#include "tutti/serve/local/region.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include "tutti/base/error.h"

namespace tutti::serve::local {

namespace {

constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

void futex_wait(uint32_t& word, uint32_t value, int64_t nanoseconds) {
  const timespec timeout{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &timeout, nullptr, 0);
}

void futex_wake(uint32_t& word) { ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

Region::Region(const Layout& layout, Descriptor& descriptor) : layout_(layout) {
  descriptor = Descriptor(::memfd_create("tutti", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!descriptor) fail<DeviceError>("serve", "a client's region cannot be made: {}", std::strerror(errno));
  if (::ftruncate(descriptor.get(), static_cast<off_t>(layout.bytes())) != 0 || ::fcntl(descriptor.get(), F_ADD_SEALS, seals) != 0)
    fail<DeviceError>("serve", "a client's region of {} bytes cannot be made: {}", layout.bytes(), std::strerror(errno));
  map(descriptor);
  header() = {magic,
              layout_version,
              layout.slots,
              layout.slot_bytes,
              layout.requests_at(),
              layout.responses_at(),
              layout.slots_at(),
              layout.bytes(),
              0,
              0,
              0,
              1};
}

Region::Region(const Descriptor& descriptor) {
  struct stat found {};
  const int has = ::fcntl(descriptor.get(), F_GET_SEALS);
  if (::fstat(descriptor.get(), &found) != 0 || has < 0 || (has & F_SEAL_SHRINK) == 0 || found.st_size < static_cast<off_t>(sizeof(Header)))
    fail<DeviceError>("connect", "the server handed over what is no sealed region");
  Header said{};
  if (::pread(descriptor.get(), &said, sizeof(said), 0) != static_cast<ssize_t>(sizeof(said)) || said.magic != magic ||
      said.version != layout_version)
    fail<DeviceError>("connect", "the server's region has layout {}; this client knows {}", said.version, layout_version);
  layout_ = {said.slots, said.slot_bytes};
  if (said.slots == 0 || said.slots > most_slots || !std::has_single_bit(said.slots) || said.slot_bytes > (uint64_t{1} << 40) ||
      layout_.bytes() != said.bytes || layout_.bytes() != static_cast<uint64_t>(found.st_size))
    fail<DeviceError>("connect", "the server's region is of {} slots of {} bytes, and has {}", said.slots, said.slot_bytes, found.st_size);
  map(descriptor);
}

void Region::map(const Descriptor& descriptor) {
  void* mapped = ::mmap(nullptr, layout_.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.get(), 0);
  if (mapped == MAP_FAILED) fail<OutOfMemory>("serve", "a region of {} bytes cannot be mapped: {}", layout_.bytes(), std::strerror(errno));
  base_ = static_cast<std::byte*>(mapped);
}

Region::~Region() {
  if (base_ != nullptr) ::munmap(base_, layout_.bytes());
}

bool send_message(int socket, std::string_view text, std::span<const int> descriptors) {
  const auto length = static_cast<uint32_t>(text.size());
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  bytes += text;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 4)] = {};
  for (size_t sent = 0; sent < bytes.size();) {
    iovec part{bytes.data() + sent, bytes.size() - sent};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (sent == 0 && !descriptors.empty()) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
      cmsghdr* rights = CMSG_FIRSTHDR(&message);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
      std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
    }
    const ssize_t done = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    sent += static_cast<size_t>(done);
  }
  return true;
}

bool receive_some(int socket, std::string& buffer, std::vector<Descriptor>* descriptors, bool wait) {
  char bytes[4096];
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 4)];
  iovec part{bytes, sizeof(bytes)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptors != nullptr) {  // else the kernel throws away what is sent, unopened
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
  }
  const ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
  if (got < 0) return errno == EINTR || (!wait && (errno == EAGAIN || errno == EWOULDBLOCK));
  if (descriptors != nullptr)
    for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
      if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
      const size_t count = (one->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int number = -1;
        std::memcpy(&number, CMSG_DATA(one) + i * sizeof(int), sizeof(int));
        descriptors->emplace_back(number);
      }
    }
  buffer.append(bytes, static_cast<size_t>(got));
  return got > 0;
}

bool take_message(std::string& buffer, std::string& message) {
  uint32_t length = 0;
  if (buffer.size() < sizeof(length)) return false;
  std::memcpy(&length, buffer.data(), sizeof(length));
  if (length > most_message) fail<InvalidArgument>("serve", "a control message has at most {} bytes; got {}", most_message, length);
  if (buffer.size() < sizeof(length) + length) return false;
  message = buffer.substr(sizeof(length), length);
  buffer.erase(0, sizeof(length) + length);
  return true;
}

}  // namespace tutti::serve::local
