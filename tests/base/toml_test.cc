#include "tutti/base/toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/base/error.h"

namespace tutti {
namespace {

TEST(toml, gives_the_values_that_json_has) {
  const Json file = parse_toml("a = 1\nb = [0.5, 'x', true]\nday = 2020-01-31\n[[job]]\nname = \"n\"\n[job.optimizer]\nrate = 1e-3\n");
  EXPECT_EQ(file,
            Json::parse(R"({"a": 1, "b": [0.5, "x", true], "day": "2020-01-31", "job": [{"name": "n", "optimizer": {"rate": 0.001}}]})"));
}

TEST(toml, members_stand_in_the_order_of_the_file) {
  EXPECT_EQ(parse_toml("b = 1\na = { z = 1, y = 2 }\n[t]\nq = 1\np = 2\n").dump(),
            "{\"b\": 1, \"a\": {\"z\": 1, \"y\": 2}, \"t\": {\"q\": 1, \"p\": 2}}");
}

TEST(toml, says_where_it_is_broken) {
  const auto message = [](std::string_view text, size_t limit = 1000) -> std::string {
    try {
      parse_toml(text, limit);
    } catch (const InvalidArgument& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(message("a = 1\nb = ["), testing::HasSubstr("line 2"));
  EXPECT_THAT(message("a = 1\n[\x01\x1e"
                      "def"),
              testing::HasSubstr("[toml]"));
  EXPECT_THAT(message("\xc3\xa9 = 1"), testing::HasSubstr("line 1"));
  EXPECT_EQ(parse_toml("a = \"\xc3\xa9 \\\" #\" # \xc3\xa9\nb = '''\xc3\xa9 \"'''").at("b").as_string(), "\xc3\xa9 \"");
  EXPECT_NE(message("[)efaults]\nepochs = 5"), "");
  EXPECT_THAT(message("a = 1\na = 2"), testing::HasSubstr("line 2"));
  EXPECT_THAT(message("a = \"\xff\""), testing::HasSubstr("line 1"));
  EXPECT_THAT(message(std::string(2000, ' ')), testing::HasSubstr("2000 bytes"));
  EXPECT_NE(message("a = " + std::string(900, '[')), "");
}

TEST(toml, what_is_written_is_read_again) {
  const Json value = JsonList{"a \"quoted\"\nline", 0.1, 3, "ü"};
  EXPECT_EQ(parse_toml("x = " + toml_text(value)).at("x"), value);
}

}  // namespace
}  // namespace tutti
