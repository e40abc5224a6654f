#include "tutti/run/ensemble.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/run/made_model.h"
#include "tutti/base/disk_cache.h"
#include "tutti/base/error.h"
#include "tutti/graph/build.h"
#include "tutti/graph/compose.h"
#include "tutti/run/batch_predictor.h"
#include "tutti/run/manifest.h"

namespace tutti {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

// x times factors.
class Line : public MadeModel {
 public:
  Line(std::vector<float> factors, Ints shape, std::string input = "x")
      : MadeModel({std::move(input), DType::f32, std::move(shape)}), factors_(std::move(factors)) {}
  Graph lower(const keras::LowerOptions& options) const override {
    Graph graph;
    Value x = graph.input(inputs()[0].name, input_types(options)[0]);
    if (options.trace != nullptr) options.trace->push_back({"line", "Sequential", 0, {}, 0, 0, nullptr});
    Value y = x * constant<float>(graph, {static_cast<int64_t>(factors_.size())}, factors_);
    graph.output("y", y);
    if (options.trace != nullptr) options.trace->back() = {"line", "Sequential", 0, {}, 1, graph.nodes().size(), nullptr};
    return graph;
  }

 private:
  std::vector<float> factors_;
};

std::vector<Ensemble::Member> lines(const std::vector<std::vector<float>>& factors) {
  std::vector<Ensemble::Member> out;
  for (const auto& one : factors)
    out.push_back({"m" + std::to_string(out.size()), std::make_shared<const Line>(one, Ints{-1, static_cast<int64_t>(one.size())})});
  return out;
}

std::vector<std::vector<float>> predict(const Ensemble& ensemble, std::vector<float> x, const std::string& device = "cpu",
                                        Arrangement arrangement = Arrangement::measured) {
  auto shared = std::shared_ptr<const keras::AnyModel>(std::shared_ptr<void>(), &ensemble);
  const int64_t width = ensemble.inputs()[0].shape[1], samples = static_cast<int64_t>(x.size()) / width;
  BatchPredictor predictor(shared, {.batch = samples, .device = device, .arrangement = arrangement});
  std::vector<std::vector<float>> out;
  for (const Tensor& tensor : predictor.predict({Tensor::of<float>({samples, width}, x)})) {
    const Tensor floats = tensor.converted(DType::f32);
    out.emplace_back(floats.as<float>().begin(), floats.as<float>().end());
  }
  return out;
}

void expect_near(const std::vector<float>& got, const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i]))
      EXPECT_TRUE(std::isnan(got[i])) << i << ": " << got[i];
    else
      EXPECT_NEAR(got[i], expected[i], 1e-5) << i;
  }
}

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

TEST(ensemble, reduces_as_numpy_does_however_members_run) {
  // Members give x, 2 x, 4 x, 9 x.
  const Ensemble ensemble(lines({{1}, {2}, {4}, {9}}), {parse_reductions("mean,median,min,max,sum,std,var,quantile:0.1,0.75")});
  EXPECT_EQ(ensemble.output_names(),
            (std::vector<std::string>{"mean", "median", "min", "max", "sum", "std", "var", "quantile_0.1", "quantile_0.75"}));
  for (Arrangement how : {Arrangement::measured, Arrangement::merged, Arrangement::stacked, Arrangement::looped})
    for (const char* device : {"cpu", "reference"}) {
      const auto got = predict(ensemble, {1, -1}, device, how);
      const std::vector<std::vector<float>> expected{
          {4, -4}, {3, -3}, {1, -9}, {9, -1}, {16, -16}, {3.0822070f, 3.0822070f}, {9.5f, 9.5f}, {1.3f, -7.5f}, {5.25f, -1.75f}};
      for (size_t i = 0; i < expected.size(); ++i) {
        SCOPED_TRACE(ensemble.output_names()[i] + " " + std::string(name(how)) + " on " + device);
        expect_near(got[i], expected[i]);
      }
    }
}

