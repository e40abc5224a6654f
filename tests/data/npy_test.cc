// .npy against NumPy's own files (make_arrays.py), and every way in which one can be broken.
#include "tutti/data/npy.h"

#include "tests/scratch.h"
#include "tutti/base/error.h"

namespace tutti {
namespace {

// The arrays of make_arrays.py count up in row-major order; bools are "not divisible by three".
double counted(DType dtype, int64_t i) { return dtype == DType::boolean ? i % 3 != 0 : static_cast<double>(i); }

void expect_counting(const Tensor& tensor, int64_t first = 0) {
  auto values = tensor.converted(DType::f64);
  for (int64_t i = 0; i < values.elements(); ++i)
    ASSERT_EQ(values.as<double>()[static_cast<size_t>(i)], counted(tensor.dtype(), first + i)) << "element " << i;
}

std::string npy_bytes(const std::string& dict, const std::string& data = "") {
  std::string text = dict + "\n";
  std::string out(npy_magic);
  out += {'\1', '\0', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return out + text + data;
}

std::string dict(const std::string& descr, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }";
}

std::string ones(int axes) {
  std::string out = "(";
  for (int i = 0; i < axes; ++i) out += "1,";
  return out + ")";
}

class EveryDType : public testing::TestWithParam<DType> {};

TEST_P(EveryDType, IsReadAsNumPySavedItInBothOrders) {
  for (std::string suffix : {"", "_fortran", "_big"}) {
    if (GetParam() == DType::bf16 && !suffix.empty()) continue;  // NumPy's V2 has no byte order, and the two memory orders are alike
    NpyReader reader(numpy_file(std::string(numpy_name(GetParam())) + suffix + ".npy"));
    EXPECT_EQ(to_string(reader.type()), to_string(Type{GetParam(), {5, 3, 2}}));
    expect_counting(reader.all());
    Tensor middle = reader.rows(1, 3);
    EXPECT_EQ(middle.shape(), Shape({3, 3, 2}));
    expect_counting(middle, 6);
    EXPECT_EQ(reader.rows(5, 0).elements(), 0);
  }
}

TEST_P(EveryDType, IsWrittenByteForByteAsNumPyWritesIt) {
  Scratch scratch;
  std::string original = numpy_file(std::string(numpy_name(GetParam())) + ".npy");
  NpyReader reader(original);
  NpyWriter writer(scratch.path("x.npy"), {"x", GetParam(), {3, 2}});
  writer.write(reader.rows(0, 2));
  writer.write(reader.rows(2, 0));
  writer.write(reader.rows(2, 3));
  EXPECT_FALSE(std::filesystem::exists(scratch.path("x.npy"))) << "before commit";
  writer.commit();
  EXPECT_EQ(slurp(scratch.path("x.npy")), slurp(original));
  write_npy(scratch.path("y.npy"), reader.all());
  EXPECT_EQ(slurp(scratch.path("y.npy")), slurp(original));
}

INSTANTIATE_TEST_SUITE_P(Npy, EveryDType, testing::ValuesIn(all_dtypes), [](const auto& test) { return std::string(name(test.param)); });

TEST(Npy, EmptyArraysNumbersAndVectorsAreRead) {
  for (std::string file : {"empty.npy", "empty_fortran.npy"}) {
    Tensor empty = read_npy(numpy_file(file));
    EXPECT_EQ(empty.shape(), Shape({0, 3, 2}));
  }
  EXPECT_EQ(read_npy(numpy_file("number.npy")).as<double>()[0], 2.5);
  expect_counting(read_npy(numpy_file("vector.npy")));
  Scratch scratch;
  write_npy(scratch.path("number.npy"), Tensor::scalar(2.5));
  EXPECT_EQ(slurp(scratch.path("number.npy")), slurp(numpy_file("number.npy")));
}

TEST(Npy, FormatVersions2And3AreRead) {
  expect_counting(read_npy(numpy_file("version2.npy")));
  expect_counting(read_npy(numpy_file("version3.npy")));
}

TEST(Npy, AWriterThatIsNotCommittedLeavesNothing) {
  Scratch scratch;
  {
    NpyWriter writer(scratch.path("x.npy"), {"x", DType::f32, {2}});
    writer.write(Tensor(DType::f32, {3, 2}));
  }
  EXPECT_EQ(scratch.files(), 0u);
}

TEST(Npy, RowsOfAnotherShapeAreNotWritten) {
  Scratch scratch;
  NpyWriter writer(scratch.path("x.npy"), {"x", DType::f32, {2}});
  EXPECT_THROW(writer.write(Tensor(DType::f32, {3, 3})), InternalError);
  EXPECT_THROW(writer.write(Tensor(DType::f64, {3, 2})), InternalError);
  EXPECT_THROW(writer.write(Tensor(DType::f32, {})), InternalError);
}

TEST(Npy, AnyByteIsAGoodBool) {
  Scratch scratch;
  Tensor read = read_npy(scratch.write("x.npy", npy_bytes(dict("'|b1'", "(3,)"), std::string("\x00\x02\xff", 3))));
  EXPECT_FALSE(read.as<bool>()[0]);
  EXPECT_TRUE(read.as<bool>()[1]);
  EXPECT_EQ(std::to_integer<int>(read.bytes()[2]), 1);
}

TEST(Npy, KeysStandInAnyOrderAndPython2LongsAreRead) {
  Scratch scratch;
  Tensor read = read_npy(scratch.write("x.npy", npy_bytes("{\"shape\": (2L, 1L), 'descr': '|u1', 'fortran_order': True}", "ab")));
  EXPECT_EQ(read.shape(), Shape({2, 1}));
  EXPECT_EQ(read.as<uint8_t>()[1], 'b');
}

TEST(Npy, RowsOutsideOfTheArrayAreRefused) {
  NpyReader reader(numpy_file("float32.npy"));
  EXPECT_PRED2(contains, message_of<InvalidArgument>([&] { reader.rows(3, 3); }), "rows 3 to 6 asked for; the array has 5");
  EXPECT_THROW(reader.rows(-1, 2), InvalidArgument);
  EXPECT_THROW(reader.rows(0, -1), InvalidArgument);
  EXPECT_PRED2(contains, message_of<InvalidArgument>([&] { NpyReader(numpy_file("number.npy")).rows(0, 0); }), "holds a single number");
}

TEST(Npy, PicklesAreNeverRead) {
  std::string message = message_of<Unsupported>([] { read_npy(numpy_file("objects.npy")); });
  EXPECT_PRED2(contains, message, "objects.npy: holds Python objects, which are a pickle, and pickles are never read; hint: save numbers");
}

TEST(Npy, OtherDTypesAreRefusedByName) {
  EXPECT_PRED2(contains, message_of<Unsupported>([] { read_npy(numpy_file("complex.npy")); }), "arrays of dtype '<c8' are not read");
  EXPECT_PRED2(contains, message_of<Unsupported>([] { read_npy(numpy_file("text.npy")); }), "arrays of dtype '<U2' are not read");
  EXPECT_PRED2(contains, message_of<Unsupported>([] { read_npy(numpy_file("fields.npy")); }), "arrays with named fields are not read");
}

struct BrokenFile {
  std::string name, bytes, message;
};
class BrokenNpy : public testing::TestWithParam<BrokenFile> {};

TEST_P(BrokenNpy, IsRefusedWithItsReason) {
  Scratch scratch;
  std::string file = scratch.write("x.npy", GetParam().bytes);
  std::string message = message_of<Error>([&] { read_npy(file); });
  EXPECT_TRUE(message.starts_with("[npy] " + file + ": ")) << message;
  EXPECT_PRED2(contains, message, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Npy, BrokenNpy,
    testing::Values(
        BrokenFile{"empty", "", "not an .npy file; it has 0 bytes"},  //
        BrokenFile{"magic", "hello, this is text", "does not begin with \\x93NUMPY"},
        BrokenFile{"version", std::string(npy_magic) + std::string("\x09\x00\x10\x00{}  \n       ", 16),
                   "format versions 1, 2 and 3 are read; got 9"},
        BrokenFile{"cut_in_header", npy_bytes(dict("'<f4'", "(3,)")).substr(0, 30), "cut short; the header alone has"},
        BrokenFile{"cut_in_data", npy_bytes(dict("'<f4'", "(3,)"), "12345678"),
                   "float32 array of shape [3] needs 12 bytes of data; the file has 8"},
        BrokenFile{"too_much_data", npy_bytes(dict("'<f4'", "(1,)"), "12345678"), "needs 4 bytes of data; the file has 8"},
        BrokenFile{"huge_header", std::string(npy_magic) + std::string("\x02\x00\xff\xff\xff\xff", 6),
                   "a header has at most 1048576 bytes; got 4294967295"},
        BrokenFile{"huge_extent", npy_bytes(dict("'<f4'", "(999999999999999999999,)")), "extents are whole numbers from 0 to 2^48"},
        BrokenFile{"huge_product", npy_bytes(dict("'<f4'", "(65536, 65536, 65536, 65536, 65536)")), "which no file can hold"},
        BrokenFile{"huge_beside_zero", npy_bytes(dict("'<f4'", "(281474976710656, 281474976710656, 0)")), "which no file can hold"},
        BrokenFile{"large", npy_bytes(dict("'<f4'", "(281474976710656,)")), "needs 1125899906842624 bytes of data; the file has 0"},
        BrokenFile{"negative_extent", npy_bytes(dict("'<f4'", "(-1,)")), "extents are whole numbers"},
        BrokenFile{"many_axes", npy_bytes(dict("'<f4'", ones(33))), "at most 32 axes"},
        BrokenFile{"no_shape", npy_bytes("{'descr': '<f4', 'fortran_order': False}"), "descr, fortran_order and shape are needed"},
        BrokenFile{"twice", npy_bytes("{'descr': '<f4', 'descr': '<f4'}"), "unknown or repeated key 'descr'"},
        BrokenFile{"unknown_key", npy_bytes("{'describe': '<f4'}"), "unknown or repeated key 'describe'"},
        BrokenFile{"not_a_dict", npy_bytes("__import__('os')"), "expected '{' at character 1"},
        BrokenFile{"open_quote", npy_bytes("{'descr"), "a quote is not closed"},
        BrokenFile{"after_dict", npy_bytes(dict("'<f4'", "()") + " x", "1234"), "text after the closing brace"},
        BrokenFile{"order", npy_bytes("{'fortran_order': Maybe}"), "fortran_order is True or False"},
        BrokenFile{"descr_number", npy_bytes(dict("4", "()")), "expected a quoted name"},
        BrokenFile{"wide_float", npy_bytes(dict("'<f16'", "()")), "arrays of dtype '<f16' are not read"},
        BrokenFile{"no_descr", npy_bytes(dict("''", "()")), "arrays of dtype '' are not read"},
        BrokenFile{"control", npy_bytes(dict("'\x1b[31m\n'", "()")), "arrays of dtype '\\x1b[31m\\n' are not read"}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tutti
