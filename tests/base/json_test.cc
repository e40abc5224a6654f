#include "tutti/base/json.h"

#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include "tests/hostile.h"
#include "tests/scratch.h"

namespace tutti {

namespace {

std::string again(std::string_view text) { return Json::parse(text).dump(); }
std::string refusal(std::string_view text) {
  return message_of<InvalidArgument>([&] { Json::parse(text); });
}

TEST(json, what_is_read_is_written_as_python_writes_it) {
  EXPECT_EQ(again(R"( {"b" : [1,2.50, -0, true ,null],"a":{} , "":[]} )"), R"({"b": [1, 2.5, 0, true, null], "a": {}, "": []})");
  EXPECT_EQ(again("[NaN, Infinity, -Infinity]"), "[NaN, Infinity, -Infinity]");
  EXPECT_EQ(Json::parse(R"({"a": [1, {"b": []}]})").dump(2), "{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    }\n  ]\n}");
}

TEST(json, doubles_have_pythons_spelling) {
  for (auto [value, text] : std::initializer_list<std::pair<double, const char*>>{{1, "1.0"},
                                                                                  {-0.0, "-0.0"},
                                                                                  {0.1, "0.1"},
                                                                                  {1e15, "1000000000000000.0"},
                                                                                  {1e16, "1e+16"},
                                                                                  {123456789012345680.0, "1.2345678901234568e+17"},
                                                                                  {0.0001, "0.0001"},
                                                                                  {0.00001, "1e-05"},
                                                                                  {5e-324, "5e-324"},
                                                                                  {9007199254740993.0, "9007199254740992.0"}})
    EXPECT_EQ(Json(value).dump(), text);
}

TEST(json, doubles_come_back_bit_for_bit) {
  uint64_t bits = 1;
  for (int i = 0; i < 100000; ++i) {
    bits = bits * 6364136223846793005u + 1442695040888963407u;
    auto value = std::bit_cast<double>(bits);
    if (std::isnan(value)) continue;
    ASSERT_EQ(std::bit_cast<uint64_t>(Json::parse(Json(value).dump()).as_number()), bits);
  }
}

TEST(json, integers_stay_integers_and_beyond_uint64_become_floats) {
  EXPECT_EQ(Json::parse("9223372036854775807").as_int(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Json::parse("-9223372036854775808").as_int(), std::numeric_limits<int64_t>::min());
  EXPECT_FALSE(Json::parse("9223372036854775808").is_int());
  EXPECT_EQ(Json::parse("9223372036854775808").as_number(), 0x1p63);
  EXPECT_EQ(Json(~uint64_t{0}).as_number(), 0x1p64);
  EXPECT_EQ(Json::parse("18446744073709551615").as_unsigned(), ~uint64_t{0});
  EXPECT_EQ(Json::parse("[9223372036854775809]").dump(), "[9223372036854775809]");
  EXPECT_FALSE(Json::parse("18446744073709551616").is_unsigned());
  EXPECT_FALSE(Json::parse("1").is_unsigned());
  EXPECT_EQ(Json::parse("3.0").as_int(), 3);
  EXPECT_THROW(Json::parse("3.5").as_int(), InvalidArgument);
  EXPECT_THROW(Json::parse("1e300").as_int(), InvalidArgument);
  EXPECT_THROW(Json::parse("9223372036854775808").as_int(), InvalidArgument);
  EXPECT_THROW(Json(std::nan("")).as_int(), InvalidArgument);
}

TEST(json, numbers_beyond_a_double_are_infinite_or_zero) {
  EXPECT_EQ(again("[1e400, -1e400, 1e-400, -1e-400]"), "[Infinity, -Infinity, 0.0, -0.0]");
  EXPECT_EQ(again("[1e99999999999999999999, 0.1e-99999999999999999999]"), "[Infinity, 0.0]");
  EXPECT_EQ(again("[0." + std::string(500, '0') + "1]"), "[0.0]");
}

TEST(json, strings_survive_escapes_and_unicode) {
  EXPECT_EQ(Json::parse(R"("\"\\\/\b\f\n\r\té\u00e9\ud83d\ude00")").as_string(), "\"\\/\b\f\n\r\téé😀");
  EXPECT_EQ(Json("é😀\n\x01\x7f\"\\/").dump(), R"("\u00e9\ud83d\ude00\n\u0001\u007f\"\\/")");
  EXPECT_EQ(Json("\xff").dump(), R"("\ufffd")");
  EXPECT_EQ(Json::parse(R"("\u0000")").as_string().size(), 1u);
}

TEST(json, errors_say_line_and_column) {
  EXPECT_EQ(refusal("[1,\n 2,\n x]"), "[json] expected a value, at line 3 column 2");
  EXPECT_EQ(refusal("[1 2]"), "[json] expected ',' or ']', at line 1 column 4");
}

TEST(json, what_is_not_json_is_refused) {
  for (std::string_view text : {"",
                                " ",
                                "[",
                                "]",
                                "{",
                                "[1,]",
                                "{\"a\"}",
                                "{\"a\":}",
                                "{a:1}",
                                "{1:1}",
                                "{\"a\":1,}",
                                "tru",
                                "nul",
                                "01",
                                "+1",
                                "1.",
                                ".5",
                                "1e",
                                "-",
                                "--1",
                                "\"",
                                "\"\\",
                                "\"\\x\"",
                                "\"\\u12\"",
                                "\"\\u12g4\"",
                                "\"\n\"",
                                "'a'",
                                "[1] 2",
                                "\"\xff\"",
                                "\"\\ud800\"",
                                "\"\\udc00\"",
                                "\"\\ud800\\u0041\"",
                                "infinity",
                                "nan",
                                "-NaN",
                                "// a"})
    EXPECT_THROW(Json::parse(text), InvalidArgument) << text;
}

TEST(json, a_key_given_twice_is_refused) { EXPECT_PRED2(contains, refusal(R"({"a": 1, "b": 2, "a": 3})"), "key 'a' is given twice"); }

TEST(json, budgets_hold) {
  EXPECT_PRED2(contains, refusal(std::string(100000, '[')), "deeper than 200");
  EXPECT_NO_THROW(Json::parse(std::string(200, '[') + std::string(200, ']')));
  std::string many = "[0";
  for (int i = 0; i < 1'000'000; ++i) many += ",0";
  EXPECT_PRED2(contains, refusal(many + "]"), "more than 1000000 values");
  EXPECT_PRED2(contains, refusal(std::string((32 << 20) + 1, ' ')), "at most");
}

TEST(json, the_dearest_text_stays_within_its_memory) {
  MemoryLimit limit;
  Outcomes outcomes;
  std::string objects = "[0";
  for (int i = 0; i < 499'000; ++i) objects += R"(,{"key":"a text longer than is kept inside"})";
  objects += "]";
  expect_contained(outcomes, "many objects", [&] { Json::parse(objects); });
  std::string text = "[\"" + std::string((32 << 20) - 4, 'x') + "\"]";
  expect_contained(outcomes, "one long text", [&] { Json::parse(text); });
  EXPECT_EQ(outcomes.accepted, 2);
}

TEST(json, wrong_kinds_say_both) {
  Json json = Json::parse(R"({"units": "x", "rate": 1})");
  EXPECT_EQ(message_of<InvalidArgument>([&] { json.at("units").as_int(); }), "[json] expected an int; got string");
  EXPECT_EQ(message_of<InvalidArgument>([&] { json.at("unit"); }), "[json] key 'unit' is missing (did you mean 'units'?)");
  EXPECT_THROW(json[0], InvalidArgument);
  EXPECT_THROW(json.at("units").find("a"), InvalidArgument);
  EXPECT_THROW(Json::parse("[1]")[1], InvalidArgument);
  EXPECT_THROW(Json(1).size(), InvalidArgument);
}

TEST(json, values_are_built_in_order) {
  Json json;
  json.set("b", 1);
  json.set("a", Json::list());
  json.set("b", "replaced");
  Json list;
  list.push(1.5);
  list.push(nullptr);
  json.set("a", list);
  EXPECT_EQ(json.dump(), R"({"b": "replaced", "a": [1.5, null]})");
  EXPECT_EQ(json, Json::parse(json.dump()));
  EXPECT_FALSE(json == Json::parse("{}"));
  EXPECT_EQ(json.size(), 2u);
  EXPECT_THROW(json.push(1), InvalidArgument);
}

TEST(json, damaged_text_is_read_or_refused) {
  std::string text =
      R"({"class_name": "Dense", "config": {"units": 10, "rate": 1.5e-3, "names": ["a", "\u00e9", "b\n"], "none": null, "on": true}})";
  Bytes good(std::as_bytes(std::span(text)).begin(), std::as_bytes(std::span(text)).end());
  Outcomes outcomes;
  for_each_damage(good, 4096, [&](const Bytes& bad, const std::string& what) {
    expect_contained(outcomes, what, [&] { Json::parse({reinterpret_cast<const char*>(bad.data()), bad.size()}).dump(); });
  });
  EXPECT_GT(outcomes.refused, 100);
  EXPECT_GT(outcomes.accepted, 10);
}

}  // namespace

}  // namespace tutti