TEST(ensemble, nan_propagates_unless_it_is_ignored) {
  const auto all = parse_reductions("mean,median,min,max,std,quantile:0.25");
  const auto members = [] { return lines({{1}, {nan}, {3}, {8}}); };
  for (const auto& values : predict(Ensemble(members(), {all}), {1})) expect_near(values, {nan});
  const Ensemble ignoring(members(), {all, {}, true});
  const auto got = predict(ignoring, {1});
  const std::vector<float> expected{4, 3, 1, 8, 2.9439203f, 2};
  for (size_t i = 0; i < expected.size(); ++i) expect_near(got[i], {expected[i]});
  EXPECT_EQ(ignoring.output_names().back(), "nan_members");
  EXPECT_EQ(got.back(), (std::vector<float>{0, 1, 0, 0}));
  for (const auto& values : predict(Ensemble(lines({{nan}, {nan}}), {parse_reductions("mean,min,median,var"), {}, true}), {1}))
    if (values.size() == 1) expect_near(values, {nan});
}

TEST(ensemble, weights_are_relative) {
  for (double scale : {1.0, 10.0}) {
    const Ensemble ensemble(lines({{1}, {2}, {4}}), {parse_reductions("mean"), {scale * 0.5, scale * 0.25, scale * 0.25}});
    expect_near(predict(ensemble, {1})[0], {2});
  }
  const Ensemble skewed(lines({{1}, {nan}, {4}}), {parse_reductions("mean"), {1, 5, 3}, true});
  expect_near(predict(skewed, {1})[0], {3.25f});
  for (double scale : {1e-300, 1e300}) {  // no floats
    const std::vector<double> weights{scale, 5 * scale, 3 * scale};
    expect_near(predict(Ensemble(lines({{1}, {nan}, {4}}), {parse_reductions("mean"), weights, true}), {1})[0], {3.25f});
    const Ensemble votes(lines({{1, 0}, {0, 1}, {1, 0}}), {parse_reductions("vote"), weights});
    EXPECT_EQ(predict(votes, {1, 1})[0], std::vector<float>{1});
  }
}

// A number a sample, without an axis of its own.
class Number : public MadeModel {
 public:
  explicit Number(float factor) : MadeModel({"x", DType::f32, {-1, 1}}), factor_(factor) {}
  Graph lower(const keras::LowerOptions& options) const override {
    Graph graph;
    graph.output("y", squeeze(graph.input("x", input_types(options)[0]), {1}) * factor_);
    return graph;
  }

 private:
  double factor_;
};

TEST(ensemble, votes_for_classes) {
  // Classes of x = 1: members vote 0, 1, 1; the mean is largest for 2.
  const std::vector<std::vector<float>> factors{{0.5f, 0.1f, 0.4f}, {0.1f, 0.5f, 0.4f}, {0, 0.51f, 0.49f}};
  const Ensemble ensemble(lines(factors), {parse_reductions("vote,softvote")});
  const auto got = predict(ensemble, {1, 1, 1});
  EXPECT_EQ(got[0], std::vector<float>{1});
  EXPECT_EQ(got[1], std::vector<float>{2});
  const Ensemble weighted(lines(factors), {parse_reductions("vote"), {3, 1, 1}});
  EXPECT_EQ(predict(weighted, {1, 1, 1})[0], std::vector<float>{0});
  const Ensemble binary(lines({{0.6f}, {0.9f}, {0.1f}, {0.2f}}), {parse_reductions("vote,softvote")});
  EXPECT_EQ(predict(binary, {1})[0], std::vector<float>{0});  // two to two: the first class
  EXPECT_EQ(predict(binary, {1})[1], std::vector<float>{0});  // 0.45
  std::vector<Ensemble::Member> numbers;
  for (float factor : {0.6f, 0.9f, 0.1f}) numbers.push_back({"number", std::make_shared<const Number>(factor)});
  const Ensemble flat(std::move(numbers), {parse_reductions("vote,softvote")});
  EXPECT_EQ(predict(flat, {1, 2, 0})[0], (std::vector<float>{1, 1, 0}));
  EXPECT_EQ(predict(flat, {1, 2, 0})[1], (std::vector<float>{1, 1, 0}));
}

