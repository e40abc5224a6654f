// Members that come and go: what is predicted is what a new ensemble of the same members predicts, and what is compiled is little.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <thread>

#include "tests/run/count_calls.h"
#include "tutti/graph/compose.h"
#include "tutti/run/block_program.h"
#include "tutti/transform/append.h"
#include "tutti/tutti.h"

namespace tutti {
namespace {

using testing::HasSubstr;

// Two outputs of [samples, classes] and [samples], from [samples, 4] or [samples, 1, 4]: a hidden layer and two heads, other weights for
// each seed. Seeds below zero give NaN.
class Net : public keras::AnyModel {
 public:
  explicit Net(int seed, Ints extents = {-1, 4}, int64_t hidden = 5, int64_t classes = 3)
      : inputs_{{"x", DType::f32, std::move(extents)}}, seed_(seed), hidden_(hidden), classes_(classes) {}
  std::string name() const override { return "net"; }
  const std::vector<keras::ModelInput>& inputs() const override { return inputs_; }
  const std::vector<std::string>& output_names() const override { return outputs_; }
  const std::vector<std::string>& problems() const override { return problems_; }
  int64_t probe_extent() const override { return 1; }
  Graph lower(const keras::LowerOptions& options) const override {
    Graph graph;
    std::mt19937 random(static_cast<uint32_t>(std::abs(seed_)));
    const auto weight = [&](const char* name, Ints extents) {
      Tensor values(DType::f32, extents);
      for (float& value : values.as<float>())
        value = seed_ < 0 ? std::nanf("") : static_cast<float>(random()) / static_cast<float>(std::mt19937::max()) - 0.5f;
      return graph.parameter(Graph::Role::weight, name, values.type(), values);
    };
    const Value x = reshape(graph.input("x", input_types(options)[0]), {options.batch, 4});
    const Value hidden = tanh(dot_general(x, weight("hidden", {4, hidden_}), {{}, {}, {1}, {0}}));
    graph.output("classes", softmax(dot_general(hidden, weight("classes", {hidden_, classes_}), {{}, {}, {1}, {0}}), {1}));
    graph.output("score", squeeze(dot_general(hidden, weight("score", {hidden_, 1}), {{}, {}, {1}, {0}}), {1}));
    if (options.trace != nullptr) options.trace->push_back({"net", "Sequential", 0, {}, 1, graph.nodes().size(), nullptr});
    return graph;
  }

 private:
  std::vector<keras::ModelInput> inputs_;
  std::vector<std::string> outputs_{"classes", "score"}, problems_;
  int seed_;
  int64_t hidden_, classes_;
};

// The same outputs in the other order.
class TurnedNet : public Net {
 public:
  using Net::Net;
  const std::vector<std::string>& output_names() const override { return turned_; }
  Graph lower(const keras::LowerOptions& options) const override {
    const Graph straight = Net::lower(options);
    Graph graph;
    const auto own = append(graph, straight, {graph.input("x", input_types(options)[0])}, "");
    graph.output("score", own[1]);
    graph.output("classes", own[0]);
    if (options.trace != nullptr) options.trace->clear();
    return graph;
  }

 private:
  std::vector<std::string> turned_{"score", "classes"};
};

std::shared_ptr<const Net> net(int seed) { return std::make_shared<const Net>(seed); }

std::vector<Ensemble::Member> nets(int count) {
  std::vector<Ensemble::Member> out;
  for (int i = 0; i < count; ++i) out.push_back({"net" + std::to_string(i), net(i)});
  return out;
}

Model model_of(std::vector<Ensemble::Member> members, EnsembleOptions options = {}) {
  return Model(std::make_shared<const Ensemble>(std::move(members), std::move(options)));
}

std::vector<std::vector<double>> predict(CompiledModel& compiled) {
  std::vector<Tensor> inputs, outputs;
  std::vector<std::span<const std::byte>> from;
  std::vector<std::span<std::byte>> to;
  for (const Type& type : compiled.input_types()) {
    Tensor& input = inputs.emplace_back(type);
    for (size_t i = 0; float& value : input.as<float>()) value = std::sin(static_cast<float>(i++));
  }
  for (const Type& type : compiled.output_types()) outputs.emplace_back(type);
  for (Tensor& input : inputs) from.push_back(input.bytes());
  for (Tensor& output : outputs) to.push_back(output.bytes());
  compiled(from, to);
  std::vector<std::vector<double>> out;
  for (const Tensor& output : outputs) {
    const Tensor values = output.converted(DType::f64);
    out.emplace_back(values.as<double>().begin(), values.as<double>().end());
  }
  return out;
}

void expect_same(const std::vector<std::vector<double>>& got, const std::vector<std::vector<double>>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].size(), expected[i].size()) << "output " << i;
    for (size_t k = 0; k < got[i].size(); ++k)
      EXPECT_TRUE(std::isnan(expected[i][k]) ? std::isnan(got[i][k])
                                             : std::abs(got[i][k] - expected[i][k]) < 4e-6 * std::max(1.0, std::abs(expected[i][k])))
          << "output " << i << " at " << k << ": " << got[i][k] << ", not " << expected[i][k];
  }
}

