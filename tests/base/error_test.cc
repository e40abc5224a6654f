#include "tutti/base/error.h"

#include <gtest/gtest.h>

#include "tests/scratch.h"

namespace tutti {

namespace {

TEST(error, says_where_and_what_on_one_line) {
  std::string message = message_of<InvalidModel>([] { fail<InvalidModel>("keras", "layer '{}': {} units", "den\nse", 3); });
  EXPECT_EQ(message, "[keras] layer 'den\\nse': 3 units");
}

TEST(error, our_own_bugs_say_so) {
  std::string message = message_of<InternalError>([] { fail<InternalError>("graph", "oops"); });
  EXPECT_PRED2(contains, message, "bug in tutti");
}

TEST(error, text_from_files_cannot_drive_the_terminal) {
  EXPECT_EQ(escape("plain é 漢 😀"), "plain é 漢 😀");
  EXPECT_EQ(escape("\x1b[31mred\x7f"), "\\x1b[31mred\\x7f");
  EXPECT_EQ(escape("\xc2\x9b"), "\\xc2\\x9b");           // a C1 control in UTF-8
  EXPECT_EQ(escape("\xff\xc3"), "\\xff\\xc3");           // not UTF-8, and cut short
  EXPECT_EQ(escape("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(escape("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(escape(std::string("a\0b", 3)), "a\\x00b");
}

TEST(error, long_text_is_shortened) {
  std::string text = escape(std::string(1000, 'x'), 10);
  EXPECT_EQ(text, "xxxxxxxxxx…");
  EXPECT_EQ(escape("xxxxxxxxxx", 10), "xxxxxxxxxx");
}

TEST(error, names_of_thousands_of_characters_show_their_ends) {
  std::string name = "first" + std::string(5000, 'x') + "last";
  std::string message = message_of<InvalidModel>([&] { fail<InvalidModel>("keras", "layer '{}' and '{}': é", name, name); });
  EXPECT_LT(message.size(), 800u);
  EXPECT_PRED2(contains, message, "layer 'firstx");
  EXPECT_PRED2(contains, message, "…");
  EXPECT_PRED2(contains, message, "xlast': é");
  std::string accents;
  for (int i = 0; i < 2000; ++i) accents += "é";
  message = message_of<InvalidModel>([&] { fail<InvalidModel>("keras", "'{}'", accents); });
  EXPECT_LT(message.size(), 400u);
  EXPECT_EQ(message.find("\\x"), std::string::npos) << message;  // characters stay whole
  for (const std::string& word : {accents, "x" + accents}) {
    message = message_of<InvalidModel>([&] { fail<InvalidModel>("keras", "'{}'", word); });
    EXPECT_EQ(message.find("\\x"), std::string::npos) << message;
    EXPECT_PRED2(contains, message, "éé'");
  }
  message = message_of<InvalidModel>([&] { fail<InvalidModel>("keras", "{}", std::string(5000, '\x80')); });  // no characters at all
  EXPECT_LT(message.size(), 2000u);
}

TEST(error, unknown_names_get_their_nearest_neighbours) {
  EXPECT_EQ(did_you_mean("sofmax", {"softmax", "relu"}), " (did you mean 'softmax'?)");
  EXPECT_EQ(did_you_mean("rela", {"relu", "selu", "rele"}), " (did you mean 'rele' or 'relu'?)");
  EXPECT_EQ(did_you_mean("quite_another", {"softmax", "relu"}), "");
  EXPECT_EQ(did_you_mean("xy", {"a", "b"}), "");
  EXPECT_EQ(did_you_mean("", {"a", "b"}), "");
  EXPECT_EQ(did_you_mean("y", {"X", "Y"}), " (did you mean 'Y'?)");
  EXPECT_EQ(did_you_mean("d", {"a", "b"}), " (did you mean 'a' or 'b'?)");
  EXPECT_EQ(did_you_mean(std::string(1000, 'a'), {std::string(1000, 'a')}), "");
}

TEST(error, short_names_get_the_long_ones) {
  EXPECT_EQ(did_you_mean("lr", {"x", "y", "learning_rate", "loss"}), " (did you mean 'learning_rate'?)");
  EXPECT_EQ(did_you_mean("val_split", {"validation_x", "validation_split"}), " (did you mean 'validation_split'?)");
  EXPECT_EQ(did_you_mean("restore_best", {"restore_best_weights", "patience"}), " (did you mean 'restore_best_weights'?)");
  EXPECT_EQ(did_you_mean("cosine", {"cosine_decay", "exponential_decay"}), " (did you mean 'cosine_decay'?)");
  EXPECT_EQ(did_you_mean("rl", {"learning_rate"}), "");
}

}  // namespace

}  // namespace tutti
