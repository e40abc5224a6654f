#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/device/run_graph.h"
#include "tutti/base/disk_cache.h"
#include "tutti/base/error.h"
#include "tutti/graph/build.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

TEST(program_cache, a_program_is_loaded_and_one_that_cannot_be_is_compiled) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("tutti_programs_{}", ::getpid());
  const auto files = [&] {
    std::vector<fs::path> out;
    for (const auto& entry : fs::directory_iterator(folder)) out.push_back(entry.path());
    return out;
  };
  setenv("TUTTI_CACHE", folder.c_str(), 1);
  Graph graph;
  graph.output("y", graph.input("x", {DType::f32, {3}}) + 1.0);
  const auto run = [&] { return floats(Runner(graph, "xla:cpu")({f32({3}, {1, 2, 3})})[0]); };
  try {
    EXPECT_EQ(run(), (std::vector<float>{2, 3, 4}));
  } catch (const DeviceError& e) {
    GTEST_SKIP() << e.what();
  }
  ASSERT_EQ(files().size(), 1u);
  const auto first = fs::last_write_time(files()[0]);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(run(), (std::vector<float>{2, 3, 4}));
  EXPECT_GT(fs::last_write_time(files()[0]), first);  // asked for
  ASSERT_EQ(files().size(), 1u);
  // An entry that is whole, and no program.
  std::ifstream file(files()[0], std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  uint64_t length = 0;
  std::memcpy(&length, text.data() + 20, 8);
  DiskCache(folder).store(text.substr(28, length), "no program");
  EXPECT_EQ(run(), (std::vector<float>{2, 3, 4}));
  EXPECT_GT(fs::file_size(files()[0]), text.size() / 2);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tutti
