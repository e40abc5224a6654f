#include "tutti/data/items.h"

#include <cstdlib>

#include "tests/scratch.h"
#include "tutti/base/error.h"
#include "tutti/data/tar.h"

namespace tutti {
namespace {

using Names = std::vector<std::string>;

Names names_of(ItemSource& source) {
  Names out;
  for (Item item; source.next(item, std::chrono::milliseconds(1000)) == ItemSource::Next::item;) out.push_back(item.name);
  return out;
}

TEST(items, a_folder_is_read_with_the_folders_below_sorted_by_path) {
  Scratch scratch;
  std::filesystem::create_directories(scratch.path("in/b/deep"));
  for (const char* name : {"in/b/x.JPG", "in/b/deep/y.png", "in/a.jpeg", "in/notes.txt", "in/b.png", "in/b-1.png"}) scratch.write(name, "");
  std::filesystem::create_symlink("loop.png", scratch.path("in/loop.png"));  // reading it fails, listing it does not
  auto source = items_of_folder(scratch.path("in"));
  EXPECT_EQ(source->count(), 6);
  EXPECT_EQ(names_of(*source), (Names{"a.jpeg", "b-1.png", "b.png", "b/deep/y.png", "b/x.JPG", "loop.png"}));
  EXPECT_THROW(items_of_folder(scratch.path("none")), InvalidArgument);
}

TEST(items, a_list_has_a_path_a_line) {
  Scratch scratch;
  auto source = items_of_list(scratch.write("list", "a.jpg\r\n\n b c.png\nlast"));
  EXPECT_EQ(names_of(*source), (Names{"a.jpg", " b c.png", "last"}));
  EXPECT_PRED2(contains, message_of<InvalidArgument>([&] { items_of_list(scratch.path("none")); }), "cannot open");
}

TEST(items, a_stream_that_has_nothing_yet_says_so) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  auto source = items_of_list(fmt::format("/proc/self/fd/{}", ends[0]));
  Item item;
  EXPECT_EQ(source->next(item, std::chrono::milliseconds(0)), ItemSource::Next::none_yet);
  ASSERT_EQ(::write(ends[1], "one\ntw", 6), 6);
  EXPECT_EQ(source->next(item, std::chrono::milliseconds(1000)), ItemSource::Next::item);
  EXPECT_EQ(item.name, "one");
  EXPECT_EQ(source->next(item, std::chrono::milliseconds(0)), ItemSource::Next::none_yet);
  ASSERT_EQ(::write(ends[1], "o", 1), 1);
  ::close(ends[1]);
  EXPECT_EQ(names_of(*source), Names{"two"});
  ::close(ends[0]);
}

// Archives as the tar program writes them, with names beyond ustar's.
class Tar : public testing::TestWithParam<std::string> {};

TEST_P(Tar, members_are_read_in_order) {
  Scratch scratch;
  const std::string deep = std::string(90, 'd') + "/" + std::string(120, 'n') + ".png";
  std::filesystem::create_directories(scratch.path(std::string(90, 'd')));
  scratch.write("b.jpg", "the bytes of b");
  scratch.write("notes.txt", "no image");
  if (GetParam() != "ustar") scratch.write(deep, std::string(1000, 'x'));
  const std::string folder = std::filesystem::path(scratch.path("b.jpg")).parent_path().string();
  std::filesystem::create_hard_link(scratch.path("b.jpg"), scratch.path("hard.jpg"));
  std::filesystem::create_symlink("b.jpg", scratch.path("soft.png"));
  const std::string names = "b.jpg notes.txt hard.jpg soft.png " + (GetParam() == "ustar" ? "" : deep);
  ASSERT_EQ(std::system(fmt::format("cd {} && tar --format={} -cf a.tar {}", folder, GetParam(), names).c_str()), 0);
  auto archive = open_file(scratch.path("a.tar"));
  EXPECT_TRUE(is_tar(*archive));
  auto source = items_of_tar(archive, "a.tar");
  Item item;
  ASSERT_EQ(source->next(item, {}), ItemSource::Next::item);
  EXPECT_EQ(item.name, "b.jpg");
  auto bytes = read_item(item, 100);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "the bytes of b");
  EXPECT_THROW(read_item(item, 3), InvalidArgument);
  for (const char* name : {"hard.jpg", "soft.png"}) {
    ASSERT_EQ(source->next(item, {}), ItemSource::Next::item);
    EXPECT_EQ(item.name, name);
    EXPECT_PRED2(contains, message_of<InvalidArgument>([&] { read_item(item, 100); }),
                 "[tar] is a link to 'b.jpg', and links in an archive");
  }
  if (GetParam() != "ustar") {
    ASSERT_EQ(source->next(item, {}), ItemSource::Next::item);
    EXPECT_EQ(item.name, deep);
    EXPECT_EQ(read_item(item, 5000).size(), 1000);
  }
  EXPECT_EQ(source->next(item, {}), ItemSource::Next::end);
}

INSTANTIATE_TEST_SUITE_P(items, Tar, testing::Values("ustar", "gnu", "pax"));

TEST(items, a_broken_archive_is_refused_with_its_place) {
  Scratch scratch;
  for (const char* name : {"b.jpg", "c.jpg"}) scratch.write(name, std::string(2000, 'x'));
  const std::string folder = std::filesystem::path(scratch.path("b.jpg")).parent_path().string();
  ASSERT_EQ(std::system(fmt::format("cd {} && tar -cf a.tar b.jpg c.jpg", folder).c_str()), 0);
  std::string whole = slurp(scratch.path("a.tar"));
  const auto message = [&](const std::string& bytes) {
    auto source = items_of_tar(open_file(scratch.write("x.tar", bytes)), "x.tar");
    return message_of<InvalidArgument>([&] { names_of(*source); });
  };
  std::string changed = whole;
  changed[2560 + 3] = '?';
  EXPECT_EQ(message(changed), "[tar] x.tar: a header with a wrong checksum at offset 2560");
  EXPECT_EQ(message(whole.substr(0, 2560 + 700)), "[tar] x.tar: a member that is longer than the archive at offset 2560");
  EXPECT_EQ(message(whole.substr(0, 2560 + 100)), "[tar] x.tar: the archive ends within a header at offset 2560");
}

}  // namespace
}  // namespace tutti
