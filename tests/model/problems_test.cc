// What a file asks for and is refused: every problem is told, at once, with the layer's name; and hostile configs cost nothing.
#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/keras/model.h"

namespace tutti::keras {
namespace {

std::string dense(const std::string& name, const std::string& units) {
  return R"({"class_name": "Dense", "module": "keras.layers", "config": {"name": ")" + name + R"(", "units": )" + units +
         R"(}, "build_config": {"input_shape": [null, 4]}})";
}

std::string sequential(const std::string& layers) {
  return R"({"class_name": "Sequential", "module": "keras", "config": {"name": "s", "layers": [
      {"class_name": "InputLayer", "config": {"name": "x", "batch_shape": [null, 4], "dtype": "float32"}}, )" +
         layers + "]}}";
}

Model read(const std::string& text) { return from_config(Json::parse(text), "3.15.1"); }

std::string failure(const std::string& text) {
  try {
    Model model = read(text);
    std::string all;
    for (const auto& problem : model.problems()) all += problem + "\n";
    return all;
  } catch (const Error& e) {
    return e.what();
  }
}

void expect_says(const std::string& text, const std::string& part) {
  std::string said = failure(text);
  EXPECT_NE(said.find(part), std::string::npos) << "said: " << said << "\nexpected: " << part;
}

TEST(problems, a_good_model_has_none_and_names_its_variables) {
  Model model = read(sequential(dense("a", "3") + "," + dense("b", "4")));
  EXPECT_TRUE(model.problems().empty());
  auto variables = model.variables().flatten();
  ASSERT_EQ(variables.size(), 4u);
  EXPECT_EQ(variables[0]->path, "a/kernel");
  EXPECT_EQ(variables[3]->path, "b/bias");
}

TEST(problems, all_are_told_at_once) {
  Model model = read(sequential(
      R"({"class_name": "Lambda", "config": {"name": "code"}}, )" + dense("a", "\"many\"") + "," +
      R"({"class_name": "Dense", "config": {"name": "c", "units": 2, "shiny": 1}, "build_config": {"input_shape": [null, 4]}}, )" +
      R"({"class_name": "Densee", "config": {"name": "d"}})"));
  ASSERT_EQ(model.problems().size(), 4u) << failure(sequential(""));
  EXPECT_NE(model.problems()[0].find("'code'"), std::string::npos);
  EXPECT_NE(model.problems()[1].find("'units' is an integer; got \"many\""), std::string::npos);
  EXPECT_NE(model.problems()[2].find("option 'shiny'"), std::string::npos);
  EXPECT_NE(model.problems()[3].find("did you mean 'Dense'"), std::string::npos);
  EXPECT_NE(model.problems()[3].find("hint: the code of a class of your own is not in the file"), std::string::npos);
  EXPECT_THROW(model.lower({}), Unsupported);
}

TEST(problems, inputs_of_strings_are_refused_with_what_to_do) {
  expect_says(R"({"class_name": "Sequential", "module": "keras", "config": {"name": "s", "layers": [
      {"class_name": "InputLayer", "config": {"name": "words", "batch_shape": [null, 1], "dtype": "string"}}]}})",
              "it takes strings; hint: split the model");
}

TEST(problems, custom_objects_are_refused_by_name) {
  expect_says(sequential(R"({"class_name": "Mine", "module": "my_package", "registered_name": "mine>Mine", "config": {"name": "m"}})"),
              "'mine>Mine' is a custom object");
  // As Keras writes a class of a script, which may have the name of one of its own.
  expect_says(sequential(R"({"class_name": "Dense", "module": null, "registered_name": "Dense", "config": {"name": "d", "units": 3}})"),
              "'Dense' is a custom object");
}

TEST(problems, absurd_sizes_are_refused_before_anything_is_allocated) {
  expect_says(sequential(dense("a", "900000000000000")), "'units' is between");
  expect_says(sequential(dense("a", "-3")), "'units' is between");
  expect_says(sequential(dense("a", "1e300")), "'units' is an integer");
  expect_says(sequential(R"({"class_name": "Dense", "config": {"name": "a", "units": 3, "lora_rank": 1000000}})"),
              "'lora_rank' is at most");
}

