#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/device/run_graph.h"
#include "tests/graph/random_graph.h"
#include "tutti/base/error.h"
#include "tutti/device/host.h"

namespace tutti {
namespace {

TEST(registry, opens_a_device_once) {
  EXPECT_EQ(open_device("reference"), open_device("reference"));
  EXPECT_EQ(open_device("reference")->name(), "reference");
}

TEST(registry, an_unknown_name_lists_its_neighbours) {
  try {
    open_device("refernce");
    FAIL();
  } catch (const InvalidArgument& e) {
    EXPECT_NE(std::string(e.what()).find("unknown device 'refernce' (did you mean 'reference'?)"), std::string::npos) << e.what();
  }
}

TEST(registry, lists_what_it_opens) {
  auto listings = list_devices();
  ASSERT_GE(listings.size(), 2u);
  for (const auto& listing : listings) {
    EXPECT_FALSE(listing.found.empty()) << listing.name;
    if (!listing.usable) continue;
    EXPECT_EQ(open_device(listing.name)->name(), listing.name);
    EXPECT_FALSE(listing.description.empty());
    EXPECT_GT(listing.memory_bytes, 0);
  }
}

TEST(null, plans_and_counts_and_gives_zeros) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {2, 3}});
  Value w = graph.parameter(Graph::Role::weight, "w", {DType::f32, {3, 4}});  // no value
  graph.output("y", tanh(dot_general(x, w, {{}, {}, {1}, {0}})));
  Runner runner(graph, "null");
  EXPECT_EQ(floats(runner({RandomGraph::ramp({2, 3})})[0]), std::vector<float>(8, 0));
  const auto& stats = runner.program().stats();
  EXPECT_EQ(stats.kernels, 2);
  EXPECT_EQ(stats.flops, 2 * 2 * 3 * 4 + 8);
  EXPECT_EQ(stats.weight_bytes, 48);
  EXPECT_EQ(stats.peak_memory_bytes, 128);
}

TEST(memory, a_program_that_does_not_fit_is_refused_before_it_allocates) {
  Graph graph;
  Value x = graph.iota({DType::f32, {int64_t{1} << 45}}, 0);
  graph.output("y", reduce(tanh(x), "add", {0}));
  try {
    open_device("reference")->compile(graph);
    FAIL();
  } catch (const OutOfMemory& e) {
    std::string message = e.what();
    EXPECT_NE(message.find("a program with 0 bytes of weights needs 281474976710"), std::string::npos) << message;
    EXPECT_NE(message.find("bytes are available"), std::string::npos) << message;
  }
  EXPECT_EQ(open_device("null")->compile(graph)->stats().peak_memory_bytes, int64_t{2} << 47);
}

TEST(memory, a_buffer_that_does_not_fit_is_refused) {
  EXPECT_THROW(open_device("reference")->allocate({DType::f32, {int64_t{1} << 45}}), OutOfMemory);
}

TEST(memory, is_what_the_machine_says) {
  EXPECT_GT(available_memory(), 0);
  EXPECT_LE(available_memory(), total_memory());
}

TEST(memory, an_address_space_limit_counts) {
  pid_t child = fork();
  if (child == 0) {
    std::ifstream statm("/proc/self/statm");
    int64_t pages = 0;
    statm >> pages;
    constexpr int64_t allowance = int64_t{64} << 20;
    rlimit limit{};
    limit.rlim_cur = limit.rlim_max = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + allowance);
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
    _exit(available_memory() <= allowance ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace tutti