TEST(ensemble, is_a_member_like_any_other) {
  auto inner = std::make_shared<const Ensemble>(lines({{1}, {3}}), EnsembleOptions{parse_reductions("max")});
  std::vector<Ensemble::Member> members = lines({{1}, {2}});
  members.push_back({"inner", inner});
  expect_near(predict(Ensemble(std::move(members), {parse_reductions("sum")}), {1})[0], {6});
}

// A line whose output is of another type.
class Converted : public Line {
 public:
  Converted(std::vector<float> factors, DType dtype) : Line(factors, Ints{-1, std::ssize(factors)}), factors_(factors), dtype_(dtype) {}
  Graph lower(const keras::LowerOptions& options) const override {
    Graph graph;
    const Value x = convert(graph.input(inputs()[0].name, input_types(options)[0]), DType::f64);
    const std::vector<double> factors(factors_.begin(), factors_.end());
    graph.output("y", convert(x * constant<double>(graph, {std::ssize(factors)}, factors), dtype_));
    return graph;
  }

 private:
  std::vector<float> factors_;
  DType dtype_;
};

Ensemble converted(const std::vector<std::pair<float, DType>>& members, std::string_view reductions, bool ignore_nan = false) {
  std::vector<Ensemble::Member> out;
  for (const auto& [factor, dtype] : members)
    out.push_back({"m" + std::to_string(out.size()), std::make_shared<const Converted>(std::vector<float>{factor}, dtype)});
  return Ensemble(std::move(out), {parse_reductions(reductions), {}, ignore_nan});
}

TEST(ensemble, halves_and_small_numbers_have_room_on_the_way) {
  constexpr auto f16 = DType::f16, u8 = DType::u8;
  for (bool ignore_nan : {false, true}) {
    const Ensemble halves =
        converted({{20000, f16}, {40000, f16}, {20000, f16}, {40000, f16}}, "mean,std,median,quantile:0.25", ignore_nan);
    const auto got = predict(halves, {1});
    const std::vector<float> expected{30000, 10000, 30000, 20000};
    for (size_t i = 0; i < expected.size(); ++i) expect_near(got[i], {expected[i]});
    EXPECT_EQ(halves.lower({}).type(halves.lower({}).outputs()[0].value).dtype, f16);
  }
  expect_near(predict(converted({{200, u8}, {100, u8}}, "sum"), {1})[0], {300});
}

TEST(ensemble, members_of_several_types_lose_nothing) {
  constexpr float a = 8193, b = 8195;  // whose product has 27 bits
  for (const auto& [narrow, wide] : {std::pair(DType::i32, DType::i64), std::pair(DType::f32, DType::f64)}) {
    auto ensemble = std::make_shared<const Ensemble>(converted({{1, narrow}, {b, wide}}, "max"));
    const auto got = BatchPredictor(ensemble, {.batch = 1}).predict({Tensor::of<float>({1, 1}, std::vector<float>{a})});
    EXPECT_EQ(got[0].dtype(), wide);
    const Tensor precise = got[0].converted(DType::f64);
    EXPECT_EQ(precise.as<double>()[0], double{a} * double{b});
  }
}

TEST(ensemble, adapts_axes_of_one_and_names_of_inputs) {
  std::vector<Ensemble::Member> members;
  members.push_back({"a", std::make_shared<const Line>(std::vector<float>{1, 2}, Ints{-1, 2}, "x")});
  members.push_back({"b", std::make_shared<const Line>(std::vector<float>{3, 4}, Ints{-1, 1, 2}, "other")});
  expect_near(predict(Ensemble(std::move(members), {}), {1, 1})[0], {2, 3});
}