TEST(problems, nesting_is_bounded) {
  std::string text = dense("a", "3");
  for (int i = 0; i < 80; ++i) text = R"({"class_name": "Sequential", "config": {"name": "s", "layers": [)" + text + "]}}";
  expect_says(sequential(text), "nested");
}

TEST(problems, a_model_saved_before_it_was_built_is_told_what_to_do) {
  expect_says(R"({"class_name": "Sequential", "config": {"name": "s", "layers": [{"class_name": "Dense", "config": {"units": 3}}]}})",
              "saved before it was built");
}

std::string functional(const std::string& feeds_a, const std::string& output, const std::string& more = "", const std::string& named = "") {
  return R"({"class_name": "Functional", "module": "keras", "config": {"name": "f", "input_layers": [["x", 0, 0]], "output_layers": [[")" +
         output + R"(", 0, 0]], "layers": [
      {"class_name": "InputLayer", "name": "x", "config": {"name": "x", "batch_shape": [null, 4], "dtype": "float32"}, "inbound_nodes": []},
      {"class_name": "Dense", "name": "a", "config": {"name": "a", "units": 4}, "inbound_nodes": [{"args": [{"class_name": "__keras_tensor__",
        "config": {"shape": [null, 4], "dtype": "float32", "keras_history": [")" +
         feeds_a + R"(", 0, 0]}})" + more + R"(], "kwargs": {)" + named + R"(}}]},
      {"class_name": "Dense", "name": "b", "config": {"name": "b", "units": 4}, "inbound_nodes": [{"args": [{"class_name": "__keras_tensor__",
        "config": {"shape": [null, 4], "dtype": "float32", "keras_history": ["a", 0, 0]}}], "kwargs": {}}]}]}})";
}

TEST(problems, broken_functional_wiring_is_told) {
  EXPECT_EQ(failure(functional("x", "b")), "");
  expect_says(functional("b", "b"), "in a circle");
  expect_says(functional("a", "b"), "in a circle");
  expect_says(functional("nobody", "b"), "'nobody', which does not exist");
  expect_says(functional("x", "nobody"), "'nobody' does not exist");
}

TEST(problems, an_argument_that_the_layer_does_not_take_is_refused) {
  EXPECT_EQ(failure(functional("x", "b", ", null, null, null", R"("shift": null, "turn": false)")), "");
  EXPECT_EQ(failure(functional("x", "b", ", true")), "");  // training
  expect_says(functional("x", "b", "", R"("shift": 2)"), "layer 'a' (Dense): is called with argument 'shift' = 2, which is not known here");
  expect_says(functional("x", "b", "", R"("trainning": true)"), "(did you mean 'training'?)");
  expect_says(functional("x", "b", ", null, null, 7"), "is called with more arguments than it takes, the last one = 7");
  expect_says(functional("x", "b", "", R"("also": {"class_name": "__keras_tensor__", "config": {"keras_history": ["x", 0, 0]}})"),
              "argument 'also', which is not known here");
}

TEST(problems, extents_that_only_the_data_know_must_be_given) {
  Model model = read(R"({"class_name": "Sequential", "config": {"name": "s", "layers": [
      {"class_name": "InputLayer", "config": {"name": "x", "batch_shape": [null, null, 4], "dtype": "float32"}},
      {"class_name": "Dense", "config": {"name": "d", "units": 2}}]}})");
  EXPECT_THROW(model.lower({}), InvalidArgument);
  Graph graph = model.lower({.batch = 3, .input_shapes = {{3, 7, 4}}});
  EXPECT_EQ(to_string(graph.type(graph.outputs()[0].value)), "f32[3, 7, 2]");
  EXPECT_THROW(model.lower({.batch = 3, .input_shapes = {{3, 7, 5}}}), InvalidArgument);
}

}  // namespace
}  // namespace tutti::keras
