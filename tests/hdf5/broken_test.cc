// Damaged files are read or refused, never more: see tests/hostile.h. Where the format protects its metadata with checksums, the damage is
// also done behind them, with the checksum made right again.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/hdf5/files.h"
#include "tests/hdf5/walk.h"
#include "tests/hostile.h"
#include "tutti/keras/hdf5/checksum.h"

namespace tutti::keras {

namespace {

// Between them these small files have every structure of the format.
constexpr const char* files[] = {"keras_like_earliest", "keras_like_latest", "strings_earliest",   "strings_latest",
                                 "compact_earliest",    "compact_latest",    "fill_values_latest", "fill_values_v108",
                                 "plain_edges",         "skipped_filters",   "width_2_earliest",   "width_4_latest",
                                 "nested_latest",       "old_layouts",       "refused_latest",     "types_earliest"};

void expect_walk_contained(Outcomes& outcomes, const std::string& what, const Bytes& bytes) {
  expect_contained(outcomes, what, [&] { walk(Hdf5File(memory_source(bytes))); });
}

Bytes bytes_of(const std::string& name) { return read_all(*open_test_file(name), 64 << 20); }

// Where metadata begin with a signature and end with a checksum: first byte → place of the checksum.
std::map<size_t, size_t> checked_blocks(const Bytes& bytes) {
  static const std::set<std::string> signatures = {"\x89HDF", "OHDR", "OCHK", "FRHP", "FHIB", "BTHD", "BTIN",
                                                   "BTLF",    "FAHD", "FADB", "EAHD", "EAIB", "EASB", "EADB"};
  std::map<size_t, size_t> out;
  for (size_t at = 0; at + 4 < bytes.size(); ++at) {
    if (!signatures.contains(std::string(reinterpret_cast<const char*>(&bytes[at]), 4))) continue;
    for (size_t end = at + 4; end + 4 <= std::min(bytes.size(), at + 2048); ++end) {
      uint32_t stored = 0;
      std::memcpy(&stored, &bytes[end], 4);
      if (hdf5::lookup3(std::span(bytes).subspan(at, end - at)) != stored) continue;
      out[at] = end;
      break;
    }
  }
  return out;
}

class Broken : public testing::TestWithParam<const char*> {};

TEST_P(Broken, files_are_read_or_refused) {
  MemoryLimit limit;
  Outcomes outcomes;
  for_each_damage(bytes_of(GetParam()), 1500,
                  [&](const Bytes& bad, const std::string& what) { expect_walk_contained(outcomes, what, bad); });
  EXPECT_GT(outcomes.refused, 10);
}

TEST_P(Broken, files_with_correct_checksums_are_read_or_refused) {
  const Bytes good = bytes_of(GetParam());
  MemoryLimit limit;
  Outcomes outcomes;
  for (auto [start, end] : checked_blocks(good)) {
    Bytes block(good.begin() + static_cast<std::ptrdiff_t>(start), good.begin() + static_cast<std::ptrdiff_t>(end));
    for_each_damage(block, 60, [&, begin = start, stop = end](const Bytes& bad, const std::string& what) {
      if (bad.size() != block.size()) return;
      Bytes whole = good;
      uint32_t sum = hdf5::lookup3(bad);
      std::copy(bad.begin(), bad.end(), whole.begin() + static_cast<std::ptrdiff_t>(begin));
      std::memcpy(&whole[stop], &sum, 4);
      expect_walk_contained(outcomes, "block at " + std::to_string(begin) + ": " + what, whole);
    });
  }
  if (std::string(GetParam()).ends_with("latest")) {
    EXPECT_GT(outcomes.accepted + outcomes.refused, 50);
  }
}

INSTANTIATE_TEST_SUITE_P(hdf5, Broken, testing::ValuesIn(files), [](const auto& file) { return std::string(file.param); });

TEST(hdf5_broken, the_index_of_many_chunks_is_damaged) {
  const Bytes good = bytes_of("many_chunks");
  MemoryLimit limit;
  Outcomes outcomes;
  for (auto [start, end] : checked_blocks(good)) {
    for (size_t at = start; at < std::min(end, start + 40); at += 3) {
      Bytes bad = good;
      bad[at] ^= std::byte{0x11};
      uint32_t sum = hdf5::lookup3(std::span(bad).subspan(start, end - start));
      std::memcpy(&bad[end], &sum, 4);
      expect_walk_contained(outcomes, "byte " + std::to_string(at), bad);
    }
  }
  EXPECT_GT(outcomes.accepted, 20);
}

TEST(hdf5_broken, data_sets_that_share_their_bytes_cannot_multiply_them) {
  // Reading one data set of 4 MB from a file of 200 KB over and over is what links to one data set would do.
  Hdf5File file(open_test_file("chunked_latest"));
  MemoryLimit limit;
  EXPECT_THROW(for (int i = 0; i < 1000; ++i) file.read("zeros"), InvalidModel);
}

TEST(hdf5_broken, a_file_asked_for_its_metadata_forever_gives_up) {
  Hdf5File file(open_test_file("nested_latest"));
  EXPECT_THROW(for (int i = 0; i < 10'000'000; ++i) file.kind(i % 2 ? "shared" : "a"), InvalidModel);
}

TEST(hdf5_broken, a_data_set_larger_than_the_file_is_refused_before_it_is_allocated) {
  Bytes good = bytes_of("old_layouts");
  const std::vector<uint8_t> old = {1, 1, 1, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0};
  auto same = [](std::byte b, uint8_t c) { return b == static_cast<std::byte>(c); };
  auto at = std::search(good.begin(), good.end(), old.begin(), old.end(), same);
  ASSERT_NE(at, good.end());
  while (at != good.end()) {
    at[13] = std::byte{1};  // 2^40 + 10 elements
    at = std::search(at, good.end(), old.begin(), old.end(), same);
  }
  MemoryLimit limit;
  Hdf5File file(memory_source(good));
  for (const auto& name : file.children("")) EXPECT_THROW(file.read(name), InvalidModel) << name;
}

}  // namespace

}  // namespace tutti::keras