TEST(ensemble, where_nothing_is_computed_nothing_is_measured) {
  const Ensemble ensemble(lines({{1}, {2}}), {});
  auto device = open_device("null");
  std::vector<ArrangedGroup> groups;
  lower_for(ensemble, {.device = "null"}, device, &groups);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_TRUE(groups[0].times.empty());
  EXPECT_THAT(groups[0].reason, HasSubstr("null does not compute, so the fewest kernels count: merged "));
  const auto kernels = [&](Arrangement way) {
    CompileSettings settings;
    return device->compile(lower_for(ensemble, {.device = "null", .arrangement = way}, device), settings)->stats().kernels;
  };
  EXPECT_EQ(groups[0].chosen.parts, 1u);
  for (Arrangement way : {Arrangement::merged, Arrangement::stacked, Arrangement::looped})
    EXPECT_LE(kernels(groups[0].chosen.arrangement), kernels(way));
}

template <class F>
std::string message(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// Decisions are kept for other processes, in a folder of their own; children are such processes.
class Decisions : public testing::Test {
 protected:
  Decisions() { setenv("TUTTI_CACHE", folder_.c_str(), 1); }
  ~Decisions() override {
    setenv("TUTTI_CACHE", "off", 1);
    fs::remove_all(folder_);
  }

  // How the members of an ensemble are arranged.
  static std::vector<ArrangedGroup> groups(int threads = 1) {
    const Ensemble ensemble(lines({{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {0, 1, 2}}), {parse_reductions("max")});
    std::vector<ArrangedGroup> out;
    lower_for(ensemble, {.batch = 7, .threads = threads}, open_device("cpu"), &out);
    return out;
  }

  // The same in another process; says how they are arranged, and whether that was measured now.
  static std::pair<Arrangement, bool> groups_elsewhere() {
    const pid_t child = fork();
    if (child == 0) {
      const auto found = groups();
      _exit(found.size() != 1 ? 99 : static_cast<int>(found[0].chosen.arrangement) + (found[0].reason.empty() ? 10 : 0));
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) < 20) << status;
    return {static_cast<Arrangement>(WEXITSTATUS(status) % 10), WEXITSTATUS(status) >= 10};
  }

  // Of the one entry that there is.
  std::string key() const {
    std::ifstream file(fs::directory_iterator(folder_)->path(), std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    uint64_t length = 0;
    std::memcpy(&length, text.data() + 20, 8);
    return text.substr(28, length);
  }

  fs::path folder_ = fs::temp_directory_path() / fmt::format("tutti_decisions_{}", ::getpid());
};

TEST_F(Decisions, measured_while_the_machine_is_busy_are_measured_again_until_they_are_final) {
  EXPECT_TRUE(groups_elsewhere().second);
  const std::vector<ArrangedGroup> one = {{.members = {"a", "b", "c", "d"}, .reason = "", .times = {}}};
  EXPECT_EQ(kept_arrangement(key(), one)->rounds, 1);
  DiskCache().store(key(), "1\nmerged 1 90 stacked 1 90 looped 1 50\n");
  for (int measured = 2; measured <= arrangement_rounds; ++measured) {
    const auto [chosen, now] = groups_elsewhere();
    EXPECT_TRUE(now);
    const auto kept = kept_arrangement(key(), one);
    ASSERT_TRUE(kept);
    EXPECT_EQ(kept->rounds, measured);
    EXPECT_EQ(kept->groups[0].chosen, Way{chosen});
    for (const auto& [way, seconds] : kept->groups[0].times) EXPECT_LT(seconds, 1);
  }
  const auto before = DiskCache().find(key());
  EXPECT_FALSE(groups_elsewhere().second) << "what is final costs nothing";
  EXPECT_EQ(DiskCache().find(key()), before);
  DiskCache().store(key(), "3\nmerged 1 2e-9 stacked 1 1e-9 looped 1 3e-9\n");
  EXPECT_EQ(groups_elsewhere(), std::pair(Arrangement::stacked, false));
  DiskCache().store(key(), "2\nmerged 1 2e-9 stacked 1 1e-9 looped 1 3e-9\n");
  EXPECT_EQ(groups_elsewhere(), std::pair(Arrangement::stacked, true)) << "the least time of each way counts";
}

TEST_F(Decisions, are_also_about_parts_for_each_core) {
  const auto found = groups(2);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].times.contains(Way{Arrangement::looped, 2}));  // two parts of two members
  EXPECT_EQ(kept_arrangement(key(), found)->groups[0].times, found[0].times);
  DiskCache().store(key(), "3\nmerged 1 3e-05 stacked 2 1e-05\n");
  EXPECT_EQ(kept_arrangement(key(), found)->groups[0].chosen, (Way{Arrangement::stacked, 2}));
}

