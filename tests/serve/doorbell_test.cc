#include "tutti/serve/doorbell.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace tutti::serve {
namespace {

using std::chrono::milliseconds;

void write_one(int descriptor) {
  const uint64_t one = 1;
  ASSERT_EQ(::write(descriptor, &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
}

milliseconds waited(Doorbell& bell, std::optional<milliseconds> timeout) {
  const auto begin = std::chrono::steady_clock::now();
  bell.wait(timeout);
  return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin);
}

TEST(doorbell, is_heard_also_when_it_rang_before) {
  Doorbell bell;
  bell.ring();
  bell.wait({});
  const int event = ::eventfd(0, EFD_CLOEXEC);
  bell.watch(event);
  for (int i = 0; i < 3; ++i) {  // each write, though nobody reads
    write_one(event);
    bell.wait({});
  }
  EXPECT_GE(waited(bell, milliseconds(30)), milliseconds(30));
  ::close(event);
}

TEST(doorbell, one_who_is_gone_does_not_ring_it_though_it_holds_the_descriptor) {
  Doorbell bell;
  const int event = ::eventfd(0, EFD_CLOEXEC), held = ::dup(event);
  bell.watch(event);
  bell.unwatch(event);
  ::close(event);
  write_one(held);
  EXPECT_GE(waited(bell, milliseconds(30)), milliseconds(30));
  ::close(held);
}

}  // namespace
}  // namespace tutti::serve
