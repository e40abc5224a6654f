#include "tutti/data/event_file.h"

#include "tests/scratch.h"
#include "tutti/base/error.h"

namespace tutti {
namespace {

// The data of the records of a file, lengths as they say, checksums left alone: cli/fit_test.py reads them with TensorBoard itself.
std::vector<std::string> records_of(const std::string& bytes) {
  std::vector<std::string> out;
  for (size_t at = 0; at + 16 <= bytes.size();) {
    uint64_t length = 0;
    for (size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[at + i]);
    out.push_back(bytes.substr(at + 12, length));
    at += 16 + length;
  }
  return out;
}

TEST(event_file, begins_with_its_version_and_grows_by_records) {
  const Scratch scratch;
  const std::string path = scratch.path("events.out.tfevents.1");
  EventFile file(path);
  const std::vector<std::string> names{"loss", "val_loss"};
  file.add(0, names, std::vector<double>{0.5, 0.25});
  EXPECT_FALSE(std::filesystem::exists(path));
  file.flush();
  file.add(300, names, std::vector<double>{0.5, 0.25});
  file.flush();
  file.flush();
  const auto records = records_of(slurp(path));
  ASSERT_EQ(records.size(), 3u);
  EXPECT_TRUE(
      records[0].ends_with("\x1a\x0d"
                           "brain.Event:2"));
  // Behind the time: the step, then each value by its tag.
  EXPECT_EQ(records[1].substr(9),
            std::string("\x10\0\x2a\x1e\x0a\x0b\x0a\x04loss\x15\0\0\0\x3f\x0a\x0f\x0a\x08val_loss\x15\0\0\x80\x3e", 34));
  EXPECT_EQ(records[2].substr(9, 3), "\x10\xac\x02");
}

TEST(event_file, a_new_run_replaces_the_file_and_says_where_it_cannot_write) {
  const Scratch scratch;
  const std::string path = scratch.path("tfevents");
  for (int run = 0; run < 2; ++run) {
    EventFile file(path);
    file.add(0, std::vector<std::string>{"a"}, std::vector<double>{1});
    file.flush();
  }
  EXPECT_EQ(records_of(slurp(path)).size(), 2u);
  EventFile lost(path);
  lost.flush();
  std::filesystem::remove(path);
  lost.add(0, {}, {});
  EXPECT_PRED2(contains, message_of<InvalidArgument>([&] { lost.flush(); }), path);
}

}  // namespace
}  // namespace tutti