std::vector<std::string> devices() {
  std::vector<std::string> out{"reference", "cpu"};
  for (const DeviceListing& device : list_devices())
    if (device.name == "xla:cpu" && device.usable) out.push_back(device.name);
  return out;
}

// The first fills a block, the second begins another.
TEST(live_ensemble, predicts_what_a_new_ensemble_of_its_members_does) {
  const auto all = parse_reductions("mean,median,min,max,sum,std,var,quantile:0.1,0.75,vote,softvote");
  for (const std::string& device : devices())
    for (bool ignore_nan : {false, true}) {
      if (device == "xla:cpu" && !ignore_nan) continue;  // its sorting takes long to compile
      SCOPED_TRACE(device + (ignore_nan ? ", ignoring NaN" : ""));
      const CompileOptions options{.batch = 3, .device = device, .arrangement = Arrangement::stacked};
      auto members = nets(MemberBlock::most_members - 1);
      EnsembleOptions how{all, std::vector<double>(members.size(), 1), ignore_nan};
      LiveEnsemble live(model_of(members, how), options);
      std::mt19937 random(7);
      int added = 1000;
      for (int step = 0; step < (device == "xla:cpu" ? 3 : 6); ++step) {
        if (step < 2 || (step > 2 && random() % 2 == 0)) {
          const std::string name = "new" + std::to_string(added);
          const auto model = net(ignore_nan && added % 3 == 0 ? -1 : added);
          const double weight = 1 + static_cast<double>(random() % 3);
          live.add(name, Model(model), weight);
          members.push_back({name, model});
          how.weights.push_back(weight);
          ++added;
        } else {
          const auto place = static_cast<std::ptrdiff_t>(random() % members.size());
          live.drop(members[static_cast<size_t>(place)].name);
          members.erase(members.begin() + place);
          how.weights.erase(how.weights.begin() + place);
        }
        CompiledModel fresh = compile(model_of(members, how), options);
        expect_same(predict(live.now()), predict(fresh));
        ASSERT_EQ(live.now().output_types(), fresh.output_types());
        if (testing::Test::HasFailure()) return;
      }
      EXPECT_EQ(live.members().size(), members.size());
    }
}

TEST(live_ensemble, one_block_is_compiled_for_a_member_more_or_less) {
  const auto device = open_device("cpu");
  auto members = nets(4 * MemberBlock::most_members);
  std::mt19937 random(3);
  MemberBlocks before = compile_blocks(Ensemble(members, {}), {}, device);
  EXPECT_EQ(before.blocks.size(), 4u);
  for (int step = 0; step < 60; ++step) {
    if (random() % 3 == 0)
      members.push_back({"new" + std::to_string(step), net(step)});
    else
      members.erase(members.begin() + static_cast<std::ptrdiff_t>(random() % members.size()));
    const MemberBlocks after = compile_blocks(Ensemble(members, {}), {}, device, before);
    const auto is_new = [&](const auto& block) {
      return std::find(before.blocks.begin(), before.blocks.end(), block) == before.blocks.end();
    };
    EXPECT_LE(std::count_if(after.blocks.begin(), after.blocks.end(), is_new), 1);
    size_t place = 0;
    for (const auto& block : after.blocks)
      for (const auto& member : block->members) EXPECT_EQ(member.name, members[place++].name);
    EXPECT_EQ(place, members.size());
    for (size_t i = 1; i < after.blocks.size(); ++i)
      EXPECT_GT(after.blocks[i - 1]->members.size() + after.blocks[i]->members.size(), MemberBlock::most_members);
    before = after;
  }
}

// Members of a megabyte: hidden 50,000 of 4, 3 and 1.
TEST(live_ensemble, weights_of_others_are_not_touched) {
  if (!calls_are_counted) GTEST_SKIP() << "sanitizers have an allocator of their own";
  constexpr int64_t hidden = 50'000, bytes = hidden * 8 * 4;
  constexpr int count = 40;
  std::vector<Ensemble::Member> members;
  for (int i = 0; i < count; ++i) members.push_back({"net" + std::to_string(i), std::make_shared<const Net>(i, Ints{-1, 4}, hidden)});
  LiveEnsemble live(model_of(members), {.arrangement = Arrangement::stacked});
  live.now();
  const int64_t before = count_calls().bytes;
  live.add("new", Model(std::make_shared<const Net>(99, Ints{-1, 4}, hidden)));
  EXPECT_LT(count_calls().bytes - before, 4 * MemberBlock::most_weight_bytes);
  EXPECT_GT(count * bytes, 3 * MemberBlock::most_weight_bytes) << "or the test shows nothing";
}

