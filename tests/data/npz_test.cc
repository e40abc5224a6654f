// .npz against NumPy's own files; tests/cli has NumPy read ours.
#include "tutti/data/npz.h"

#include "tests/scratch.h"
#include "tutti/base/error.h"

namespace tutti {
namespace {

TEST(Npz, StoredAndDeflatedArraysOfNumPyAreRead) {
  for (std::string file : {"stored.npz", "deflated.npz"}) {
    NpzReader npz(numpy_file(file));
    EXPECT_EQ(npz.names(), (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(to_string(npz.open("a").type()), "f32[5, 3, 2]");
    EXPECT_EQ(npz.open("a").rows(4, 1).as<float>()[0], 24.0f);
    EXPECT_EQ(npz.open("b").all().as<int64_t>()[3], 3);
  }
}

TEST(Npz, AnUnknownNameListsItsNeighbour) {
  Scratch scratch;
  NpzWriter writer(scratch.path("x.npz"), {{"kernel", DType::f32, {2}}});
  writer.commit();
  std::string message = message_of<InvalidArgument>([&] { NpzReader(scratch.path("x.npz")).open("kernal"); });
  EXPECT_PRED2(contains, message, "no array 'kernal' (did you mean 'kernel'?)");
}

TEST(Npz, RowsOfAllArraysArriveTogetherAndAreReadBack) {
  Scratch scratch;
  NpzWriter writer(scratch.path("x.npz"), {{"a", DType::f32, {2}}, {"b/c", DType::i64, {}}, {"ä", DType::boolean, {1, 1}}});
  std::vector<float> a{1, 2, 3, 4};
  std::vector<int64_t> b{5, 6};
  for (int step = 0; step < 3; ++step) {
    writer.write(0, Tensor::of<float>({2, 2}, a));
    writer.write(1, Tensor::of<int64_t>({2}, b));
    writer.write(2, Tensor::scalar(step == 1).reshaped({1, 1, 1}));
  }
  EXPECT_FALSE(std::filesystem::exists(scratch.path("x.npz"))) << "before commit";
  writer.commit();
  EXPECT_EQ(scratch.files(), 1u);
  NpzReader npz(scratch.path("x.npz"));
  EXPECT_EQ(npz.names(), (std::vector<std::string>{"a", "b/c", "ä"}));
  EXPECT_EQ(npz.open("a").all().shape(), Shape({6, 2}));
  EXPECT_EQ(npz.open("a").rows(3, 1).as<float>()[1], 4.0f);
  EXPECT_EQ(npz.open("b/c").all().as<int64_t>()[5], 6);
  EXPECT_TRUE(npz.open("ä").rows(1, 1).as<bool>()[0]);
  EXPECT_FALSE(npz.open("ä").rows(2, 1).as<bool>()[0]);
}

TEST(Npz, ChunksOfWaitingArraysKeepTheirOrder) {
  Scratch scratch;
  constexpr int64_t count = 700'000;  // 2.8 MB: several chunks
  Tensor rows(DType::i32, {count});
  for (int64_t i = 0; i < count; ++i) rows.as<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(i);
  NpzWriter writer(scratch.path("x.npz"), {{"a", DType::i32, {}}, {"b", DType::i32, {}}});
  writer.write(0, rows);
  writer.write(1, rows);
  writer.commit();
  Tensor read = NpzReader(scratch.path("x.npz")).open("b").all();
  EXPECT_TRUE(std::equal(read.bytes().begin(), read.bytes().end(), rows.bytes().begin()));
}

TEST(Npz, AWriterThatIsNotCommittedLeavesNothing) {
  Scratch scratch;
  { NpzWriter writer(scratch.path("x.npz"), {{"a", DType::f32, {2}}, {"b", DType::f32, {2}}}); }
  EXPECT_EQ(scratch.files(), 0u);
}

TEST(Npz, AChangedByteIsNoticed) {
  Scratch scratch;
  for (auto [file, offset] : {std::pair<std::string, size_t>{"stored.npz", 200}, {"deflated.npz", 60}}) {
    std::string bytes = slurp(numpy_file(file));
    bytes[bytes.find("a.npy") + offset] ^= 1;  // in the array's data
    std::string path = scratch.write(file, bytes);
    std::string message = message_of<InvalidArgument>([&] { NpzReader(path).open("a"); });
    EXPECT_TRUE(message.starts_with("[npz] " + path + ": ")) << message;
  }
}

TEST(Npz, BrokenArchivesAreRefusedByName) {
  Scratch scratch;
  std::string bytes = slurp(numpy_file("stored.npz"));
  for (size_t length : {size_t{0}, size_t{3}, bytes.size() / 2, bytes.size() - 1}) {
    std::string path = scratch.write("cut.npz", bytes.substr(0, length));
    EXPECT_PRED2(contains, message_of<InvalidArgument>([&] { NpzReader{path}; }), "cut.npz: ");
  }
}

}  // namespace
}  // namespace tutti
