#include "tutti/base/zip.h"

#include <algorithm>

#include "tests/hostile.h"
#include "tests/scratch.h"

namespace tutti {

namespace {

std::string archive(const std::string& name) { return std::string(TUTTI_TEST_DATA) + "/base_archives/" + name + ".zip"; }

Bytes bytes_of_archive(const std::string& name) { return read_all(*open_file(archive(name)), 64 << 20); }

// Where `pattern` stands for the n-th time.
size_t find(const Bytes& bytes, std::string_view pattern, int n = 0) {
  auto from = bytes.begin();
  for (;; ++from) {
    from =
        std::search(from, bytes.end(), pattern.begin(), pattern.end(), [](std::byte b, char c) { return b == static_cast<std::byte>(c); });
    if (from == bytes.end()) throw std::runtime_error("not there");
    if (n-- == 0) return static_cast<size_t>(from - bytes.begin());
  }
}

void put(Bytes& bytes, size_t at, uint64_t value, size_t width) {
  for (size_t i = 0; i < width; ++i) bytes.at(at + i) = static_cast<std::byte>(value >> (8 * i));
}

std::string zip_refusal(Bytes bytes) {
  return message_of<InvalidModel>([&] {
    ZipReader zip(memory_source(std::move(bytes)));
    for (const auto& member : zip.members()) zip.open(member);
  });
}

const std::string central = "PK\x01\x02", local = std::string("PK\x03\x04"), end = "PK\x05\x06";

TEST(zip, archives_of_python_read_back) {
  for (std::string name : {"seekable", "seekable_zip64", "streamed", "streamed_zip64", "comment"}) {
    SCOPED_TRACE(name);
    ZipReader zip(open_file(archive(name)));
    ASSERT_EQ(zip.members().size(), 5u);
    for (const auto& member : zip.members()) {
      EXPECT_EQ(zip.find(member.name), &member);
      auto bytes = read_all(*zip.open(member), 1 << 20);
      ASSERT_EQ(bytes.size() % member.name.size(), 0u);
      for (size_t i = 0; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], static_cast<std::byte>(member.name[i % member.name.size()]));
    }
    EXPECT_EQ(zip.open(*zip.find("folder/é.bin"))->size(), 130000u);
    EXPECT_EQ(zip.find("none"), nullptr);
  }
}

TEST(zip, folders_are_members_without_bytes) {
  ZipReader zip(open_file(archive("folders")));
  ASSERT_NE(zip.find("assets/"), nullptr);
  EXPECT_EQ(zip.open(*zip.find("assets/"))->size(), 0u);
  EXPECT_EQ(zip.open(*zip.find("assets/a.txt"))->size(), 12u);
}

TEST(zip, more_members_than_sixteen_bits_count) {
  ZipReader zip(open_file(archive("many")));
  EXPECT_EQ(zip.members().size(), 70000u);
  EXPECT_NE(zip.find("m69999"), nullptr);
  EXPECT_THROW(ZipReader(open_file(archive("many")), {.members = 69999}), InvalidModel);
}

TEST(zip, other_methods_are_named) {
  ZipReader zip(open_file(archive("other_method")));
  EXPECT_PRED2(contains, message_of<Unsupported>([&] { zip.open(zip.members()[0]); }), "method 14");
}

TEST(zip, what_is_no_archive_is_refused) {
  EXPECT_PRED2(contains, zip_refusal({}), "not a zip archive");
  EXPECT_PRED2(contains, zip_refusal(Bytes(1000)), "not a zip archive");
}

TEST(zip, bombs_are_refused_before_they_are_inflated) {
  ZipReader zip(open_file(archive("bomb")));
  MemoryLimit limit;
  EXPECT_PRED2(contains, message_of<InvalidModel>([&] { zip.open(zip.members()[0]); }), "beyond what is allowed");
}

TEST(zip, a_hundred_megabytes_of_zeros_are_no_bomb) {
  ZipReader zip(open_file(archive("zeros")));
  MemoryLimit limit;
  Outcomes outcomes;
  expect_contained(outcomes, "zeros", [&] { zip.open(zip.members()[0]); });
  EXPECT_EQ(outcomes.accepted, 1);
}

TEST(zip, lies_in_the_directory_are_found) {
  const Bytes good = bytes_of_archive("seekable");
  auto with = [&](size_t at, uint64_t value, size_t width) {
    Bytes bad = good;
    put(bad, at, value, width);
    return zip_refusal(std::move(bad));
  };
  const size_t first = find(good, central), second = find(good, central, 1), finish = find(good, end);
  EXPECT_PRED2(contains, with(first + 8, 1, 2), "encrypted");
  EXPECT_PRED2(contains, with(first + 16, 1, 4), "CRC differs");
  EXPECT_PRED2(contains, with(first + 24, 1, 4), "is stored, yet has");
  EXPECT_PRED2(contains, with(first + 42, 1 << 30, 4), "overlaps");
  EXPECT_PRED2(contains, with(second + 42, 0, 4), "overlaps");
  EXPECT_PRED2(contains, with(second + 24, 130001, 4), "a size or the CRC differs");
  EXPECT_PRED2(contains, with(finish + 4, 1, 2), "several disks");
  EXPECT_PRED2(contains, with(finish + 8, 9, 2), "several disks");
  EXPECT_PRED2(contains, with(finish + 12, 5, 4), "does not end where");
  EXPECT_PRED2(contains, with(finish + 16, 5, 4), "does not end where");
  EXPECT_PRED2(contains, with(finish + 8, 0x00040004, 4), "left after the last");
  EXPECT_PRED2(contains, with(finish + 8, 0xffffffff, 4), "do not fit");
}

TEST(zip, a_ratio_that_deflate_cannot_have_is_refused) {
  Bytes bad = bytes_of_archive("seekable");
  put(bad, find(bad, local, 1) + 22, 100 << 20, 4);
  put(bad, find(bad, central, 1) + 24, 100 << 20, 4);
  EXPECT_PRED2(contains, zip_refusal(bad), "beyond what is allowed");
}

TEST(zip, a_member_that_disagrees_with_the_directory_is_found) {
  const Bytes good = bytes_of_archive("seekable");
  auto with = [&](size_t at, uint64_t value, size_t width) {
    Bytes bad = good;
    put(bad, at, value, width);
    return zip_refusal(std::move(bad));
  };
  const size_t first = find(good, local), second = find(good, local, 1);
  EXPECT_PRED2(contains, with(first, 0, 4), "signature differs");
  EXPECT_PRED2(contains, with(first + 6, 8, 2), "flag differs");
  EXPECT_PRED2(contains, with(first + 8, 8, 2), "method differs");
  EXPECT_PRED2(contains, with(first + 18, 8, 4), "a size or the CRC differs");
  EXPECT_PRED2(contains, with(first + 28, 60000, 2), "the size differs");
  EXPECT_PRED2(contains, with(first + 30, 'M', 1), "name differs");
  EXPECT_PRED2(contains, with(second + 60, 0xffffffff, 4), "does not inflate");
  const Bytes streamed = bytes_of_archive("streamed");
  Bytes bad = streamed;
  put(bad, find(streamed, "PK\x07\x08") + 4, 0, 4);
  EXPECT_PRED2(contains, zip_refusal(bad), "data descriptor differs");
}

TEST(zip, names_stay_inside_of_the_archive) {
  const Bytes good = bytes_of_archive("seekable");  // its first name has 13 letters: metadata.json
  auto named = [&](std::string_view name) {
    Bytes bad = good;
    for (size_t at : {find(good, local) + 30, find(good, central) + 46})
      std::transform(name.begin(), name.end(), bad.begin() + static_cast<std::ptrdiff_t>(at),
                     [](char c) { return static_cast<std::byte>(c); });
    return zip_refusal(std::move(bad));
  };
  EXPECT_PRED2(contains, named("/etc/password"), "not a relative path");
  EXPECT_PRED2(contains, named("C:/windows/xy"), "not a relative path");
  EXPECT_PRED2(contains, named("a\\..\\..\\abcde"), "not a relative path");
  EXPECT_PRED2(contains, named("../../etc/abc"), "leaves the archive");
  EXPECT_PRED2(contains, named("a/../../b/c/d"), "leaves the archive");
  EXPECT_PRED2(contains, named("metadata.js\x1b["), "control character");
  EXPECT_PRED2(contains, named("metadata.js\xff."), "not UTF-8");
}

TEST(zip, two_members_of_one_name_are_refused) {
  Bytes bad = bytes_of_archive("many");
  for (const std::string& signature : {local, central}) {
    size_t header = signature == local ? 30 : 46;
    size_t at = find(bad, signature, 1) + header;
    put(bad, at + 1, '0', 1);  // m1 becomes m0
  }
  EXPECT_PRED2(contains, zip_refusal(bad), "two members are named 'm0'");
}

TEST(zip, damaged_archives_are_read_or_refused) {
  MemoryLimit limit;
  for (std::string name : {"seekable", "streamed_zip64"}) {
    Outcomes outcomes;
    for_each_damage(bytes_of_archive(name), 400, [&](const Bytes& bad, const std::string& what) {
      expect_contained(outcomes, name + ": " + what, [&] {
        ZipReader zip(memory_source(bad));
        for (const auto& member : zip.members()) read_all(*zip.open(member), 1 << 30);
      });
    });
    EXPECT_GT(outcomes.refused, 100);
  }
}

}  // namespace

}  // namespace tutti