TEST(live_ensemble, inputs_stay_when_the_first_member_goes) {
  LiveEnsemble live(model_of({{"flat", net(1)}, {"deep", std::make_shared<const Net>(2, Ints{-1, 1, 4})}}));
  const auto types = live.now().input_types();
  live.drop("flat");
  EXPECT_EQ(live.now().input_types(), types);
  CompiledModel alone = compile(model_of({{"deep", net(2)}}));
  expect_same(predict(live.now()), predict(alone));
}

TEST(live_ensemble, outputs_go_by_name_also_when_the_first_member_goes) {
  LiveEnsemble live(model_of({{"a", net(1)}, {"b", std::make_shared<const TurnedNet>(2)}}), {.batch = 2, .device = "cpu"});
  auto straight = compile(model_of({{"a", net(1)}, {"b", net(2)}}), {.batch = 2, .device = "cpu"});
  expect_same(predict(live.now()), predict(straight));
  live.drop("a");
  auto alone = compile(model_of({{"b", net(2)}}), {.batch = 2, .device = "cpu"});
  expect_same(predict(live.now()), predict(alone));
}

TEST(live_ensemble, what_does_not_fit_changes_nothing) {
  LiveEnsemble live(model_of(nets(2)));
  const auto expected = predict(live.now());
  const auto refused = [&](auto&& change, const char* text) {
    try {
      change();
      ADD_FAILURE() << text;
    } catch (const InvalidArgument& e) {
      EXPECT_THAT(e.what(), HasSubstr(text));
    }
    EXPECT_EQ(live.members(), (std::vector<std::string>{"net0", "net1"}));
    EXPECT_EQ(predict(live.now()), expected);
  };
  refused([&] { live.add("net1", Model(net(5))); }, "there is a member 'net1' already");
  refused([&] { live.drop("net3"); }, "no member 'net3' (did you mean 'net0'");
  refused(
      [&] {
        live.add("wide", Model(std::make_shared<const Net>(1, Ints{-1, 9})));
      },
      "members take the same inputs; got x f32[-1, 4], 'wide' x f32[-1, 9]");
  refused([&] { live.add("many", Model(std::make_shared<const Net>(1, Ints{-1, 4}, 5, 7))); }, "members give outputs of one shape");
  refused([&] { live.add("weighted", Model(net(5)), -1); }, "weights are finite, not negative");
  live.drop("net0");
  EXPECT_THROW(live.drop("net1"), InvalidArgument);
  EXPECT_EQ(live.members(), std::vector<std::string>{"net1"});
  EXPECT_THROW(LiveEnsemble(Model(net(1))), InvalidArgument);
  EXPECT_THROW(LiveEnsemble(model_of({{"a", net(1)}, {"a", net(2)}})), InvalidArgument);
}

// Whatever a thread sees is what one of the sets gives.
TEST(live_ensemble, other_threads_predict_with_all_old_members_or_all_new_ones) {
  const EnsembleOptions sum{parse_reductions("sum,max")};
  LiveEnsemble live(model_of(nets(3), sum), {.threads = 1});
  std::vector<Ensemble::Member> members = nets(3);
  std::vector<std::vector<std::vector<double>>> possible;
  for (int more = 0; more < 2; ++more) {
    CompiledModel fresh = compile(model_of(members, sum), {.threads = 1});
    possible.push_back(predict(fresh));
    members.push_back({"new", net(50)});
  }
  std::atomic<bool> end = false;
  std::atomic<int> wrong = 0, seen[2] = {0, 0};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, own = live.context()]() mutable {
      while (!end) {
        const auto got = predict(own.now());
        const auto is = [&](const auto& expected) {
          return std::abs(got[0][0] - expected[0][0]) < 1e-5 && std::abs(got[2][0] - expected[2][0]) < 1e-5;
        };
        const auto found = std::find_if(possible.begin(), possible.end(), is);
        found == possible.end() ? ++wrong : ++seen[found - possible.begin()];
      }
    });
  for (int round = 0; round < 20 || seen[0] == 0 || seen[1] == 0; ++round) {
    live.add("new", Model(net(50)));
    live.drop("new");
  }
  end = true;
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tutti
