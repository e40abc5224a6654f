#include "tutti/data/journal.h"

#include <cmath>

#include "tests/scratch.h"
#include "tutti/base/error.h"
#include "tutti/data/npy.h"

namespace tutti {
namespace {

using Names = std::vector<std::string>;

const std::vector<ArraySpec> run_arrays{{"a", DType::f32, {2}}, {"b", DType::i32, {}}};
const Json run_settings = JsonMembers{{"model", "m.keras"}, {"scale", "1/255"}};

// Items `begin`, ..., whose rows are their numbers; those in `failed` have an error.
struct Items {
  Items(int begin, int count, const Names& failed = {}) : outputs{{DType::f32, {count, 2}}, {DType::i32, {count}}} {
    for (int i = 0; i < count; ++i) {
      names.push_back(fmt::format("{}\t\n\\.png", begin + i));
      const bool bad = std::find(failed.begin(), failed.end(), std::to_string(begin + i)) != failed.end();
      errors.push_back(bad ? "broken,\nat \"once\"" : "");
      outputs[0].as<float>()[2 * static_cast<size_t>(i)] = static_cast<float>(begin + i);
      outputs[0].as<float>()[2 * static_cast<size_t>(i) + 1] = 0.5F;
      outputs[1].as<int32_t>()[static_cast<size_t>(i)] = begin + i;
    }
  }
  ItemRows rows() const { return {names, errors, outputs}; }
  Names names, errors;
  std::vector<Tensor> outputs;
};

struct Kept {
  Names names, errors;
  std::vector<float> a;
  std::vector<int32_t> b;
};
Kept kept_by(Journal& journal) {
  Kept out;
  journal.replay([&](const ItemRows& rows) {
    out.names.insert(out.names.end(), rows.names.begin(), rows.names.end());
    out.errors.insert(out.errors.end(), rows.errors.begin(), rows.errors.end());
    out.a.insert(out.a.end(), rows.outputs[0].as<float>().begin(), rows.outputs[0].as<float>().end());
    out.b.insert(out.b.end(), rows.outputs[1].as<int32_t>().begin(), rows.outputs[1].as<int32_t>().end());
  });
  return out;
}

void expect_items(const Kept& kept, int count) {
  const Items wanted(0, count, {"1"});
  EXPECT_EQ(kept.names, wanted.names);
  EXPECT_EQ(kept.errors, wanted.errors);
  const auto a = wanted.outputs[0].as<float>();
  EXPECT_EQ(kept.a, std::vector<float>(a.begin(), a.end()));
}

TEST(journal, goes_on_after_any_number_of_bytes) {
  Scratch scratch;
  const std::string out = scratch.path("y.csv");
  {
    Journal journal({out, run_settings, run_arrays}, false);
    journal.append(Items(0, 3, {"1"}).rows());
    journal.append(Items(3, 4).rows());
    expect_items(kept_by(journal), 7);
  }
  const std::string lines = slurp(out + ".resume"), rows = slurp(out + ".resume.rows");
  ASSERT_EQ(rows.size(), 7 * 12);
  for (size_t cut = 0; cut <= rows.size(); cut += 5)
    for (size_t lost : {size_t{0}, size_t{1}, lines.size() / 3, lines.size()}) {
      scratch.write("y.csv.resume", lines.substr(0, lines.size() - lost));
      scratch.write("y.csv.resume.rows", rows.substr(0, cut));
      Journal journal({out, run_settings, run_arrays}, true);
      const int found = static_cast<int>(journal.resumed());
      EXPECT_LE(found, static_cast<int>(cut / 12));
      if (lost == 0) {
        EXPECT_EQ(found, static_cast<int>(cut / 12));
      }
      for (int i = 0; i < found; ++i) journal.check_next(Items(i, 1).names[0]);
      journal.append(Items(found, 9 - found, {"1"}).rows());
      EXPECT_EQ(journal.items(), 9);
      expect_items(kept_by(journal), 9);
    }
}

TEST(journal, refuses_other_settings_and_items) {
  Scratch scratch;
  const std::string out = scratch.path("y.csv");
  Journal({out, run_settings, run_arrays}, false).append(Items(0, 2).rows());
  Json other = run_settings;
  other.set("scale", "1/127");
  EXPECT_PRED2(contains, message_of<InvalidArgument>([&] {
                 Journal({out, other, run_arrays}, true);
               }),
               R"(had scale "1/255"; now it is "1/127")");
  const std::vector<ArraySpec> wider{{"a", DType::f32, {3}}, run_arrays[1]};
  EXPECT_PRED2(contains, message_of<InvalidArgument>([&] { Journal({out, run_settings, wider}, true); }), "had output a");
  Journal journal({out, run_settings, run_arrays}, true);
  journal.check_next(Items(0, 1).names[0]);
  EXPECT_PRED2(contains, message_of<InvalidArgument>([&] { journal.check_next("x.png"); }), "item 1 is 'x.png', and was '1\\t");
}

TEST(journal, begins_anew_unless_it_resumes_and_leaves_nothing) {
  Scratch scratch;
  const std::string out = scratch.path("y.csv");
  Journal({out, run_settings, run_arrays}, false).append(Items(0, 2).rows());
  Journal journal({out, run_settings, run_arrays}, false);
  EXPECT_EQ(journal.items(), 0);
  journal.remove();
  EXPECT_EQ(scratch.files(), 0);
  EXPECT_EQ(Journal({out, run_settings, run_arrays}, true).resumed(), 0) << "nothing was interrupted";
}

TEST(item_writer, marks_rows_of_items_that_failed) {
  Scratch scratch;
  const Items items(0, 3, {"1"});
  for (const std::string name : {"y.csv", "y.npz", "y.jsonl"}) {
    auto writer = open_item_output(scratch.path(name), run_arrays, {}, true);
    writer->write(items.rows());
    writer->commit();
  }
  EXPECT_EQ(slurp(scratch.path("y.csv")),
            "path,a_0,a_1,b\n\"0\t\n\\.png\",0,0.5,0\n\"1\t\n\\.png\",\"error: broken,\nat \"\"once\"\"\",,\n\"2\t\n\\.png\",2,0.5,2\n");
  EXPECT_EQ(slurp(scratch.path("y.jsonl")),
            "{\"path\": \"0\\t\\n\\\\.png\", \"a\": [0.0, 0.5], \"b\": 0}\n"
            "{\"path\": \"1\\t\\n\\\\.png\", \"error\": \"broken,\\nat \\\"once\\\"\"}\n"
            "{\"path\": \"2\\t\\n\\\\.png\", \"a\": [2.0, 0.5], \"b\": 2}\n");
  auto one = open_item_output(scratch.path("y.npy"), {run_arrays[0]}, {}, true);
  one->write({items.names, items.errors, with_marks({items.outputs[0]}, items.errors)});
  one->commit();
  Tensor rows = read_npy(scratch.path("y.npy"));
  EXPECT_EQ(rows.as<float>()[4], 2.0F);
  EXPECT_TRUE(std::isnan(rows.as<float>()[2]) && std::isnan(rows.as<float>()[3]));
  EXPECT_EQ(with_marks(items.outputs, items.errors)[1].as<int32_t>()[1], -1);
}

TEST(top_labels, are_the_most_likely_best_first) {
  Scratch scratch;
  const TopLabels labels(scratch.write("names", "cat\r\ndog\nbird\n\n"), 2);
  labels.check({{"scores", DType::f32, {3}}});
  const std::vector<float> scores{0.2F, 0.2F, 0.6F, NAN, 1, -1};
  const Tensor rows = Tensor::of<float>({2, 3}, scores);
  auto first = labels.of(rows, 0), second = labels.of(rows, 1);
  ASSERT_EQ(first.size(), 2);
  EXPECT_EQ(first[0].label + first[1].label, "birdcat");
  EXPECT_EQ(first[0].score, 0.6F);
  EXPECT_EQ(second[0].label + second[1].label, "dogbird");
  EXPECT_EQ(TopLabels("", 9).of(rows, 0).size(), 3);
  EXPECT_EQ(TopLabels("", 1).of(rows, 0)[0].label, "2");
  EXPECT_THROW(labels.check({{"scores", DType::f32, {4}}}), InvalidArgument);
  EXPECT_THROW(labels.check({{"scores", DType::f32, {3, 1}}}), InvalidArgument);
}

}  // namespace
}  // namespace tutti
