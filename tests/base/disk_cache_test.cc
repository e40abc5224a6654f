#include "tutti/base/disk_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "tutti/base/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

class disk_cache : public testing::Test {
 protected:
  disk_cache() : folder_(fs::temp_directory_path() / fmt::format("tutti_cache_{}", ::getpid())) {}
  ~disk_cache() override { fs::remove_all(folder_); }
  std::vector<fs::path> files() const {
    std::vector<fs::path> out;
    for (const auto& entry : fs::directory_iterator(folder_)) out.push_back(entry.path());
    return out;
  }
  fs::path folder_;
};

TEST_F(disk_cache, gives_back_what_was_stored) {
  const DiskCache cache(folder_);
  EXPECT_FALSE(cache.find("key"));
  cache.store("key", "value");
  cache.store("other", std::string("\0\n", 2));
  EXPECT_EQ(cache.find("key"), "value");
  EXPECT_EQ(cache.find("other"), std::string("\0\n", 2));
  EXPECT_EQ(DiskCache(folder_).find("key"), "value");
  cache.remove("key");
  EXPECT_FALSE(cache.find("key"));
  EXPECT_EQ(fs::status(folder_).permissions(), fs::perms::owner_all);
}

TEST_F(disk_cache, a_damaged_entry_is_none_and_is_replaced) {
  const DiskCache cache(folder_);
  cache.store("key", std::string(1000, 'v'));
  ASSERT_EQ(files().size(), 1u);
  const fs::path path = files()[0];
  const auto whole = fs::file_size(path);
  for (const auto& damage : std::vector<std::function<void()>>{
           [&] { fs::resize_file(path, whole - 1); },
           [&] { fs::resize_file(path, 10); },
           [&] { fs::resize_file(path, 0); },
           [&] {
             std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
             file.seekp(static_cast<std::streamoff>(whole) - 3);
             file << 'x';
           },
           [&] { std::ofstream(path) << "something else entirely, long enough to be an entry of the cache perhaps"; },
       }) {
    damage();
    EXPECT_FALSE(cache.find("key"));
    cache.store("key", std::string(1000, 'v'));
    EXPECT_EQ(cache.find("key"), std::string(1000, 'v'));
  }
}

TEST_F(disk_cache, an_entry_under_the_wrong_name_is_none) {
  const DiskCache cache(folder_);
  cache.store("a", "of a");
  const fs::path of_a = files()[0];
  cache.store("b", "of b");
  for (const auto& path : files())
    if (path != of_a) fs::copy_file(path, of_a, fs::copy_options::overwrite_existing);
  EXPECT_FALSE(cache.find("a"));
}

TEST_F(disk_cache, drops_what_was_not_asked_for_longest) {
  const DiskCache cache(folder_, 5000);
  for (const char* key : {"a", "b", "c", "d"}) {
    cache.store(key, std::string(1000, 'v'));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_TRUE(cache.find("a"));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  cache.store("e", std::string(1000, 'v'));
  EXPECT_TRUE(cache.find("a"));
  EXPECT_FALSE(cache.find("b"));
  EXPECT_TRUE(cache.find("e"));
  cache.store("too large", std::string(6000, 'v'));
  EXPECT_FALSE(cache.find("too large"));
  EXPECT_TRUE(cache.find("e"));
}

TEST_F(disk_cache, threads_and_processes_may_do_what_they_like) {
  const DiskCache cache(folder_, 20'000);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 60; ++i) {
        const std::string key = std::to_string((i + t) % 30), value(1000, static_cast<char>('a' + (i + t) % 30 % 26));
        cache.store(key, value);
        if (const auto found = cache.find(key); found && *found != value) ++wrong;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  for (const auto& path : files()) EXPECT_EQ(path.extension(), ".program");
}

TEST_F(disk_cache, nothing_is_kept_where_nothing_can_be) {
  const DiskCache none("");
  none.store("key", "value");
  EXPECT_FALSE(none.find("key"));
  std::ofstream(folder_.string()) << "a file, not a folder";
  const DiskCache cache(folder_);
  cache.store("key", "value");
  EXPECT_FALSE(cache.find("key"));
}

}  // namespace
}  // namespace tutti
