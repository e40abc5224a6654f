// Local clients: memory that is shared with them, and what they may do to it.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "tests/scratch.h"
#include "tests/serve/served.h"
#include "tutti/serve/client.h"
#include "tutti/serve/local/region.h"
#include "tutti/serve/local/server.h"

namespace tutti::serve {
namespace {

using namespace local;

struct Served {
  Scratch scratch;
  Models models{{}};
  Scheduler scheduler{{}};
  std::optional<Server> server;
  explicit Served(ServerOptions options = {}) {
    models.add("dense", models_folder + "dense.keras");
    models.add("ids", models_folder + "ids.keras");
    models.add("mean", models_folder + "batch_mean.keras");
    models.wait();
    options.path = path();
    server.emplace(models, scheduler, options);
  }
  std::string path() const { return scratch.path("socket"); }
  // A client whose answers are right: all is well.
  void check() const {
    auto dense = connect(path()).model("dense");
    const Tensor input = made_input(*models.find("dense"), 3, 11);
    ASSERT_TRUE(same_bits(dense.predict({input}).at(0), alone("dense.keras", input)));
  }
};

// A client that follows no rules but those it likes.
struct RawClient {
  Descriptor socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::string buffer;
  std::unique_ptr<Region> region;
  Descriptor event;
  explicit RawClient(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  std::string ask(const std::string& text, std::vector<Descriptor>* descriptors = nullptr) {
    send_message(socket.get(), text);
    std::string answer;
    while (!take_message(buffer, answer))
      if (!receive_some(socket.get(), buffer, descriptors, true)) return "hung up";
    return answer;
  }
  void hello() {
    std::vector<Descriptor> descriptors;
    ask(R"({"hello": 1, "slots": 4, "slot_bytes": 8192})", &descriptors);
    ASSERT_EQ(descriptors.size(), 2u);
    region = std::make_unique<Region>(descriptors[0]);
    event = std::move(descriptors[1]);
    ask(R"({"model": "dense"})");
    ask(R"({"model": "ids"})");
  }
  void write(const RequestEntry& entry) {
    const uint32_t number = load(region->header().request_tail);
    region->request(number) = entry;
    store(region->header().request_tail, number + 1);
    ring();
  }
  void ring() {
    const uint64_t one = 1;
    ASSERT_EQ(::write(event.get(), &one, sizeof(one)), 8);
  }
  // A good request for one sample of dense.
  RequestEntry dense_request(uint32_t slot, uint64_t tag) {
    const TensorEntry input{static_cast<uint32_t>(DType::f32), 2, 128, 16, 0, {1, 4}};
    std::memcpy(region->slot(slot).data(), &input, sizeof(input));
    return {tag, static_cast<uint32_t>(Operation::predict), slot, 0, 1, 0, 0, 256, 0};
  }
  bool is_hung_up_on() {
    while (receive_some(socket.get(), buffer, nullptr, true)) {
    }
    return true;
  }
};

TEST(local, answers_are_those_of_the_model_however_many_threads_ask) {
  Served served;
  auto owner = connect(served.path());
  EXPECT_EQ(owner.models(), (std::vector<std::string>{"dense", "ids", "mean"}));
  auto dense = owner.model("dense");
  EXPECT_EQ(dense.inputs().at(0).shape, (Ints{-1, 4}));
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      auto own = dense;
      for (int64_t i = 0; i < 100; ++i) {
        const Tensor input = made_input(*served.models.find("dense"), 1 + i % 4, 100 * t + i);
        std::vector<float> output(static_cast<size_t>(3 * (1 + i % 4)));
        own(input.as<float>(), output);
        const Tensor expected = alone("dense.keras", input);
        if (std::ranges::equal(output, expected.as<float>())) ++right;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 400);
  EXPECT_EQ(served.server->counters().connected, 1);
}

TEST(local, many_under_way_and_some_given_up) {
  Served served;
  auto dense = connect(served.path(), {.slots = 4}).model("dense");
  std::vector<Tensor> inputs;
  for (int64_t i = 0; i < 40; ++i) inputs.push_back(made_input(*served.models.find("dense"), 1, i));
  for (size_t i = 0; i < 40; i += 4) {
    auto a = dense.submit({inputs[i]}), b = dense.submit({inputs[i + 1]});
    { auto unwanted = dense.submit({inputs[i + 2]}); }
    EXPECT_TRUE(same_bits(b.get().at(0), alone("dense.keras", inputs[i + 1])));
    EXPECT_TRUE(same_bits(a.get().at(0), alone("dense.keras", inputs[i])));
  }
}

TEST(local, what_is_wrong_is_said_and_the_client_stays) {
  Served served;
  auto owner = connect(served.path());
  auto dense = owner.model("dense");
  EXPECT_EQ(message_of<RemoteError>([&] {
              dense.predict({Tensor(DType::f32, {1, 3})});
            }),
            "[serve] model 'dense': input 'features' is f32[-1, 4]; got f32[1, 3]");
  EXPECT_EQ(message_of<RemoteError>([&] { owner.model("dens"); }), "[serve] there is no model 'dens' (did you mean 'dense'?)");
  EXPECT_PRED2(contains, message_of<InvalidArgument>([&] {
                 dense.predict({Tensor(DType::f32, {1 << 20, 4})});
               }),
               "hint: ConnectOptions::slot_bytes");
  EXPECT_EQ(message_of<RemoteError>([&] {
              Scheduler& scheduler = served.scheduler;
              Gate gate(scheduler, served.models.find("dense"));
              dense.predict({made_input(*served.models.find("dense"), 1, 0)}, {.timeout = std::chrono::milliseconds(30)});
            }),
            "[serve] no answer before the deadline");
  const Tensor input = made_input(*served.models.find("dense"), 2, 0);
  EXPECT_TRUE(same_bits(dense.predict({input}).at(0), alone("dense.keras", input)));
  EXPECT_THROW(connect(served.scratch.path("nobody")), DeviceError);
  EXPECT_THROW(connect(served.path(), {.slots = 1 << 20}), DeviceError);
  EXPECT_THROW(connect(served.path(), {.slots = 16, .slot_bytes = uint64_t{1} << 32}), DeviceError);
}

TEST(local, a_stale_socket_is_replaced_and_a_live_one_is_not) {
  Served served;
  struct stat found {};
  ASSERT_EQ(::stat(served.path().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  EXPECT_PRED2(contains, message_of<InvalidArgument>([&] { Server(served.models, served.scheduler, {.path = served.path()}); }),
               "another server listens");
  served.check();
  served.server.reset();
  EXPECT_NE(::stat(served.path().c_str(), &found), 0);  // it is gone with its server
  const int left = ::socket(AF_UNIX, SOCK_STREAM, 0);   // as by a server that was killed
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  served.path().copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(left, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ::close(left);
  served.server.emplace(served.models, served.scheduler, ServerOptions{.path = served.path()});
  served.check();
  const std::string file = served.scratch.write("file", "text");
  EXPECT_PRED2(contains, message_of<InvalidArgument>([&] { Server(served.models, served.scheduler, {.path = file}); }), "is no socket");
  EXPECT_PRED2(contains, message_of<InvalidArgument>([&] { Server(served.models, served.scheduler, {.path = std::string(200, 'x')}); }),
               "1 to 107 bytes");
}

TEST(local, those_beyond_the_limits_are_refused) {
  Served served({.connections = 2, .region_bytes = 1 << 20, .total_bytes = 3 << 19});
  auto one = connect(served.path(), {.slots = 1, .slot_bytes = 1 << 19});
  EXPECT_PRED2(contains, message_of<DeviceError>([&] { connect(served.path(), {.slots = 4, .slot_bytes = 1 << 19}); }), "--region-limit");
  auto two = connect(served.path(), {.slots = 1, .slot_bytes = 1 << 19});
  for (int i = 0; i < 200; ++i)  // whether the server hangs up before or after the client says hello
    EXPECT_PRED2(contains, message_of<DeviceError>([&] { connect(served.path(), {.slots = 1}); }), "2 clients are connected already");
}

TEST(local, a_client_that_breaks_the_rules_is_hung_up_on_alone) {
  Served served;
  auto other = connect(served.path()).model("dense");
  const Tensor input = made_input(*served.models.find("dense"), 1, 0), expected = alone("dense.keras", input);
  const std::function<void(RawClient&)> deeds[] = {
      [](RawClient& client) { store(client.region->header().request_tail, 1000), client.ring(); },
      [](RawClient& client) {
        client.write({1, 1, 77, 0, 1, 0, 0, 256, 0});
      },
      [](RawClient& client) {
        client.write({1, 9, 0, 0, 1, 0, 0, 256, 0});
      },
      [](RawClient& client) {
        client.write({1, 1, 0, 5, 1, 0, 0, 256, 0});
      },
      [](RawClient& client) {
        client.write({1, 1, 0, 0, 1, 0, 0, 1 << 20, 0});
      },
      [](RawClient& client) {
        client.write({1, 1, 0, 0, 1, 0, 0, 257, 0});
      },
      [](RawClient& client) { send_message(client.socket.get(), "no json"); },
      [](RawClient& client) { send_message(client.socket.get(), std::string(1 << 17, 'x')); },
      [](RawClient& client) { store(client.region->header().request_tail, 0xFFFFFFFF), client.ring(); },
  };
  for (const auto& deed : deeds) {
    RawClient client(served.path());
    client.hello();
    deed(client);
    EXPECT_TRUE(client.is_hung_up_on());
    ASSERT_TRUE(same_bits(other.predict({input}).at(0), expected));
  }
  for (const char* hello :
       {"{}", "[]", "nothing", R"({"hello": 2, "slots": 1, "slot_bytes": 1})", R"({"hello": 1, "slots": -1, "slot_bytes": 1})",
        R"({"hello": 1, "slots": 1, "slot_bytes": 9e18})", R"({"hello": 1, "slots": "x", "slot_bytes": 1})"}) {
    RawClient client(served.path());
    EXPECT_PRED2(contains, client.ask(hello), "error") << hello;
    EXPECT_TRUE(client.is_hung_up_on());
  }
  served.check();
}

TEST(local, wrong_tensors_are_answered_with_why) {
  Served served;
  RawClient client(served.path());
  client.hello();
  uint32_t answered = 0;
  const auto failure_of = [&](const TensorEntry& tensor, uint32_t model) {
    RequestEntry request = client.dense_request(0, 1);
    request.model = model;
    std::memcpy(client.region->slot(0).data(), &tensor, sizeof(tensor));
    client.write(request);
    while (load(client.region->header().response_tail) == answered) std::this_thread::yield();
    const ResponseEntry response = client.region->response(answered++);
    return std::string(reinterpret_cast<const char*>(client.region->slot(0).data()) + 256, response.text_bytes);
  };
  EXPECT_EQ(failure_of({11, 2, 128, 16, 0, {1, 4}}, 0), "");
  EXPECT_EQ(failure_of({99, 2, 128, 16, 0, {1, 4}}, 0), "[serve] input 0 has dtype 99 of 13");
  EXPECT_EQ(failure_of({11, 9, 128, 16, 0, {1, 4}}, 0), "[serve] input 0 has 9 axes; at most 8");
  EXPECT_EQ(failure_of({11, 2, 128, 17, 0, {1, 4}}, 0), "[serve] input 0 is f32[1, 4], 16 bytes; got 17");
  EXPECT_EQ(failure_of({11, 2, 8192, 16, 0, {1, 4}}, 0), "[serve] input 0 has 16 bytes at 8192 of a slot of 8192");
  EXPECT_EQ(failure_of({11, 2, 129, 16, 0, {1, 4}}, 0), "[serve] input 0 has 16 bytes at 129 of a slot of 8192");
  EXPECT_EQ(failure_of({11, 2, 0xFFFFFFFFFFFFFFC0, 16, 0, {1, 4}}, 0),
            "[serve] input 0 has 16 bytes at 18446744073709551552 of a slot of 8192");
  EXPECT_NE(failure_of({11, 2, 128, 16, 0, {-1, 4}}, 0), "");
  EXPECT_NE(failure_of({11, 2, 128, 16, 0, {int64_t{1} << 40, int64_t{1} << 40}}, 0), "");
  served.check();
}

TEST(local, random_bytes_all_over_a_region_harm_nobody_else) {
  Served served;
  auto other = connect(served.path()).model("dense");
  const Tensor input = made_input(*served.models.find("dense"), 1, 0), expected = alone("dense.keras", input);
  std::mt19937_64 random(3);
  for (int round = 0; round < 40; ++round) {
    RawClient client(served.path());
    client.hello();
    const Layout& layout = client.region->layout();
    for (int i = 0; i < 100; ++i) {
      RequestEntry request = client.dense_request(static_cast<uint32_t>(random() % 4), random());
      request.model = static_cast<uint32_t>(random() % 2);
      // A few bytes of the request or of its tensor's description, wherever they lie.
      const auto spoil = [&](std::span<std::byte> bytes) {
        for (uint64_t n = random() % 4; n > 0; --n) bytes[random() % bytes.size()] = std::byte(random() % 256);
      };
      if (random() % 2 == 0) spoil(client.region->slot(request.slot).first(96));
      if (random() % 8 == 0) spoil(std::as_writable_bytes(std::span(&request, 1)));
      if (random() % 50 == 0) spoil({reinterpret_cast<std::byte*>(&client.region->header()), layout.slots_at()});
      client.write(request);
      if (random() % 8 == 0) std::this_thread::yield();
    }
    ASSERT_TRUE(same_bits(other.predict({input}).at(0), expected));
  }
  served.check();
}

TEST(local, a_client_that_never_reads_keeps_nobody_waiting) {
  Served served;
  RawClient client(served.path());
  client.hello();
  auto other = connect(served.path()).model("dense");
  const Tensor input = made_input(*served.models.find("dense"), 1, 0), expected = alone("dense.keras", input);
  uint32_t written = 0;
  for (int i = 0; i < 300; ++i) {
    while (load(client.region->header().response_tail) != written) std::this_thread::yield();
    client.write(client.dense_request(static_cast<uint32_t>(i % 4), static_cast<uint64_t>(i)));
    ++written;
    if (i % 10 == 0) {
      ASSERT_TRUE(same_bits(other.predict({input}).at(0), expected));
    }
  }
}

TEST(local, clients_that_leave_are_not_computed_for_and_their_memory_is_given_back) {
  Served served;
  const auto model = served.models.find("dense");
  {
    Gate gate(served.scheduler, model);
    RawClient client(served.path());
    client.hello();
    for (uint32_t i = 0; i < 4; ++i) client.write(client.dense_request(i, i));
    while (served.server->counters().connected == 0) std::this_thread::yield();
    client = RawClient(served.path());  // the first one is gone
    while (served.server->counters().accepted < 2 || served.server->counters().connected > 1) std::this_thread::yield();
  }
  served.check();
  EXPECT_EQ(model->statistics().read().samples, 4);  // the gate's one and check()'s three
  for (int i = 0; i < 2000 && served.server->counters().region_bytes > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(served.server->counters().region_bytes, 0u);
}

TEST(local, a_server_that_ends_is_noticed) {
  Served served;
  auto dense = connect(served.path()).model("dense");
  served.server.reset();
  EXPECT_EQ(message_of<DeviceError>([&] { dense.predict({made_input(*served.models.find("dense"), 1, 0)}); }),
            "[connect] the server is gone");
}

}  // namespace
}  // namespace tutti::serve
