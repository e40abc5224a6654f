#include "tutti/keras/hdf5/writer.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/keras/hdf5.h"

namespace tutti::keras {
namespace {

Hdf5File written(hdf5::Writer& writer) {
  std::vector<std::byte> bytes;
  writer.write([&](std::span<const std::byte> part) { bytes.insert(bytes.end(), part.begin(), part.end()); });
  return Hdf5File(memory_source(std::move(bytes)));
}

TEST(hdf5_writer, our_reader_reads_what_is_written) {
  hdf5::Writer writer;
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (DType dtype : {DType::f16, DType::f32, DType::f64, DType::boolean, DType::i8, DType::i16, DType::i32, DType::i64, DType::u8,
                      DType::u16, DType::u32, DType::u64}) {
    Tensor values = Tensor::of<float>({2, 3}, std::vector<float>{0, 1, 0, 1, 1, 0}).converted(dtype);
    tensors.emplace_back("layers/" + std::string(name(dtype)) + "/vars/0", values);
  }
  tensors.emplace_back("scalar", Tensor::scalar<float>(3));
  tensors.emplace_back("none", Tensor(DType::f32, {0, 4}));
  for (const auto& [path, tensor] : tensors) writer.dataset(path, tensor);
  writer.group("layers/empty/vars");
  const Hdf5File file = written(writer);
  for (const auto& [path, tensor] : tensors) {
    const Tensor got = file.read(path);
    EXPECT_EQ(got.type(), tensor.type()) << path;
    EXPECT_TRUE(std::equal(got.bytes().begin(), got.bytes().end(), tensor.bytes().begin(), tensor.bytes().end())) << path;
  }
  EXPECT_EQ(file.kind("layers/empty/vars"), Hdf5File::Kind::group);
  EXPECT_TRUE(file.children("layers/empty/vars").empty());
}

TEST(hdf5_writer, groups_may_have_thousands_of_members) {
  hdf5::Writer writer;
  for (int i = 0; i < 3000; ++i)
    writer.dataset("layers/member_" + std::to_string(i) + "/vars/0", Tensor::scalar<float>(static_cast<float>(i)));
  const Hdf5File file = written(writer);
  EXPECT_EQ(file.children("layers").size(), 3000u);
  EXPECT_EQ(file.read("layers/member_2999/vars/0").as<float>()[0], 2999);
}

TEST(hdf5_writer, refuses_a_path_twice_and_what_is_no_path) {
  hdf5::Writer writer;
  writer.dataset("a/b", Tensor::scalar<float>(1));
  EXPECT_THROW(writer.dataset("a/b", Tensor::scalar<float>(1)), InvalidArgument);
  EXPECT_THROW(writer.dataset("a", Tensor::scalar<float>(1)), InvalidArgument);
  EXPECT_THROW(writer.dataset("a/b/c", Tensor::scalar<float>(1)), InvalidArgument);
  EXPECT_THROW(writer.dataset("a//c", Tensor::scalar<float>(1)), InvalidArgument);
}

}  // namespace
}  // namespace tutti::keras
