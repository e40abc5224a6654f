// Every file that h5py wrote in make_files.py reads back as h5py reads it.
#include "tutti/keras/hdf5.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "tests/hdf5/files.h"
#include "tutti/base/error.h"

namespace tutti::keras {

namespace {

std::string joined(const std::vector<std::string>& texts) {
  std::string out;
  for (const auto& text : texts) out += text + "\n";
  return out;
}

std::vector<std::string> strings_of(const Json& list) {
  std::vector<std::string> out;
  for (const auto& item : list.items()) out.push_back(item.as_string());
  return out;
}

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> out;
  for (const auto& member : object.members()) out.push_back(member.first);
  return out;
}

void expect_numbers(const Tensor& tensor, const Json& expected) {
  EXPECT_EQ(numpy_name(tensor.dtype()), expected.at("dtype").as_string());
  Ints shape;
  for (const auto& extent : expected.at("shape").items()) shape.push_back(extent.as_int());
  EXPECT_EQ(to_string(tensor.shape()), to_string(shape));
  auto bytes = tensor.bytes();
  EXPECT_EQ(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()), expected.at("crc32").as_int()) << "the values differ";
}

void expect_object(const Hdf5File& file, const std::string& path, const Json& expected) {
  std::string kind = expected.at("kind").as_string();
  EXPECT_EQ(file.kind(path), kind == "group" ? Hdf5File::Kind::group : kind == "dataset" ? Hdf5File::Kind::dataset : Hdf5File::Kind::other);
  if (auto* children = expected.find("children")) {
    EXPECT_EQ(joined(file.children(path)), joined(strings_of(*children)));
  }
  if (auto* strings = expected.find("strings")) {
    EXPECT_TRUE(file.holds_strings(path));
    EXPECT_EQ(joined(file.read_strings(path)), joined(strings_of(*strings)));
  } else if (expected.has("dtype")) {
    EXPECT_FALSE(file.holds_strings(path));
    Tensor tensor = file.read(path);
    EXPECT_EQ(file.type(path), tensor.type());
    expect_numbers(tensor, expected);
  }
  const Json& attributes = expected.at("attributes");
  EXPECT_EQ(joined(file.attribute_names(path)), joined(keys_of(attributes)));
  for (const auto& [name, value] : attributes.members()) {
    SCOPED_TRACE("attribute " + name);
    EXPECT_TRUE(file.has_attribute(path, name));
    if (auto* strings = value.find("strings")) {
      EXPECT_EQ(joined(file.strings(path, name)), joined(strings_of(*strings)));
    } else {
      expect_numbers(file.numbers(path, name), value);
    }
  }
  EXPECT_FALSE(file.has_attribute(path, "no such attribute"));
}

void expect_refused(const Hdf5File& file, const std::string& path, const std::string& why) {
  try {
    if (file.kind(path) == Hdf5File::Kind::group)
      file.children(path);
    else if (file.holds_strings(path))
      file.read_strings(path);
    else
      file.read(path);
    FAIL() << "was read";
  } catch (const Unsupported& error) {
    EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("'" + path + "'"), std::string::npos) << error.what();
  }
}

TEST(hdf5, files_of_h5py_read_back_as_h5py_reads_them) {
  Json all = expected();
  ASSERT_GT(all.size(), 40u);
  for (const auto& [name, objects] : all.members()) {
    Hdf5File file(open_test_file(name));
    if (name.starts_with("refused")) file.children("group");  // the first of two ways to it
    for (const auto& [path, object] : objects.members()) {
      SCOPED_TRACE(name + ".h5: '" + path + "'");
      if (auto* why = object.find("error")) {
        expect_refused(file, path, why->as_string());
      } else {
        ASSERT_NO_THROW(expect_object(file, path, object));
      }
      if (testing::Test::HasFailure()) return;  // one is enough to look at
    }
  }
}

TEST(hdf5, slashes_around_a_path_do_not_matter) {
  Hdf5File file(open_test_file("keras_like_latest"));
  EXPECT_EQ(file.children("layers"), file.children("/layers/"));
  EXPECT_EQ(file.children(""), file.children("/"));
  EXPECT_EQ(file.kind("/layers//dense_0/vars/0"), Hdf5File::Kind::dataset);
}

TEST(hdf5, absent_objects_are_absent_and_reading_them_names_them) {
  Hdf5File file(open_test_file("keras_like_earliest"));
  EXPECT_EQ(file.kind("layers/dense_9"), Hdf5File::Kind::absent);
  EXPECT_EQ(file.kind("layers/dense_0/vars/0/deeper"), Hdf5File::Kind::absent);
  EXPECT_THROW(file.children("layers/dense_0/vars/0"), InvalidModel);
  EXPECT_THROW(file.read("layers"), InvalidModel);
  EXPECT_THROW(file.strings("", "nothing"), InvalidModel);
  try {
    file.read("layers/dense_9");
    FAIL();
  } catch (const InvalidModel& error) {
    EXPECT_STREQ(error.what(), "[hdf5] 'layers/dense_9': there is no such object");
  }
}

TEST(hdf5, strings_are_no_numbers_and_numbers_no_strings) {
  Hdf5File file(open_test_file("strings_latest"));
  EXPECT_THROW(file.read("variable"), InvalidModel);
  EXPECT_THROW(file.type("fixed"), InvalidModel);
  Hdf5File attributes(open_test_file("attributes_latest"));
  EXPECT_THROW(attributes.read_strings("data"), InvalidModel);
  EXPECT_THROW(attributes.strings("data", "number"), InvalidModel);
  EXPECT_THROW(attributes.numbers("data", "text"), InvalidModel);
}

TEST(hdf5, a_file_can_be_used_after_an_error) {
  Hdf5File file(open_test_file("refused_latest"));
  EXPECT_THROW(file.read("virtual"), Unsupported);
  EXPECT_EQ(file.read("data").as<int64_t>()[2], 2);
}

}  // namespace

}  // namespace tutti::keras
