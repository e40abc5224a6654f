// The public surface in the wrong hands: each mistake is an error that says which, and harms nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/run/made_model.h"
#include "tutti/graph/compose.h"
#include "tutti/tutti.h"

namespace tutti {
namespace {

class Doubling : public MadeModel {
 public:
  Doubling() : MadeModel({"x", DType::f32, {-1, 2}}) {}
  Graph lower(const keras::LowerOptions& options) const override {
    Graph graph;
    const Value x = graph.input("x", input_types(options)[0]);
    graph.output("y", x + x);
    return graph;
  }
};

Model doubling() { return Model(std::make_shared<const Doubling>()); }

void expect_refused(const std::function<void()>& use, const char* text) {
  try {
    use();
    ADD_FAILURE() << text;
  } catch (const InvalidArgument& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr(text));
  }
}

TEST(misuse, options_that_contradict_each_other_are_refused) {
  expect_refused([] { compile(doubling(), {.threads = -1}); }, "[compile] threads are 0, which is chosen, or more; got -1");
  expect_refused(
      [] {
        compile(doubling(), {.batch = 1, .input_shapes = {{4, 2}}});
      },
      "[compile] the first extent of an input's shape is the batch, 1; got [4, 2]");
  EXPECT_EQ(compile(doubling(), {.batch = 4, .input_shapes = {{4, 2}}}).output_types()[0].shape, Shape({4, 2}));
}

TEST(misuse, what_was_moved_from_says_so_and_can_be_given_a_new_value) {
  Model first = doubling();
  const Model model = std::move(first);
  expect_refused([&] { first.inputs(); }, "[model] there is none: it was moved from");  // NOLINT(bugprone-use-after-move)
  expect_refused([&] { compile(first); }, "it was moved from");
  expect_refused([&] { ensemble({model, first}); }, "it was moved from");
  expect_refused([&] { first.predict({Tensor(DType::f32, {1, 2})}); }, "it was moved from");
  expect_refused([] { Model(nullptr).problems(); }, "made of nothing");

  const std::vector<float> in{1, 2}, twice{2, 4};
  std::vector<float> out(2);
  CompiledModel old = compile(model), predict = std::move(old);
  expect_refused([&] { old(in, out); }, "[predict] this one was moved from");  // NOLINT(bugprone-use-after-move)
  expect_refused([&] { old.run(); }, "this one was moved from");
  expect_refused([&] { old.input(); }, "this one was moved from");
  expect_refused([&] { old.context(); }, "this one was moved from");
  expect_refused([&] { old.output_types(); }, "this one was moved from");
  std::span<const std::byte> bytes[] = {std::as_bytes(std::span(in))};
  std::span<std::byte> to[] = {std::as_writable_bytes(std::span(out))};
  expect_refused([&] { old(bytes, to); }, "this one was moved from");
  old = std::move(predict);
  old(in, out);
  EXPECT_EQ(out, twice);
}

TEST(misuse, reductions_that_are_no_reductions_are_refused) {
  const auto reduced = [](std::vector<Reduction> reductions) {
    return [reductions] { ensemble({doubling(), doubling()}, {.reductions = reductions}); };
  };
  expect_refused(reduced({}), "at least one reduction");
  expect_refused(reduced({{Reduce::quantile, 1.5}}), "a quantile is a number from 0 to 1; got 1.5");
  expect_refused(reduced({{Reduce::quantile, std::nan("")}}), "a quantile is a number from 0 to 1; got nan");
  expect_refused(reduced({{Reduce::mean}, {Reduce::std}, {Reduce::mean}}), "reduction 'mean' is given twice");
}

}  // namespace
}  // namespace tutti