TEST_F(Decisions, that_are_damaged_or_of_another_time_are_measured_anew) {
  groups_elsewhere();
  std::vector<ArrangedGroup> one(1);
  one[0].members = {"a", "b", "c", "d"};
  for (const char* other : {"", "3", "3\n", "0\nmerged 1 1\n", "x\nmerged 1 1\n", "3\nnonsense 1 1\n", "3\nstacked 1\n",
                            "3\nstacked 1 merged 1 1\n", "3\nauto 1 1\n", "3\nmerged 1 -1\n", "3\nmerged 1 nan\n", "3\nmerged 0 1\n",
                            "3\nmerged 5 1\n", "3\nmerged 1 1\nmerged 1 1\n", "looped merged 3e-05 stacked 2e-05 looped 1e-05\n"}) {
    DiskCache().store(key(), other);
    EXPECT_FALSE(kept_arrangement(key(), one)) << other;
    EXPECT_TRUE(groups_elsewhere().second) << other;
    const auto kept = kept_arrangement(key(), one);
    EXPECT_EQ(kept ? kept->rounds : 0, 1) << other;
  }
  const auto found = kept_arrangement(key(), one);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->groups[0].times.size(), 3u);
  EXPECT_EQ(found->groups[0].members, one[0].members);
  const std::string own = key();
  setenv("TUTTI_CACHE", "off", 1);
  EXPECT_FALSE(kept_arrangement(own, one));
}

TEST(ensemble, says_what_does_not_go_together) {
  EXPECT_THAT(message([] {
                Ensemble(lines({{1}, {1, 2}}), {});
              }),
              HasSubstr("members take the same inputs; got 'm0' x f32[-1, 1], 'm1' x f32[-1, 2]"));
  std::vector<std::vector<float>> many(12, {1});
  many.push_back({1, 2});
  EXPECT_THAT(message([&] { Ensemble(lines(many), {}); }), HasSubstr("got 'm0' x f32[-1, 1], 'm12' x f32[-1, 2]")) << "who differs";
  EXPECT_THAT(message([] { Ensemble({}, {}); }), HasSubstr("at least one member"));
  EXPECT_THAT(message([] {
                Ensemble(lines({{1}, {2}}), {parse_reductions("mean"), {1}});
              }),
              HasSubstr("weights are one a member; got 1 for 2 members"));
  EXPECT_THAT(message([] {
                Ensemble(lines({{1}, {2}}), {parse_reductions("max"), {1, 2}});
              }),
              HasSubstr("weights are for mean, vote and softvote"));
  EXPECT_THAT(message([] { Ensemble(lines({{1}, {2}}), {parse_reductions("mean"), {0, 0}}); }), HasSubstr("not all zero"));
  EXPECT_THAT(message([] { parse_reductions("men"); }), HasSubstr("no reduction 'men' (did you mean 'mean'"));
  EXPECT_THAT(message([] { parse_reductions("quantile:1.5"); }), HasSubstr("a quantile is a number from 0 to 1; got '1.5'"));
  EXPECT_THAT(message([] { parse_reductions("quantile"); }), HasSubstr("quantile:0.1,0.9"));
  EXPECT_THAT(message([] { parse_reductions("mean,mean"); }), HasSubstr("given twice"));
  EXPECT_THAT(message([] { parse_reductions(""); }), HasSubstr("no reduction ''"));
}

}  // namespace
}  // namespace tutti
