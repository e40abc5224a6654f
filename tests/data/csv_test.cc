#include "tutti/data/csv.h"

#include <fmt/format.h>

#include <clocale>
#include <cmath>

#include "tests/scratch.h"
#include "tutti/base/error.h"

namespace tutti {
namespace {

std::shared_ptr<const ByteSource> bytes_of(const std::string& text) {
  auto bytes = std::as_bytes(std::span(text));
  return memory_source({bytes.begin(), bytes.end()});
}

CsvReader reader_of(const std::string& text, CsvHeader header = CsvHeader::detect) { return {bytes_of(text), "x.csv", header}; }

std::vector<double> values_of(const std::string& text) {
  auto reader = reader_of(text);
  Tensor read = reader.next(1000, DType::f64);
  return {read.as<double>().begin(), read.as<double>().end()};
}

TEST(Csv, ReadsNumbersWithAndWithoutAHeader) {
  std::vector<double> wanted{1, 2.5, -3, 4e-3};
  EXPECT_EQ(values_of("1,2.5\n-3,4e-3\n"), wanted);
  EXPECT_EQ(values_of("a,b\n1,2.5\n-3,4e-3\n"), wanted);
  EXPECT_EQ(values_of("a,b\r\n1,2.5\r\n-3,4e-3"), wanted);
  EXPECT_EQ(values_of("a,b\r1,2.5\r-3,4e-3\r"), wanted);
  EXPECT_EQ(values_of("\xef\xbb\xbf"
                      "1,2.5\n-3,4e-3\n\n\n"),
            wanted);
  EXPECT_EQ(values_of("\"a\",\"b, with \"\"quotes\"\"\nand lines\"\n\"1\", +2.5 \n -3\t,\"4e-3\" \n"), wanted);
}

TEST(Csv, SemicolonsAndTabsSeparateWhereTheFirstRowHasNoComma) {
  const std::vector<double> wanted = {1, 2.5, -3, 0.004};
  EXPECT_EQ(values_of("a;b\n1;2,5\n-3;4e-3\n"), wanted);
  EXPECT_EQ(values_of("\xef\xbb\xbf\"a, b\" ; c\r\n1 ;\"2,5\"\r\n-3;,004\r\n"), wanted);
  EXPECT_EQ(values_of("1;2.5\n-3;4e-3\n"), wanted);
  EXPECT_EQ(values_of("a\tb\n1\t 2.5\n-3\t4e-3\n"), wanted);
  EXPECT_EQ(values_of("1\t2.5\n-3\t4e-3\n"), wanted);
  EXPECT_EQ(values_of("a\t\n1\n2.5\t\n-3\n\t4e-3\n"), wanted);  // blanks around one column
  EXPECT_PRED2(contains, message_of<Error>([] { values_of("a\tb\tc\n1\t\t3\n"); }), "column 2 ('b'): is empty");
  EXPECT_PRED2(contains, message_of<Error>([] { values_of("a\tb\n1\t2,500\n"); }), "got '2,500'");  // perhaps thousands
}

TEST(Csv, NamesTheColumnsOfAHeader) {
  EXPECT_EQ(reader_of("\"say \"\"a\"\"\",b \n1,2\n").names(), (std::vector<std::string>{"say \"a\"", "b"}));
  EXPECT_TRUE(reader_of("1,2\n").names().empty());
  EXPECT_EQ(reader_of(",b\n1,2\n").names(), (std::vector<std::string>{"", "b"}));
}

TEST(Csv, AHeaderOfNumbersIsOneWhenToldSo) {
  auto told = reader_of("0,1\n5,6\n", CsvHeader::present);
  EXPECT_EQ(told.next(10, DType::f32).shape(), Shape({1, 2}));
  EXPECT_FALSE(told.first_row_counts());
  auto detected = reader_of("0,1\n5,6\n");
  EXPECT_TRUE(detected.first_row_counts());
  EXPECT_FALSE(reader_of("0,1.0\n5,6\n").first_row_counts());
  EXPECT_FALSE(reader_of("0\n1\n").first_row_counts());
  EXPECT_EQ(detected.next(10, DType::f32).shape(), Shape({2, 2}));
  auto absent = reader_of("a,b\n5,6\n", CsvHeader::absent);
  EXPECT_PRED2(contains, message_of<InvalidArgument>([&] { absent.next(10, DType::f32); }), "line 1, column 1: is not a number");
}

TEST(Csv, AHeaderAloneHasNoRows) {
  auto reader = reader_of("a,b,c\n");
  EXPECT_EQ(reader.next(10, DType::f32).shape(), Shape({0, 3}));
}

TEST(Csv, BlocksOfRowsAreTheFile) {
  std::string text = "x,y\n";
  constexpr int rows = 100'000;  // 2.2 MB: rows cross the borders of what is read at once
  for (int i = 0; i < rows; ++i) text += fmt::format("{},{}\n", i * 10007, -i * 0.25);
  auto reader = reader_of(text);
  int row = 0;
  for (;;) {
    Tensor block = reader.next(7919, DType::f64);
    if (block.shape()[0] == 0) break;
    for (size_t i = 0; i < block.as<double>().size(); i += 2, ++row) {
      ASSERT_EQ(block.as<double>()[i], row * 10007.0);
      ASSERT_EQ(block.as<double>()[i + 1], -row * 0.25);
    }
  }
  EXPECT_EQ(row, rows);
  EXPECT_EQ(reader.next(1, DType::f64).shape(), Shape({0, 2}));
}

TEST(Csv, AskingForManyRowsOfAShortFileCostsNothing) {
  auto reader = reader_of("1,2\n3,4");
  EXPECT_EQ(reader.next(int64_t{1} << 40, DType::f64).shape(), Shape({2, 2}));
}

TEST(Csv, ExtremeNumbersAreReadExactly) {
  auto values = values_of("nan,inf,-Infinity,1e-999,-1e-999,1.7976931348623157e308,5e-324,0.1\n");
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_EQ(values[1], HUGE_VAL);
  EXPECT_EQ(values[2], -HUGE_VAL);
  EXPECT_EQ(values[3], 0.0);
  EXPECT_TRUE(values[4] == 0 && std::signbit(values[4]));
  EXPECT_EQ(values[5], 1.7976931348623157e308);
  EXPECT_EQ(values[6], 5e-324);
  EXPECT_EQ(values[7], 0.1);
}

TEST(Csv, TheLocaleIsNotAsked) {
  const char* before = std::setlocale(LC_ALL, nullptr);
  std::string kept = before ? before : "C";
  std::setlocale(LC_ALL, "de_DE.UTF-8");
  EXPECT_EQ(values_of("1.5,1e-999\n"), (std::vector<double>{1.5, 0}));
  std::setlocale(LC_ALL, kept.c_str());
}

TEST(Csv, IntegersKeepAllTheirDigits) {
  auto reader = reader_of("9223372036854775807,-9007199254740993,3.0,1e3,+5\n");
  Tensor read = reader.next(1, DType::i64);
  auto values = read.as<int64_t>();
  EXPECT_EQ(std::vector<int64_t>(values.begin(), values.end()), (std::vector<int64_t>{9223372036854775807, -9007199254740993, 3, 1000, 5}));
  const Tensor large = reader_of("18446744073709551615,1e3\n").next(1, DType::u64);
  EXPECT_EQ(large.as<uint64_t>()[0], 18446744073709551615u);
  EXPECT_EQ(large.as<uint64_t>()[1], 1000u);
}

TEST(Csv, IntegerInputsRefuseFractionsAndOverflow) {
  auto message = [](const std::string& text, DType dtype) {
    return message_of<InvalidArgument>([&] {
      auto reader = reader_of(text);
      reader.next(10, dtype);
    });
  };
  EXPECT_EQ(message("1\n2.5\n", DType::i32), "[csv] x.csv: line 2, column 1: expected a whole number; got '2.5'");
  EXPECT_EQ(message("1,300\n", DType::u8), "[csv] x.csv: line 1, column 2: 300 is outside of uint8");
  EXPECT_EQ(message("-1\n", DType::u64), "[csv] x.csv: line 1, column 1: -1 is outside of uint64");
  EXPECT_EQ(message("2\n", DType::boolean), "[csv] x.csv: line 1, column 1: 2 is outside of bool");
  EXPECT_EQ(message("1e30\n", DType::i64), "[csv] x.csv: line 1, column 1: expected a whole number; got '1e30'");
}

struct BrokenTable {
  std::string name, text, message;
};
class BrokenCsv : public testing::TestWithParam<BrokenTable> {};

TEST_P(BrokenCsv, IsRefusedWithItsPlaceAndReason) {
  std::string message = message_of<Error>([&] { values_of(GetParam().text); });
  EXPECT_TRUE(message.starts_with("[csv] x.csv: ")) << message;
  EXPECT_PRED2(contains, message, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Csv, BrokenCsv,
    testing::Values(
        BrokenTable{"empty", "", "is empty"}, BrokenTable{"only_blank_lines", "\n\n", "is empty"},
        BrokenTable{"word", "age,size\n1,2\n3,abc\n", "line 3, column 2 ('size'): is not a number (or beyond float64); got 'abc'"},
        BrokenTable{"word_in_first_row", "1,abc\n",
                    "line 1, column 2: is not a number (or beyond float64); got 'abc'; hint: a header has no numbers"},
        BrokenTable{"empty_field", "a,b\n1,\n", "line 2, column 2 ('b'): is empty; hint: leave no value out"},
        BrokenTable{"quoted_empty_field", "a,b\n1,\"\"\n", "line 2, column 2 ('b'): is empty"},
        BrokenTable{"short_row", "1,2,3\n4,5\n", "line 2 has 2 fields; the rows before it have 3"},
        BrokenTable{"long_row", "a\n4,5\n", "line 2 has 2 fields; the rows before it have 1"},
        BrokenTable{"blank_line", "1\n2\n\n3\n", "line 3 is blank; blank lines stand at the end only"},
        BrokenTable{"bars", "a|b\n1|2\n", "got '1|2'; hint: fields are separated by commas"},
        BrokenTable{"decimal_commas_alone", "1,5;2,5\n", "got '5;2'; hint: fields are separated by commas; by semicolons or tabs where"},
        BrokenTable{"thousands", "a;b\n1.234,5;2\n", "line 2, column 1 ('a'): is not a number (or beyond float64); got '1.234,5'"},
        BrokenTable{"two_commas", "a;b\n1,234,5;2\n", "got '1,234,5'"},
        BrokenTable{"comma_after_a_first_row_without", "a\n4,5\n", "line 2 has 2 fields; the rows before it have 1"},
        BrokenTable{"decimal_comma", "a,b\n\"1,5\",2\n", "line 2, column 1 ('a'): is not a number (or beyond float64); got '1,5'"},
        BrokenTable{"too_large", "1e999\n1\n2e999\n", "line 3, column 1 ('1e999'): is not a number (or beyond float64); got '2e999'"},
        BrokenTable{"two_signs", "1\n+-1\n", "got '+-1'"}, BrokenTable{"hexadecimal", "1\n0x10\n", "got '0x10'"},
        BrokenTable{"open_quote", "a,b\n1,\"2\n3,4\n", "line 2 has a quote that is never closed"},
        BrokenTable{"after_quote", "a,b\n1,\"2\"3\n", "line 2 has text after a closing quote in field 2"},
        BrokenTable{"line_after_quoted_lines", "\"a\nb\"\n1\nx\n", "line 4, column 1"},
        BrokenTable{"utf16",
                    "\xff\xfe"
                    "1",
                    "is UTF-16 text; hint: save it as UTF-8"},
        BrokenTable{"binary", std::string("1\n\0\x1b[31m\n", 9), "got '\\x00\\x1b[31m'"},
        BrokenTable{"endless_fields", "1\n" + std::string(3 << 20, ','), "line 2 has more than 1048576 fields"},
        BrokenTable{"endless_row", "1\n" + std::string(20 << 20, '1'), "line 2 is longer than 16777216 bytes"}),
    [](const auto& test) { return test.param.name; });

TEST(Csv, WrittenNumbersAreReadBackExactly) {
  Scratch scratch;
  std::vector<float> a{0.1f, 1.0f / 3, -0.0f, 3e-45f, 3.4028235e38f, NAN};
  std::vector<int64_t> b{std::numeric_limits<int64_t>::min(), 7};
  CsvWriter writer(scratch.path("x.csv"), {{"a", DType::f32, {3, 1}}, {"b, \"c\"", DType::i64, {1}}});
  writer.write({Tensor::of<float>({2, 3, 1}, a), Tensor::of<int64_t>({2, 1}, b)});
  writer.write({Tensor(DType::f32, {0, 3, 1}), Tensor(DType::i64, {0, 1})});
  EXPECT_FALSE(std::filesystem::exists(scratch.path("x.csv"))) << "before commit";
  writer.commit();
  EXPECT_EQ(slurp(scratch.path("x.csv")),
            "a_0_0,a_1_0,a_2_0,\"b, \"\"c\"\"\"\n"
            "0.1,0.33333334,-0,-9223372036854775808\n"
            "3e-45,3.4028235e+38,nan,7\n");
  CsvReader reader(scratch.path("x.csv"));
  EXPECT_EQ(reader.names().back(), "b, \"c\"");
  Tensor read = reader.next(10, DType::f32);
  for (size_t i : {0, 1, 2}) EXPECT_EQ(read.as<float>()[i], a[i]);
  EXPECT_EQ(read.as<float>()[4], a[3]);
}

TEST(Csv, NoTwoColumnsHaveOneName) {
  const auto names = [](const std::vector<ArraySpec>& arrays) { return fmt::format("{}", fmt::join(csv_columns(arrays), " ")); };
  EXPECT_EQ(names({{"dense", DType::f32, {2}}, {"dense_2", DType::f32, {1}}}), "dense_0 dense_1 dense_2");
  EXPECT_EQ(names({{"dense", DType::f32, {2}}, {"dense_1", DType::f32, {1}}}), "dense.0 dense.1 dense_1");
  EXPECT_EQ(names({{"a", DType::f32, {1, 2}}, {"a_0", DType::f32, {2}}}), "a.0.0 a.0.1 a_0.0 a_0.1");
}

TEST(Csv, EveryDTypeIsWritten) {
  Scratch scratch;
  for (DType dtype : all_dtypes) {
    CsvWriter writer(scratch.path("x.csv"), {{"v", dtype, {}}});
    writer.write({Tensor::scalar(1.0).converted(dtype).reshaped({1})});
    writer.commit();
    EXPECT_EQ(slurp(scratch.path("x.csv")), "v\n1\n") << name(dtype);
  }
}

}  // namespace
}  // namespace tutti
