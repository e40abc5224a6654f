#include "tutti/base/file.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/scratch.h"
#include "tutti/base/error.h"

namespace tutti {

namespace {

TEST(file, reads_are_checked_against_the_size) {
  Scratch scratch;
  auto file = open_file(scratch.write("a", "0123456789"));
  EXPECT_EQ(file->size(), 10u);
  std::vector<std::byte> four(4);
  file->read(6, four);
  EXPECT_EQ(four[3], std::byte{'9'});
  EXPECT_THROW(file->read(7, four), InvalidArgument);
  EXPECT_THROW(file->read(~uint64_t{0}, four), InvalidArgument);
  EXPECT_NO_THROW(file->read(10, {}));
}

TEST(FileDeathTest, more_files_may_be_open_than_a_process_begins_with) {
  Scratch scratch;
  const std::string path = scratch.write("x", "text");
  EXPECT_EXIT(
      {
        rlimit limit{};
        ::getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = 32;
        ::setrlimit(RLIMIT_NOFILE, &limit);
        std::vector<std::shared_ptr<const ByteSource>> files;
        for (int i = 0; i < 100; ++i) files.push_back(open_file(path));
        ::_exit(text_of(*files.back()) == "text" ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(file, parts_cannot_leave_their_whole) {
  auto bytes = std::as_bytes(std::span("0123456789", 10));
  auto whole = memory_source({bytes.begin(), bytes.end()});
  auto part = part_of(part_of(whole, 2, 6), 1, 4);
  EXPECT_EQ(text_of(*part), "3456");
  std::vector<std::byte> two(2);
  EXPECT_THROW(part->read(3, two), InvalidArgument);
  EXPECT_THROW(part_of(whole, 8, 3), InvalidArgument);
  EXPECT_THROW(part_of(whole, 3, ~uint64_t{0}), InvalidArgument);
  EXPECT_THROW(read_all(*whole, 9), InvalidArgument);
}

TEST(file, only_regular_files_are_opened) {
  Scratch scratch;
  EXPECT_PRED2(contains, message_of<InvalidArgument>([&] { open_file(scratch.path("none")); }), "No such file");
  EXPECT_PRED2(contains, message_of<InvalidArgument>([&] { open_file(scratch.path(".")); }), "directory");
  scratch.write("a", "1");
  EXPECT_PRED2(contains, message_of<InvalidArgument>([&] { open_file(scratch.path("a") + std::string("\0b", 2)); }), "no zero byte");
  ASSERT_EQ(mkfifo(scratch.path("pipe").c_str(), 0600), 0);
  EXPECT_THROW(open_file(scratch.path("pipe")), InvalidArgument);
}

TEST(file, a_file_that_shrinks_is_an_error) {
  Scratch scratch;
  std::string path = scratch.write("a", "0123456789");
  auto file = open_file(path);
  std::filesystem::resize_file(path, 3);
  std::vector<std::byte> bytes(10);
  EXPECT_PRED2(contains, message_of<InvalidArgument>([&] { file->read(0, bytes); }), "shorter");
}

TEST(file, outputs_appear_whole_or_not_at_all) {
  Scratch scratch;
  std::string path = scratch.write("out", "old");
  {
    OutputFile out(path);
    out.write("new");
    EXPECT_EQ(slurp(path), "old");
  }
  EXPECT_EQ(slurp(path), "old");
  EXPECT_EQ(scratch.files(), 1u);
  OutputFile out(path);
  out.write("new");
  out.commit();
  EXPECT_EQ(slurp(path), "new");
  EXPECT_EQ(scratch.files(), 1u);
  EXPECT_THROW(out.write(std::string(1 << 20, 'x')), InternalError);
}

TEST(file, small_and_large_writes_keep_their_order) {
  Scratch scratch;
  OutputFile out(scratch.path("out"));
  std::string expected;
  for (size_t size : {1u, 100u, 70000u, 3u, 65536u, 65535u, 1u, 200000u}) {
    std::string piece(size, static_cast<char>('a' + expected.size() % 26));
    out.write(piece);
    expected += piece;
    EXPECT_EQ(out.size(), expected.size());
  }
  out.write_at(2, std::as_bytes(std::span("HEAD", 4)));
  expected.replace(2, 4, "HEAD");
  EXPECT_THROW(out.write_at(expected.size() - 2, std::as_bytes(std::span("HEAD", 4))), InvalidArgument);
  out.commit();
  EXPECT_EQ(slurp(scratch.path("out")), expected);
}

TEST(file, a_link_to_what_is_not_there_yet_says_where_it_is_made) {
  Scratch scratch;
  std::filesystem::create_directory(scratch.path("far"));
  std::filesystem::create_symlink("far/link", scratch.path("link"));
  std::filesystem::create_symlink("target", scratch.path("far/link"));
  OutputFile out(scratch.path("link"));
  out.write("new");
  out.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(scratch.path("link")));
  EXPECT_EQ(slurp(scratch.path("far/target")), "new");
  std::filesystem::create_symlink("nowhere/target", scratch.path("lost"));
  EXPECT_PRED2(contains, message_of<InvalidArgument>([&] { OutputFile(scratch.path("lost")); }), "No such file");
}

TEST(file, a_link_stays_a_link_when_its_target_is_written) {
  Scratch scratch;
  scratch.write("target", "old");
  std::filesystem::create_symlink(scratch.path("target"), scratch.path("link"));
  OutputFile out(scratch.path("link"));
  out.write("new");
  out.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(scratch.path("link")));
  EXPECT_EQ(slurp(scratch.path("target")), "new");
}

TEST(file, outputs_that_cannot_be_written_say_why) {
  Scratch scratch;
  EXPECT_PRED2(contains, message_of<InvalidArgument>([&] { OutputFile(scratch.path("none/out")); }), "No such file");
  EXPECT_PRED2(contains, message_of<InvalidArgument>([&] { OutputFile(scratch.path(".")); }), "not a regular file");
  EXPECT_THROW(OutputFile("/dev/null"), InvalidArgument);
  std::filesystem::create_symlink("round", scratch.path("round"));
  EXPECT_PRED2(contains, message_of<InvalidArgument>([&] { OutputFile(scratch.path("round")); }), "round': Too many levels");
}

}  // namespace

}  // namespace tutti
