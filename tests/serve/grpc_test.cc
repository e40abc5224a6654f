// What bounds the gRPC server's clients: how many connect, and how slow they may be. By plain sockets, which do what no client of gRPC's
// does.
#include "tutti/serve/grpc/server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <list>
#include <thread>

#include "tests/serve/served.h"
#include "tutti/serve/grpc/connections.h"
#include "tutti/serve/local/region.h"
#include "tutti/serve/protocol/address.h"

namespace tutti::serve {
namespace {

using local::Descriptor;
using std::chrono::milliseconds;

bool wait_until(const std::function<bool()>& condition) {
  for (const auto end = Clock::now() + std::chrono::seconds(30); Clock::now() < end; std::this_thread::sleep_for(milliseconds(5)))
    if (condition()) return true;
  return false;
}

Descriptor connected_to(const std::string& address) {
  Descriptor out(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place = {};
  place.sin_family = AF_INET;
  place.sin_port = htons(host_and_port(address).port);
  ::inet_pton(AF_INET, "127.0.0.1", &place.sin_addr);
  EXPECT_EQ(::connect(out.get(), reinterpret_cast<const sockaddr*>(&place), sizeof(place)), 0);
  return out;
}

// Everything until the other side closes, or nothing more when it does not within half a minute.
std::optional<std::string> told_until_closed(const Descriptor& socket) {
  std::string out;
  for (;;) {
    pollfd readable{socket.get(), POLLIN, 0};
    if (::poll(&readable, 1, 30'000) != 1) return {};
    char bytes[4096];
    const ssize_t got = ::recv(socket.get(), bytes, sizeof(bytes), 0);
    if (got <= 0) return out;
    out.append(bytes, static_cast<size_t>(got));
  }
}

TEST(connections, one_too_many_is_closed_at_once_and_a_place_is_free_again_when_one_goes) {
  NetworkCounters counters;
  Connections connections({.address = ":0", .most = 3, .counters = &counters.grpc});
  std::mutex mutex;
  std::list<Descriptor> taken;
  connections.start(
      [&](int descriptor) {
        std::scoped_lock lock(mutex);
        taken.emplace_back(descriptor);
      },
      [] {});
  std::list<Descriptor> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(connected_to(connections.address()));
  ASSERT_TRUE(wait_until([&] { return counters.grpc.open == 3; }));
  EXPECT_EQ(told_until_closed(connected_to(connections.address())), "");
  EXPECT_EQ(counters.grpc.refused, 1);
  {
    std::scoped_lock lock(mutex);
    ::shutdown(taken.front().get(), SHUT_RDWR);  // as who has it does before it closes it
    taken.pop_front();
  }
  ASSERT_TRUE(wait_until([&] { return counters.grpc.open == 2; }));
  const Descriptor again = connected_to(connections.address());
  ASSERT_TRUE(wait_until([&] { return counters.grpc.open == 3; }));
  EXPECT_EQ(counters.grpc.refused, 1);
}

TEST(connections, a_silent_one_is_cut_off_and_one_with_a_call_is_not) {
  NetworkCounters counters;
  Connections connections({.address = "localhost:0", .silence = milliseconds(300), .counters = &counters.grpc});
  std::mutex mutex;
  std::list<Descriptor> taken;
  connections.start(
      [&](int descriptor) {
        std::scoped_lock lock(mutex);
        taken.emplace_back(descriptor);
      },
      [] {});
  const Descriptor busy = connected_to(connections.address());
  sockaddr_in own = {};
  socklen_t bytes = sizeof(own);
  ::getsockname(busy.get(), reinterpret_cast<sockaddr*>(&own), &bytes);
  const std::string peer = fmt::format("ipv4:127.0.0.1:{}", ntohs(own.sin_port));
  ASSERT_TRUE(wait_until([&] { return connections.activity_of(peer) != nullptr; }));
  std::optional<ActiveCall> call(std::in_place, connections.activity_of(peer));
  EXPECT_EQ(told_until_closed(connected_to(connections.address())), "");
  ASSERT_TRUE(wait_until([&] { return counters.grpc.open == 1; }));
  EXPECT_NE(connections.activity_of(peer), nullptr);
  call.reset();
  EXPECT_EQ(told_until_closed(busy), "");
  ASSERT_TRUE(wait_until([&] { return counters.grpc.open == 0; }));
  EXPECT_EQ(connections.activity_of(peer), nullptr);
}

// HTTP/2 by hand.
std::string frame(char type, char flags, char stream, const std::string& payload) {
  std::string out = {static_cast<char>(payload.size() >> 16),
                     static_cast<char>(payload.size() >> 8),
                     static_cast<char>(payload.size()),
                     type,
                     flags,
                     0,
                     0,
                     0,
                     stream};
  return out + payload;
}
constexpr char data_frame = 0, headers_frame = 1, reset_frame = 3, settings_frame = 4, end_stream = 1, end_headers = 4;

std::string greeting(uint8_t window) {
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(settings_frame, 0, 0, {0, 4, 0, 0, 0, static_cast<char>(window)});
}

std::string request_headers() {
  std::string block;
  const std::pair<std::string, std::string> fields[] = {
      {":method", "POST"},         {":scheme", "http"}, {":path", "/inference.GRPCInferenceService/ModelInfer"},
      {":authority", "localhost"}, {"te", "trailers"},  {"content-type", "application/grpc"}};
  for (const auto& [name, value] : fields)
    block += std::string(1, '\0') + static_cast<char>(name.size()) + name + static_cast<char>(value.size()) + value;
  return frame(headers_frame, end_headers, 1, block);
}

std::string field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

// One sample of dense.keras, as a message of gRPC's.
std::string request_message() {
  const std::string input = field(1, "features") + field(2, "FP32") + field(3, {1, 4});
  const std::string message = field(1, "dense") + field(5, input) + field(7, std::string(16, '\0'));
  return std::string{0, 0, 0, 0, static_cast<char>(message.size())} + message;
}

class GrpcBounds : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_grpc()) GTEST_SKIP() << "built without gRPC";
    models.add("dense", models_folder + "dense.keras");
    models.wait();
  }
  Models models{{.compile = {.batch = 4}, .poll = milliseconds(0)}};
  Scheduler scheduler{{}};
};

TEST_F(GrpcBounds, a_request_that_never_ends_does_not_keep_its_connection) {
  GrpcOptions options;
  options.address = ":0";
  options.idle_time = milliseconds(200);
  options.request_time = milliseconds(200);
  GrpcServer server(models, scheduler, options);
  const Descriptor client = connected_to(server.address());
  const std::string half = greeting(100) + request_headers() + frame(data_frame, 0, 1, request_message().substr(0, 20));
  ASSERT_EQ(::send(client.get(), half.data(), half.size(), 0), static_cast<ssize_t>(half.size()));
  EXPECT_TRUE(told_until_closed(client));
  EXPECT_TRUE(wait_until([&] { return options.counters->grpc.open == 0; }));
}

TEST_F(GrpcBounds, an_answer_that_is_not_taken_is_given_up) {
  GrpcOptions options;
  options.address = ":0";
  options.request_time = milliseconds(200);
  options.budget = std::make_shared<MemoryBudget>(1 << 20);
  GrpcServer server(models, scheduler, options);
  const Descriptor client = connected_to(server.address());
  const std::string request = greeting(0) + request_headers() + frame(data_frame, end_stream, 1, request_message());
  ASSERT_EQ(::send(client.get(), request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
  std::string told;
  bool reset = false;
  while (!reset) {
    pollfd readable{client.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&readable, 1, 30'000), 1);
    char bytes[4096];
    const ssize_t got = ::recv(client.get(), bytes, sizeof(bytes), 0);
    ASSERT_GT(got, 0);
    told.append(bytes, static_cast<size_t>(got));
    for (size_t at = 0; at + 9 <= told.size();) {
      const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(told[at + i])); };
      EXPECT_FALSE(byte(3) == data_frame && byte(2) > 0) << "there was no room for it";
      reset = reset || byte(3) == reset_frame;
      at += 9 + (byte(0) << 16 | byte(1) << 8 | byte(2));
    }
  }
  EXPECT_TRUE(wait_until([&] { return options.budget->left() == options.budget->bytes(); }));
  EXPECT_EQ(options.counters->grpc.open, 1);  // it may ask again
}

TEST_F(GrpcBounds, memory_is_claimed_until_the_answer_is_gone_and_a_message_too_many_is_refused) {
  GrpcOptions options;
  options.address = ":0";
  options.budget = std::make_shared<MemoryBudget>(40);  // less than a message
  GrpcServer server(models, scheduler, options);
  const Descriptor client = connected_to(server.address());
  const std::string request = greeting(100) + request_headers() + frame(data_frame, end_stream, 1, request_message());
  ASSERT_EQ(::send(client.get(), request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
  std::string told;
  EXPECT_TRUE(wait_until([&] {
    char bytes[4096];
    const ssize_t got = ::recv(client.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got > 0) told.append(bytes, static_cast<size_t>(got));
    return told.find("too many bytes") != told.npos;
  }));
  EXPECT_EQ(options.budget->left(), 40u);
}

}  // namespace
}  // namespace tutti::serve
